import { isIPv6 } from 'node:net'
import { isAddressForgeable } from '../../limiter/open-proxy.js'
import { isPrivateAddress } from '../../policy/private-address.js'
import type { HttpContext, RawResponse } from '../../request/context.js'
import { identityIn } from '../../store/identity.js'
import { addressText, ipAddress } from '../../util/ip-address.js'
import { propertyOf } from '../../util/property-of.js'
import type { LimiterWarning, Warnings } from '../../util/warnings.js'
import { identitiesIn } from '../../verdict/decision.js'
import { DECISION, type Verdict } from '../../verdict/verdict.js'
import { hasLongChain, remedyFor } from '../identity/ip.js'

/** The number of requests that are inspected: enough to show mistakes in the set-up, too few to cost anything. */
const LOOKED_AT = 1000

/** The number of requests after which a field that all of them have comes from a proxy. */
const ALL_PROXIED = 100

/** Fields by which proxies name the client. Frameworks read the first alone. */
const CLIENT_FIELDS = [
  ['x-forwarded-for', 'X-Forwarded-For'],
  ['forwarded', 'Forwarded'],
  ['x-real-ip', 'X-Real-IP'],
  ['cf-connecting-ip', 'CF-Connecting-IP'],
] as const

/**
 * Inspects the first thousand requests of a limiter for mistakes in the set-up that no option shows. Warns once about each
 * kind. Changes nothing.
 */
export class RequestAdvice<Request> {
  readonly #where: string
  readonly #warnings: Warnings<LimiterWarning>
  readonly #countsAddresses: boolean
  readonly #seen = new WeakSet<RawResponse>()
  readonly #warned = new Set<string>()
  #looked = 0
  /** Requests from public addresses with a field that names another client. */
  #proxied = 0
  /** The address of all requests so far; undefined once there are two, or one that is public. */
  #only: string | undefined

  /** `countsAddresses`: whether a limit is by address. */
  constructor(where: string, warnings: Warnings<LimiterWarning>, countsAddresses: boolean) {
    this.#where = where
    this.#warnings = warnings
    this.#countsAddresses = countsAddresses
  }

  get #isDone(): boolean {
    return this.#looked >= LOOKED_AT
  }

  request(context: HttpContext<Request>): void {
    if (this.#isDone) return
    const { response } = context
    const isSeen = this.#seen.has(response)
    // Another field of a query, or another message over a socket: no evidence of more clients.
    if (isSeen && propertyOf(context, 'sharesResponse')) return
    this.#looked++
    if (isSeen) {
      this.#warnOnce(
        'SLUICE_SAME_LIMITER_TWICE',
        'this limiter ran twice for one request and charged it twice: use it in one place, on the app or on the route',
      )
    }
    this.#seen.add(response)
    if (this.#countsAddresses) this.#lookAtAddress(context)
  }

  verdict(verdict: Verdict): void {
    if (this.#isDone) return
    for (const text of identitiesIn(verdict[DECISION])) {
      const { kind, value } = identityIn(text)
      if (kind === 'ip' || typeof value !== 'string' || !isIPv6(value) || value.startsWith('::ffff:')) continue
      this.#warnOnce(
        'SLUICE_UNGROUPED_IPV6',
        `a key function returned the IPv6 address of a client, which can use 2^64 others of its network: use byIp(), ` +
          'or compose(byIp(), …), which counts a /64 as one client',
      )
    }
  }

  #lookAtAddress(context: HttpContext<Request>): void {
    isAddressForgeable(context, this.#warnings.emit)
    this.#lookAtProxy(context)
    const ip = hasLongChain(context) ? undefined : context.ip
    if (this.#looked === 1) this.#only = isPrivate(ip) ? ip : undefined
    else if (ip !== this.#only) this.#only = undefined
    if (this.#isDone && this.#only !== undefined) {
      this.#warnOnce(
        'SLUICE_ONE_CLIENT',
        `all of the first ${LOOKED_AT} requests came from ${this.#only}, a private address: if that is a proxy, ` +
          `${remedyFor(context)}, or all clients share one limit`,
      )
    }
  }

  /** A client may write such fields itself. They come from a proxy if its address is private, or if all requests have them. */
  #lookAtProxy(context: HttpContext<Request>): void {
    const unread = unreadField(context)
    if (unread === undefined) return
    const peer = peerOf(context)
    if (peer === undefined) return
    if (!isPrivate(peer) && !(++this.#proxied === this.#looked && this.#looked >= ALL_PROXIED)) return
    const missing = unread === 'X-Forwarded-For' ? '' : 'have it send X-Forwarded-For, which frameworks read; '
    this.#warnOnce(
      'SLUICE_UNTRUSTED_PROXY',
      `requests come through a proxy (from ${peer}, with ${unread}) that the application does not trust, so all ` +
        `clients behind it count as one: ${missing}${remedyFor(context)}`,
    )
  }

  #warnOnce(code: LimiterWarning, message: string): void {
    if (this.#warned.has(code)) return
    this.#warned.add(code)
    this.#warnings.emit(code, `${this.#where}: ${message}`)
  }
}

/** The field that names the client, where the framework does not read it. */
function unreadField(context: HttpContext<unknown>): string | undefined {
  const proxyTrust = propertyOf(context, 'proxyTrust')
  if (proxyTrust === undefined) return undefined
  const [, name] = CLIENT_FIELDS.find(([field]) => context.header(field) !== undefined) ?? []
  if (name === 'X-Forwarded-For' || name === undefined) return proxyTrust === 'none' ? name : undefined
  // Such as Koa's `proxyIpHeader`.
  return context.ip === peerOf(context) ? name : undefined
}

/** The address of the connection, whatever the headers say. */
function peerOf({ response }: HttpContext<unknown>): string | undefined {
  try {
    return (response.req as { socket?: { remoteAddress?: string } } | undefined)?.socket?.remoteAddress
  } catch {
    // HTTP/2 does not permit access to a socket that is gone.
    return undefined
  }
}

function isPrivate(address: string | undefined): boolean {
  const known = address === undefined ? undefined : ipAddress(address)
  return known !== undefined && isPrivateAddress(addressText(known.first))
}
