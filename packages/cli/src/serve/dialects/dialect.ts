import type { IncomingMessage, ServerResponse } from 'node:http'
import type { TrustedProxies } from '@sluice/core/internal'
import type { Named } from '../cannot.js'
import type { Decide } from '../decider.js'
import type { DecidedBy } from '../decision.js'
import type { Token } from '../token.js'

/** Settings that every dialect needs. */
export interface DialectSettings {
  readonly decide: Decide
  /** Proxies whose headers are trusted. Undefined if a dialect reads none. */
  readonly trusted: TrustedProxies | undefined
  /** Undefined if callers show none. */
  readonly token: Token | undefined
  /** The keys and tiers that callers may name, where a dialect permits it. */
  readonly named: Named
}

/** The status line and the headers that report a refusal and its status to a gateway. */
export interface Refusal {
  readonly status: number
  readonly headers: readonly (readonly [string, string])[]
}

/** The form of requests to the decider, and of its decisions. */
export interface Dialect {
  /** Whether headers that a gateway sets identify the client. */
  readonly readsHeaders: boolean
  /** Whether callers name identities, tiers and costs themselves. */
  readonly namesKeys: boolean
  /** The remedy where the address of a proxy is taken for that of all clients. */
  readonly proxyRemedy: string
  /**
   * The form of a client's refusal, for a gateway. A mistake of its client is a refusal, too, and no error of the decider.
   * Undefined for callers that are none.
   */
  readonly refusalOf: ((status: number, decidedBy: DecidedBy) => Refusal) | undefined
  /**
   * Responds to one request to the decider.
   *
   * @throws BadInput, at once or later, before anything is sent
   */
  answer(request: IncomingMessage, response: ServerResponse, settings: DialectSettings): void | Promise<void>
}
