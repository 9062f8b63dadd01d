import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Loaded, PoliciesSource } from './source.js'

/** Largest file, in bytes. */
const MOST_BYTES = 33_554_432

/** A document in a file. */
export class FileSource implements PoliciesSource {
  readonly name: string
  /** Absolute, so that a process may change its directory. */
  readonly #path: string

  constructor(path: string) {
    this.name = path
    this.#path = resolve(path)
  }

  async load(): Promise<Loaded> {
    const bytes = await readFile(this.#path)
    if (bytes.length > MOST_BYTES) throw new Error(`expected at most ${MOST_BYTES} bytes, got ${bytes.length}`)
    const version = createHash('sha256').update(bytes).digest('hex').slice(0, 12)
    return { name: this.name, version, text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) }
  }
}
