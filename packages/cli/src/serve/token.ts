import { createHash, timingSafeEqual } from 'node:crypto'

/** The secret that callers show. Compared in a time that says nothing of it. */
export class Token {
  readonly #hash: Buffer

  constructor(text: string) {
    this.#hash = hashOf(text)
  }

  is(given: string | undefined): boolean {
    return timingSafeEqual(hashOf(given ?? ''), this.#hash)
  }
}

/** Hashes are of one length, as `timingSafeEqual` needs. */
function hashOf(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
