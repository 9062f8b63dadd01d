import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { ownFieldsOf } from '@sluice/core/internal'
import { readBody } from '../body.js'
import type { Exchange, Reply } from '../exchange.js'
import { Problem } from '../problem.js'
import { jsonReply } from '../reply.js'

/** Bytes of the secret of a link, and of a session: 256 bits. */
const SECRET_BYTES = 32
/** How long a link waits to be opened, and how long its session lasts, in ms. */
const LINK_MS = 60_000
const SESSION_MS = 28_800_000
/** The header that shows the session. */
const SESSION_HEADER = 'sluice-session'

/** A link that opens one session, once. */
export class Link {
  readonly secret = randomSecret()
  readonly #hash = hashOf(this.secret)
  readonly #now: () => number
  readonly #until: number
  #session: { readonly hash: Buffer; readonly until: number } | undefined

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
    this.#until = now() + LINK_MS
  }

  /** Exchanges the secret for a session. @throws Problem */
  async open(exchange: Exchange): Promise<Reply> {
    const { secret } = ownFieldsOf(((await readBody(exchange)) ?? {}) as { readonly secret?: unknown })
    const isRight = isOf(secret, this.#hash)
    if (this.#session) throw new Problem(403, 'this link was opened already: start the console again for another')
    if (this.#now() > this.#until) throw new Problem(403, 'this link is too old: start the console again for another')
    if (!isRight) throw new Problem(403, 'this is no link of this console')
    const session = randomSecret()
    this.#session = { hash: hashOf(session), until: this.#now() + SESSION_MS }
    return jsonReply({ session })
  }

  /** Whether a request shows the session. */
  isShownIn({ headers }: IncomingMessage): boolean {
    const given = ownFieldsOf(headers)[SESSION_HEADER]
    if (!this.#session) return false
    return isOf(given, this.#session.hash) && this.#now() <= this.#session.until
  }
}

/** Hashes are of one length, as `timingSafeEqual` needs: the time of a comparison reveals nothing. */
const hashOf = (text: string): Buffer => createHash('sha256').update(text).digest()
const isOf = (given: unknown, hash: Buffer): boolean =>
  typeof given === 'string' && timingSafeEqual(hashOf(given), hash)

function randomSecret(): string {
  return randomBytes(SECRET_BYTES).toString('base64url')
}

/**
 * Refuses requests that came over a proxy: the console is for this machine alone.
 *
 * @throws Problem
 */
export function refuseForwarded({ raw: { headers } }: Exchange): void {
  const forwarding = Object.keys(headers).find((name) => /^(forwarded|via|x-forwarded-.*|x-real-ip)$/.test(name))
  if (forwarding !== undefined) throw new Problem(403, 'the console answers no proxies')
}
