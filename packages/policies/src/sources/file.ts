import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { resolve } from 'node:path'
import { FileWatcher, stampOf } from '@sluice/core/internal'
import type { Loaded, PoliciesSource } from './source.js'

/** Largest file, in bytes. */
const MAX_BYTES = 33_554_432

/** A document in a file. It is read again when the file, or a link on the way to it, has other contents. */
export class FileSource implements PoliciesSource {
  readonly name: string
  /** Absolute, so that a process may change its directory. */
  readonly #path: string
  #watcher: FileWatcher | undefined

  constructor(path: string) {
    this.name = path
    this.#path = resolve(path)
  }

  async load(): Promise<Loaded | undefined> {
    const file = await open(this.#path, 'r')
    try {
      const before = await file.stat({ bigint: true })
      if (before.size > MAX_BYTES) throw new Error(`expected at most ${MAX_BYTES} bytes, got ${before.size}`)
      const bytes = await file.readFile()
      const stamp = stampOf(before)
      // It is still being written: half of it may have been read.
      if (stampOf(await file.stat({ bigint: true })) !== stamp) return undefined
      this.#watcher?.know(stamp)
      const version = createHash('sha256').update(bytes).digest('hex').slice(0, 12)
      return { name: this.name, version, text: decoded(bytes) }
    } finally {
      await file.close()
    }
  }

  watch(onChange: () => void, onFailure: (error: Error) => void): void {
    this.#watcher = new FileWatcher(this.#path, onChange, onFailure)
  }

  look(): void {
    this.#watcher?.look()
  }

  close(): void {
    this.#watcher?.close()
  }
}

function decoded(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new Error('expected text in UTF-8')
  }
}
