import { accessSync, constants } from 'node:fs'
import { type FileHandle, lstat, open, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { cannotWrite, checkOwnFile } from '@sluice/core/internal'
import { MISSING, START } from './form.js'

/** The file and the earlier ones beside it: `FILE`, `FILE.1` … */
const FILES = 8
/** How long lines wait to be written together, in ms. */
const WRITE_AFTER_MS = 100
/** Until the next try, where nothing can be written. */
const AGAIN_AFTER_MS = 1000
/** Characters that wait for a slow disk at most. */
const MAX_WAITING = 1024 * 1024

const KIND = { name: 'recording', start: START, mayBeEmpty: true }

export interface RecordFileOptions {
  readonly file: string
  /** The first line of each file, without its break. */
  readonly head: string
  /** Of all files together. */
  readonly maxBytes: number
  /** Called with what is wrong with the file. */
  readonly onFailure: (error: Error) => void
}

/**
 * Writes lines to a file of bounded size that its owner alone can read, off the path of requests. An earlier recording of that name
 * is kept beside it, as are those that are full. What cannot be written in time is dropped and counted.
 */
export class RecordFile {
  written = 0
  dropped = 0
  readonly #options: RecordFileOptions
  readonly #maxFileBytes: number
  #handle: FileHandle | undefined
  /** Where the next whole line goes. */
  #end = 0
  #waiting: string[] = []
  #waitingLength = 0
  /** Dropped records that no line tells of. */
  #untold = 0
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> | undefined
  #isClosed = false
  /** Another process writes to the file. */
  #isLost = false

  /** @throws Error with one sentence for the user, where the file may not be written */
  constructor(options: RecordFileOptions) {
    this.#options = options
    this.#maxFileBytes = Math.floor(options.maxBytes / FILES)
    for (const name of this.#names()) checkOwnFile(name, KIND)
    checkFolderOf(options.file)
  }

  /** Takes a line, without its break. Never waits. */
  add(line: string): void {
    if (this.#isClosed) return
    if (this.#isLost || this.#waitingLength + line.length > MAX_WAITING) {
      this.#drop(1)
      return
    }
    this.#waiting.push(line)
    this.#waitingLength += line.length + 1
    this.#timer ??= setTimeout(() => this.#begin(), WRITE_AFTER_MS).unref()
  }

  /** Writes what waits, and closes the file. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#writing
    await this.#write()
    await this.#handle?.close().catch(() => {})
    this.#handle = undefined
  }

  #begin(): void {
    this.#timer = undefined
    if (this.#writing) return
    this.#writing = this.#write().then((isWritten) => {
      this.#writing = undefined
      if (this.#isClosed || this.#waiting.length === 0) return
      this.#timer ??= setTimeout(() => this.#begin(), isWritten ? 0 : AGAIN_AFTER_MS).unref()
    })
  }

  /** Writes what waits. Resolves to whether that was possible. */
  async #write(): Promise<boolean> {
    const lines = this.#waiting
    if (lines.length === 0) return true
    this.#waiting = []
    this.#waitingLength = 0
    const untold = this.#untold
    try {
      await this.#append(untold > 0 ? [`${MISSING}${untold}`, ...lines] : lines)
      this.#untold -= untold
      this.written += lines.length
      return true
    } catch (error) {
      this.#drop(lines.length)
      await this.#undo()
      this.#options.onFailure(cannotWrite(this.#options.file, error))
      return false
    }
  }

  async #append(lines: readonly string[]): Promise<void> {
    const text = Buffer.from(lines.map((line) => `${line}\n`).join(''))
    if (this.#handle && this.#end + text.length > this.#maxFileBytes) await this.#leave()
    this.#handle ??= await this.#newFile()
    const bytes = this.#end === 0 ? Buffer.concat([Buffer.from(`${this.#options.head}\n`), text]) : text
    for (let at = 0; at < bytes.length; ) {
      at += (await this.#handle.write(bytes, at, bytes.length - at, this.#end + at)).bytesWritten
    }
    this.#end += bytes.length
  }

  /** Takes back what a full disk has taken of lines that are dropped. */
  async #undo(): Promise<void> {
    const handle = this.#handle
    await handle?.truncate(this.#end).catch(() => {})
    // Without its first line it would be nobody's.
    if (this.#end > 0) return
    this.#handle = undefined
    await handle?.close().catch(() => {})
  }

  #drop(count: number): void {
    this.dropped += count
    this.#untold += count
  }

  /** A new file in place of what was there, which is kept beside it. */
  async #newFile(): Promise<FileHandle> {
    const names = this.#names()
    for (let n = names.length - 1; n > 0; n--) {
      const [earlier, name] = [names[n - 1] as string, names[n] as string]
      if (!checkOwnFile(earlier, KIND)) continue
      checkOwnFile(name, KIND)
      await rename(earlier, name)
    }
    this.#end = 0
    // Never through a link.
    return open(this.#options.file, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600)
  }

  /** The file is full. @throws Error where another process has put its own in its place */
  async #leave(): Promise<void> {
    const handle = this.#handle as FileHandle
    this.#handle = undefined
    const [own, found] = [await handle.stat(), await lstat(this.#options.file).catch(() => undefined)]
    await handle.close()
    if (!found || (found.ino === own.ino && found.dev === own.dev)) return
    this.#isLost = true
    throw new Error('another process writes to it: each needs a file of its own')
  }

  #names(): string[] {
    const { file } = this.#options
    return Array.from({ length: FILES }, (_, n) => (n === 0 ? file : `${file}.${n}`))
  }
}

function checkFolderOf(file: string): void {
  try {
    accessSync(dirname(file), constants.W_OK)
  } catch (error) {
    throw cannotWrite(file, error)
  }
}
