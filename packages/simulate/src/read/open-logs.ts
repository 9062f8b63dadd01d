import type { Readable } from 'node:stream'
import type { LogFormat } from '../formats/format.js'
import type { ParsedLine } from '../formats/parsed-line.js'
import type { LogRecord } from '../record.js'
import { SimulationError } from '../simulation-error.js'
import { checkTwice } from './bytes.js'
import { type LogBytes, type LogSource, nameOf } from './log-source.js'
import { merged, type Run } from './merge.js'
import { type KnownLog, recognise } from './recognise.js'
import { Sorter } from './sorter.js'
import { recordsOf } from './source.js'
import { Tally } from './tally.js'

export interface LogOptions {
  /** The form of all logs. @default recognised by the first lines of each */
  readonly format?: LogFormat | undefined
  /** Whether any number of lines may not parse, or come too late. @default at most 1 % of each */
  readonly isLenient?: boolean
  /** Records that wait at most until they are in order, at least 2. @default 131,072 */
  readonly maxSorted?: number
  /** Ends reading: what was read comes still. */
  readonly signal?: AbortSignal | undefined
  /** Read for the file `-`. @default `process.stdin` */
  readonly stdin?: Readable
}

const MAX_SORTED = 131_072
const MAX_BAD_SHARE = 0.01

/**
 * Opens logs, and recognises their forms. Files are read up to their size when they are opened, decompressed where
 * they are gzip.
 *
 * @throws SimulationError where one cannot be opened, is no text or of an unknown form, or where all are empty
 */
export async function openLogs(logs: readonly LogSource[], options: LogOptions = {}): Promise<Logs> {
  const { format, signal, stdin = process.stdin } = options
  if (logs.filter((log) => log === '-').length > 1) throw new SimulationError('expected standard input (-) once')
  await checkTwice(logs)
  const known: KnownLog[] = []
  const empty: string[] = []
  for (const log of logs) {
    const found = await recognise(log, format, stdin, signal)
    if (found) known.push(found)
    else empty.push(nameOf(log))
  }
  if (known.length === 0 && !signal?.aborted) throw new SimulationError(`${empty.join(', ')}: expected lines, got none`)
  checkClients(known)
  return new Logs(known, empty, options)
}

/** @throws SimulationError where clients of one log are none of another's, as their addresses are written in other ways */
function checkClients(logs: readonly KnownLog[]): void {
  const [first] = logs
  const other = logs.find(({ clients }) => clients !== first?.clients)
  if (!first || !other) return
  const isRecording = (log: KnownLog) => log.clients !== undefined
  throw new SimulationError(
    isRecording(first) && isRecording(other)
      ? `${first.name} and ${other.name} are recordings by two secrets: their clients cannot be matched`
      : `${(isRecording(first) ? first : other).name} is a recording, and ${(isRecording(first) ? other : first).name} is none: their clients cannot be matched`,
  )
}

/** What was read so far. */
export interface ReadCounts {
  readonly lines: number
  /** Lines that did not parse, of which the first few are kept, escaped. */
  readonly unread: number
  readonly examples: readonly string[]
  /** Lines that are no requests, such as connections that ended before one. */
  readonly others: number
  /** Records that came too late to be sorted: they start with the last before them. */
  readonly late: number
  /** Whether reading ended before the logs did. */
  readonly isPartial: boolean
  /** Sentences about logs that are empty or damaged, incomplete lines, and records that came too late. */
  readonly caveats: readonly string[]
  /** Bytes of the files, before they are decompressed. */
  readonly bytesRead: number
}

/** The records of all logs in the order of their starts, in batches. Can be read once. */
export interface LogsInOrder extends AsyncIterable<readonly LogRecord[]> {
  /** The form of each log that is not empty. */
  readonly formats: readonly string[]
  /** Bytes of all files. Undefined if one is a pipe. */
  readonly bytesTotal: number | undefined
  readonly counts: ReadCounts
}

/** Logs that are read in this thread. */
class Logs implements LogsInOrder {
  readonly formats: readonly string[]
  readonly bytesTotal: number | undefined
  readonly #known: readonly KnownLog[]
  readonly #options: LogOptions
  readonly #opened: LogBytes[] = []
  readonly #tally = new Tally()
  readonly #sorter: Sorter

  constructor(known: readonly KnownLog[], empty: readonly string[], options: LogOptions) {
    this.formats = known.map(({ format }) => format.name)
    const sizes = known.map(({ totalBytes }) => totalBytes)
    this.bytesTotal = sizes.reduce((sum, size) => (sum === undefined || size === undefined ? undefined : sum + size), 0)
    this.#known = known
    this.#options = options
    this.#sorter = new Sorter(options.maxSorted ?? MAX_SORTED)
    for (const name of empty) this.#tally.noteCaveat(`${name} has no lines`)
  }

  get counts(): ReadCounts {
    const { lines, unread, others, examples, isPartial, caveats } = this.#tally
    const { late } = this.#sorter
    return {
      lines,
      unread,
      others,
      examples: [...examples],
      late,
      isPartial,
      caveats: late === 0 ? [...caveats] : [...caveats, `${this.#lateText()}.`],
      bytesRead: this.#opened.reduce((sum, { readBytes }) => sum + readBytes, 0),
    }
  }

  /** @throws SimulationError at the end, where more than 1 % of the lines did not parse or came too late */
  async *[Symbol.asyncIterator](): AsyncGenerator<readonly ParsedLine[], void, void> {
    const { signal } = this.#options
    const runs = this.#known.map((log) => this.#runOf(log))
    for await (const batch of runs.length === 1 ? (runs[0] as Run).batches() : merged(runs)) {
      const sorted = this.#sorter.push(batch)
      if (sorted.length > 0) yield sorted
      if (signal?.aborted) break
    }
    if (signal?.aborted) this.#tally.isPartial = true
    const rest = this.#sorter.end()
    if (rest.length > 0) yield rest
    if (!this.#options.isLenient) this.#check()
  }

  #runOf({ format, firstMs, open }: KnownLog): Run {
    const logs = this
    return {
      firstMs,
      async *batches() {
        const bytes = await open()
        logs.#opened.push(bytes)
        yield* recordsOf(bytes, format, logs.#tally)
      },
    }
  }

  #check(): void {
    const { lines, unread, examples } = this.#tally
    if (unread > lines * MAX_BAD_SHARE) {
      const seen = examples.map((example) => `\n  ${example}`).join('')
      throw new SimulationError(
        `${unread} of ${lines} lines are not ${[...new Set(this.formats)].join(' or ')}: --lenient skips them${seen}`,
      )
    }
    if (this.#sorter.late > lines * MAX_BAD_SHARE)
      throw new SimulationError(`${this.#lateText()}; --lenient accepts that`)
  }

  #lateText(): string {
    const { late, latestByMs } = this.#sorter
    return `${late} of ${this.#tally.lines} lines are up to ${Math.ceil(latestByMs / 1000)} s earlier than lines before them, more than is sorted, and count as if they had come then`
  }
}
