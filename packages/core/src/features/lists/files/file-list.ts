import { basename, resolve } from 'node:path'
import type { List, ListedIdentity, ListMatch } from '../../../store/list.js'
import { invalidPolicy, SluiceError } from '../../../util/errors.js'
import { knownOptions, oneOf } from '../../../util/validate.js'
import { emitWarning } from '../../../util/warnings.js'
import { DataMatcher } from '../data-matcher.js'
import { ListBuilder, type ListData } from '../list-data.js'
import { FileWatcher } from './file-watcher.js'
import type { ListFormat } from './formats.js'
import { type Loading, type LoadResult, load } from './load.js'

export interface FileListOptions {
  /**
   * - `plain`: an address or a range per line, comments behind `#` or `;`
   * - `netset`: the same, as FireHOL publishes it, and the output of `ipset save`
   * - `json`: an array of ranges, or arrays of values by their kind
   * - `crowdsec`: the output of `cscli decisions list -o json`
   * @default 'plain'
   */
  readonly format?: ListFormat
  /** Whether a file may be empty, or have fewer than half of the entries that it had before. @default false */
  readonly allowShrink?: boolean
}

/** A list in a file, which is read again whenever it changes. */
export interface FileList extends List {
  /** How many entries are in use. */
  readonly size: number
  /** Why the present contents of the file are not in use. Undefined if they are. */
  readonly error: SluiceError | undefined
}

const FORMAT_NAMES: readonly ListFormat[] = ['plain', 'netset', 'json', 'crowdsec']

/**
 * A list in a file. A thread of its own reads it, at once and whenever it changes. A file that is renamed onto the path is
 * taken at once. A file that is written in place is taken when it has been unchanged for 200 ms. Where the new contents are
 * wrong, empty or fewer than half, the last good ones stay in use and the process warns (`SluiceWarning`, code
 * `SLUICE_LIST_FAILED`).
 *
 * Until it has been loaded it matches nothing: await `ready()` before you serve.
 *
 * @example const blocklist = fileList('/etc/blocklist.netset', { format: 'netset' })
 * @throws SluiceError `INVALID_POLICY`
 */
export function fileList(path: string, options: FileListOptions = {}): FileList {
  if (typeof path !== 'string' || path === '') invalidPolicy('fileList', 'path', 'the path of a file', path)
  knownOptions('fileList', options, ['format', 'allowShrink'])
  const { format = 'plain', allowShrink = false } = options
  oneOf('fileList', 'format', format, FORMAT_NAMES)
  if (typeof allowShrink !== 'boolean') invalidPolicy('fileList', 'allowShrink', 'true or false', allowShrink)
  return new WatchedFile(path, format, allowShrink)
}

class WatchedFile implements FileList {
  readonly name: string
  readonly #shownPath: string
  /** Absolute, so that a process may change its directory. */
  readonly #path: string
  readonly #format: ListFormat
  readonly #allowShrink: boolean
  readonly #watcher: FileWatcher
  #matcher = new DataMatcher(new ListBuilder().build())
  version = 0
  size = 0
  error: SluiceError | undefined
  #loading: Loading | undefined
  #waiters: { resolve: () => void; reject: (error: SluiceError) => void }[] = []
  /** Keeps the process alive, while the program waits for the list. */
  #hold: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(path: string, format: ListFormat, allowShrink: boolean) {
    this.name = basename(path)
    this.#shownPath = path
    this.#path = resolve(path)
    this.#format = format
    this.#allowShrink = allowShrink
    this.#watcher = new FileWatcher(
      this.#path,
      () => void this.#load(),
      (error) => this.#failToRead(error),
    )
  }

  get kinds(): readonly string[] {
    return this.#format === 'json' ? this.#matcher.kinds : ['ip']
  }

  match(identity: ListedIdentity): ListMatch | undefined {
    return this.#matcher.match(identity)
  }

  async ready(): Promise<void> {
    if (this.version > 0) return
    if (this.error) throw this.error
    if (this.#isClosed) throw this.#fault(undefined, 'closed before it was loaded')
    await new Promise<void>((resolve, reject) => {
      this.#waiters.push({ resolve, reject })
      this.#hold ??= setInterval(() => {}, 2 ** 30)
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#watcher.close()
    this.#loading?.stop()
    if (this.version === 0) this.#answer(this.#fault(undefined, 'closed before it was loaded'))
  }

  async #load(): Promise<void> {
    if (this.#loading || this.#isClosed) return
    const loading = load({ path: this.#path, format: this.#format })
    this.#loading = loading
    let result: LoadResult
    try {
      result = await loading.result
    } catch (error) {
      // The next poll tries again.
      this.#failToRead(error as Error)
      return
    } finally {
      this.#loading = undefined
      loading.stop()
    }
    this.#take(result)
    // Reads contents that have come meanwhile.
    this.#watcher.look()
  }

  #take(result: LoadResult): void {
    if (this.#isClosed || result.kind === 'changing') return
    this.#watcher.know(result.stamp)
    if (result.kind === 'faulty') {
      this.#fail(result.line, result.message)
      return
    }
    const shrunk = this.#allowShrink ? undefined : this.#whyTooFew(result.data)
    if (shrunk !== undefined) {
      this.#fail(undefined, shrunk)
      return
    }
    this.#matcher = new DataMatcher(result.data)
    this.size = result.data.size
    this.version++
    this.error = undefined
    this.#answer()
  }

  /** The file may be cut off, or written by a job that failed. */
  #whyTooFew({ size }: ListData): string | undefined {
    if (size === 0) return 'expected entries, got none (with allowShrink it may be empty)'
    if (2 * size >= this.size) return undefined
    return `expected at least half of the ${this.size} entries that there were, got ${size} (with allowShrink it may shrink)`
  }

  #failToRead({ message }: Error): void {
    this.#fail(undefined, `expected a file that can be read: ${message}`)
  }

  /** Warns once of each fault; the poll finds it again and again. */
  #fail(line: number | undefined, message: string): void {
    if (this.#isClosed) return
    const error = this.#fault(line, message)
    if (this.error?.message === error.message) return
    this.error = error
    const meanwhile =
      this.version > 0 ? `the ${this.size} entries from before stay in use` : 'it matches nothing so far'
    emitWarning('SLUICE_LIST_FAILED', `${error.message}; ${meanwhile}`)
    if (this.version === 0) this.#answer(error)
  }

  #fault(line: number | undefined, message: string): SluiceError {
    const where = line === undefined ? this.#shownPath : `${this.#shownPath}:${line}`
    return new SluiceError('INVALID_LIST', `fileList: ${where}: ${message}`)
  }

  #answer(error?: SluiceError): void {
    clearInterval(this.#hold)
    this.#hold = undefined
    for (const { resolve, reject } of this.#waiters.splice(0)) error ? reject(error) : resolve()
  }
}
