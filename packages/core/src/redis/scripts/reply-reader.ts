import type { Reply } from '../../kernels/reply.js'
import { SluiceError } from '../../util/errors.js'

/**
 * Reads big-endian numbers and texts in sequence, as struct.pack of Lua writes them.
 *
 * @throws SluiceError `STORE_UNAVAILABLE` if the reply is not of this form
 */
export class ReplyReader implements Reply {
  readonly #bytes: Buffer
  /** The position in bytes from the start. Set it to read a part again. */
  at = 0

  constructor(bytes: unknown) {
    if (!(bytes instanceof Uint8Array)) throw unreadable(`expected bytes, got ${typeof bytes}`)
    this.#bytes = bytes as Buffer
  }

  uint8(): number {
    return this.#bytes[this.at++] as number
  }

  uint16(): number {
    return this.uint8() * 0x100 + this.uint8()
  }

  uint32(): number {
    return this.uint16() * 0x10000 + this.uint16()
  }

  uint48(): number {
    const { at } = this
    const bytes = this.#bytes
    this.at = at + 6
    const high = (bytes[at] as number) * 0x100 + (bytes[at + 1] as number)
    const middle = (bytes[at + 2] as number) * 0x100 + (bytes[at + 3] as number)
    const low = (bytes[at + 4] as number) * 0x100 + (bytes[at + 5] as number)
    return high * 0x100000000 + middle * 0x10000 + low
  }

  uint56(): number {
    const high = this.uint8()
    // From here on a number could round.
    if (high >= 0x20) throw unreadable('expected numbers below 2^53')
    return high * 0x1000000000000 + this.uint48()
  }

  text(bytes: number): string {
    const from = this.at
    this.at += bytes
    return this.#bytes.toString('utf8', from, this.at)
  }

  get length(): number {
    return this.#bytes.length
  }

  readonly unreadable = unreadable

  /** Call it when everything is read. */
  end(): void {
    if (this.at !== this.#bytes.length) throw unreadable(`expected ${this.at} bytes, got ${this.#bytes.length}`)
  }
}

export function unreadable(why: string): SluiceError {
  return new SluiceError('STORE_UNAVAILABLE', `redis: a reply that cannot be read: ${why}`)
}
