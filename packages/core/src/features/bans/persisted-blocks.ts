import { readdirSync, readFileSync, renameSync, unlinkSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { checkedEntry } from '../../blocks/given-blocks.js'
import type { NamedEntry } from '../../blocks/named-lists.js'
import type { BlockEntry } from '../../store/entries.js'
import { invalidPolicy, SluiceError } from '../../util/errors.js'
import { replaceFile } from '../../util/replace-file.js'
import type { StoreWarning, Warnings } from '../../util/warnings.js'
import { checkedNamedEntry } from '../lists/given-list-entries.js'

/** The first line of a file. The number increases with every change of the format. */
const HEADER = '{"sluice":"blocks","version":1}'
/** The delay of a write, in ms, so that many changes are written at once. */
const WRITE_AFTER_MS = 1000
/** The step of the wall clock, in ms, after which dates are written again. */
const CORRECTED_MS = 1000
/** Characters written at once. */
const CHUNK = 65_536
const NOTHING: Persisted = { blocks: [], listed: [] }

/** The contents of a file. */
export interface Persisted {
  readonly blocks: readonly BlockEntry[]
  readonly listed: readonly NamedEntry[]
}

/** Keeps the blocks, bans and lists of a memory store in a file, one entry per line. */
export class PersistedBlocks {
  readonly #file: string
  readonly #entries: () => AsyncIterable<BlockEntry>
  readonly #listed: () => Iterable<NamedEntry>
  readonly #warnings: Warnings<StoreWarning>
  #timer: NodeJS.Timeout | undefined
  #isChanged = false
  #writing: Promise<void> = Promise.resolve()
  #isWarned = false
  /** How far the wall clock was ahead of the clock of the blocks when the dates of the file were last written for it. */
  #ahead = 0

  /** @throws SluiceError `INVALID_POLICY` for an invalid path */
  constructor(
    file: unknown,
    entries: () => AsyncIterable<BlockEntry>,
    listed: () => Iterable<NamedEntry>,
    warnings: Warnings<StoreWarning>,
  ) {
    if (typeof file !== 'string' || file === '') invalidPolicy('memoryStore', 'persist', 'the path of a file', file)
    this.#file = file
    this.#entries = entries
    this.#listed = listed
    this.#warnings = warnings
  }

  /**
   * The contents of the file; empty where there is none. A damaged file is put aside with a warning of the process. Files that
   * other processes left beside it when they ended during a write are removed.
   *
   * @throws SluiceError `INVALID_POLICY` for a file that cannot be read
   */
  read(): Persisted {
    removeLeftOver(this.#file)
    let text: string
    try {
      text = readFileSync(this.#file, 'utf8')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return NOTHING
      throw new SluiceError('INVALID_POLICY', `memoryStore: persist: ${(error as Error).message}`, { cause: error })
    }
    try {
      return entriesIn(text)
    } catch (error) {
      const aside = `${this.#file}.damaged`
      renameSync(this.#file, aside)
      this.warn(`${(error as Error).message}: a new file was begun; the old content is in ${aside}`)
      return NOTHING
    }
  }

  /** Writes its dates again once the wall clock was corrected. `ahead`: how far that is ahead of the clock of the blocks. */
  follow(ahead: number): void {
    if (Math.abs(ahead - this.#ahead) <= CORRECTED_MS) return
    this.#ahead = ahead
    this.changed()
  }

  changed(): void {
    this.#isChanged = true
    this.#timer ??= setTimeout(() => this.#writeNow(), WRITE_AFTER_MS).unref()
  }

  /** Resolves once all changes are written, or are known to have failed. */
  async written(): Promise<void> {
    if (this.#isChanged) this.#writeNow()
    await this.#writing
  }

  #writeNow(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#isChanged = false
    this.#writing = this.#writing
      .then(() => replaceFile(this.#file, this.#chunks()))
      .catch((error: Error) => this.warn(error.message))
  }

  /** The text of the file, in chunks of many lines. */
  async *#chunks(): AsyncGenerator<string> {
    let text = `${HEADER}\n`
    for await (const entry of this.#all()) {
      text += `${JSON.stringify(entry)}\n`
      if (text.length < CHUNK) continue
      yield text
      text = ''
    }
    yield text
  }

  async *#all(): AsyncGenerator<BlockEntry | NamedEntry> {
    yield* this.#entries()
    yield* this.#listed()
  }

  /** Warns once: repeated failures would fill a log. */
  warn(why: string): void {
    if (this.#isWarned) return
    this.#isWarned = true
    this.#warnings.emit('SLUICE_PERSIST_FAILED', `memoryStore: persist: ${this.#file}: ${why}`)
  }
}

function removeLeftOver(file: string): void {
  const folder = dirname(file)
  const start = `${basename(file)}.`
  try {
    for (const name of readdirSync(folder)) {
      const [, pid] = name.startsWith(start) ? (/^(\d+)\.[0-9a-f]{16}\.tmp$/.exec(name.slice(start.length)) ?? []) : []
      if (pid !== undefined && hasEnded(Number(pid))) unlinkSync(join(folder, name))
    }
  } catch {
    // Nothing depends on it. A folder without write access causes a warning at the next write.
  }
}

/** Whether a process has ended. This process has written nothing so far: its number was another's before, as in containers. */
function hasEnded(pid: number): boolean {
  if (pid === process.pid) return true
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

/** @throws for a file with other content */
function entriesIn(text: string): Persisted {
  const [header, ...lines] = text.split('\n')
  if (header !== HEADER) throw new Error(`line 1: expected ${HEADER}`)
  if (lines.pop() !== '') throw new Error(`line ${lines.length + 2}: expected a whole line`)
  const blocks: BlockEntry[] = []
  const listed: NamedEntry[] = []
  lines.forEach((line, i) => {
    try {
      const entry = JSON.parse(line)
      if (Object.hasOwn(entry, 'list')) listed.push(checkedNamedEntry(entry))
      else blocks.push(checkedEntry(i, entry))
    } catch (error) {
      throw new Error(`line ${i + 2}: ${(error as Error).message}`)
    }
  })
  return { blocks, listed }
}
