import { Readable } from 'node:stream'
import type { ProxyTrust } from '@sluice/core'
import { headerText, noSignedCookies, pathOf, propertyOf, RequestContext, unreadablePath } from '@sluice/core/http'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** The core's view of a request of Fastify. */
export class FastifyContext extends RequestContext<FastifyRequest> {
  readonly reply: FastifyReply

  constructor(request: FastifyRequest, reply: FastifyReply) {
    super(request)
    this.reply = reply
  }

  get response() {
    return this.reply.raw
  }

  /** With `useSemicolonDelimiter`, Fastify takes the text after a semicolon for the query. */
  override get path(): string {
    const path = pathOf(this.target)
    const end = path.indexOf(';')
    if (end <= 0) return path
    const splits = splitsAtSemicolons(this.request)
    if (splits === undefined) return unreadablePath(path)
    return splits ? path.slice(0, end) : path
  }

  /** By the app's `trustProxy` setting. */
  get ip(): string | undefined {
    return this.request.ip
  }

  override get proxyTrust(): ProxyTrust {
    const { server } = this.request.server
    let trust = trusts.get(server)
    if (trust === undefined) {
      trust = trustOf(this.request, server)
      trusts.set(server, trust)
    }
    return trust
  }

  /** All paths without a route share one name. */
  get route(): string | undefined {
    return this.request.is404 ? '(no route)' : this.request.routeOptions.url
  }

  /** As @fastify/cookie verifies it. */
  signedCookie(name: string): string | undefined {
    const { cookies, unsignCookie } = this.request as FastifyRequest & Partial<CookieSupport>
    if (!cookies || !unsignCookie) throw noSignedCookies('register @fastify/cookie with a secret before this limiter')
    const signed = Object.hasOwn(cookies, name) ? cookies[name] : undefined
    return (signed && unsignCookie.call(this.request, signed).value) || undefined
  }

  override getResponseHeader(name: string): string | undefined {
    return headerText(this.reply.getHeader(name))
  }

  /** Fastify does not destroy a stream that is sent too late, so its resources would leak. */
  override disableResponse(): void {
    this.reply.send = function send(this: FastifyReply, payload?: unknown) {
      discard(payload)
      // Marks the handler as done, so that its permits are released. Sends nothing.
      this.raw.end()
      return this
    }
  }
}

/**
 * Undefined if the application sets it at the top and has `routerOptions`: these show a default of Fastify then, which does not
 * count, in the same way as a `false` of the application, which does.
 */
function splitsAtSemicolons({ server }: FastifyRequest): boolean | undefined {
  const { routerOptions, ...config } = server.initialConfig as SemicolonOptions & { routerOptions?: SemicolonOptions }
  const splits = (routerOptions ?? config).useSemicolonDelimiter === true
  return !splits && config.useSemicolonDelimiter ? undefined : splits
}

interface SemicolonOptions {
  readonly useSemicolonDelimiter?: boolean
}

function discard(payload: unknown): void {
  const { body = payload } = (payload ?? {}) as { body?: unknown }
  if (body instanceof ReadableStream) body.cancel().catch(() => {})
  else if (body instanceof Readable) body.destroy()
}

/** The property that @fastify/cookie adds to requests. */
interface CookieSupport {
  readonly cookies: Readonly<Record<string, string | undefined>> | null
  unsignCookie(value: string): { readonly valid: boolean; readonly value: string | null }
}

/** By server: the setting never changes. */
const trusts = new WeakMap<object, ProxyTrust>()

/** Fastify does not expose `trustProxy`. Requests have `ips` where it is set. Its result for a made-up request shows the rest. */
function trustOf(request: FastifyRequest, app: object): ProxyTrust {
  if (propertyOf(request, 'ips') === undefined) return 'none'
  const hops = Array.from({ length: 64 }, (_, i) => `203.0.113.${i}`)
  const raw = { headers: { 'x-forwarded-for': hops.join(', ') }, socket: { remoteAddress: '198.51.100.1' } }
  const isOpen = Object.create(request, { raw: { value: raw } }).ip === hops[0]
  return isOpen ? { everyone: 'trustProxy: true', remedy: 'name your proxies', app } : 'named'
}
