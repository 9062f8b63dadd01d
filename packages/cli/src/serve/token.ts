import { createHash, timingSafeEqual } from 'node:crypto'

/** The secret of callers. The time of a comparison reveals nothing of it. */
export class Token {
  readonly #hash: Buffer

  constructor(text: string) {
    this.#hash = hashOf(text)
  }

  is(given: string | undefined): boolean {
    return timingSafeEqual(hashOf(given ?? ''), this.#hash)
  }

  /** Whether `Authorization` shows it: by `Bearer`, or as the password of `Basic`, which a URL can hold. */
  isShownIn(authorization = ''): boolean {
    const [, scheme = '', given = ''] = /^(Bearer|Basic) +(\S+)$/i.exec(authorization) ?? []
    if (scheme.toLowerCase() !== 'basic') return this.is(given)
    const pair = Buffer.from(given, 'base64').toString()
    return this.is(pair.slice(pair.indexOf(':') + 1))
  }
}

/** Hashes are of one length, as `timingSafeEqual` needs. */
function hashOf(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
