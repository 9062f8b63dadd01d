import { Readable } from 'node:stream'
import { headerText, noSignedCookies, RequestContext, warnOfOpenProxy } from '@sluice/core'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** Fastify's answers to what the core asks of a request. */
export class FastifyContext extends RequestContext<FastifyRequest> {
  readonly reply: FastifyReply

  constructor(request: FastifyRequest, reply: FastifyReply) {
    super(request)
    this.reply = reply
  }

  get response() {
    return this.reply.raw
  }

  /** By the app's `trustProxy` setting. */
  get ip(): string | undefined {
    const { server } = this.request.server
    if (!seen.has(server)) {
      seen.add(server)
      if (trustsEveryone(this.request)) {
        warnOfOpenProxy(server, 'trustProxy: true', 'name your proxies')
      }
    }
    return this.request.ip
  }

  /** Fastify has `ips` where it trusts a proxy. */
  get trustsProxies(): boolean {
    return this.request.ips !== undefined
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

  getResponseHeader(name: string): string | undefined {
    return headerText(this.reply.getHeader(name))
  }

  /** Fastify leaves a stream that is sent too late open, and what it holds. */
  silence(): void {
    this.reply.send = function send(this: FastifyReply, payload?: unknown) {
      discard(payload)
      // Tells that the handler has answered, by which its permits are released. Sends nothing.
      this.raw.end()
      return this
    }
  }
}

function discard(payload: unknown): void {
  const { body = payload } = (payload ?? {}) as { body?: unknown }
  if (body instanceof ReadableStream) body.cancel().catch(() => {})
  else if (body instanceof Readable) body.destroy()
}

/** What @fastify/cookie adds to requests. */
interface CookieSupport {
  readonly cookies: Readonly<Record<string, string | undefined>> | null
  unsignCookie(value: string): { readonly valid: boolean; readonly value: string | null }
}

/** What @fastify/cookie adds to requests. */
interface CookieSupport {
  readonly cookies: Readonly<Record<string, string | undefined>> | null
  unsignCookie(value: string): { readonly valid: boolean; readonly value: string | null }
}

/** Servers that have been looked at. */
const seen = new WeakSet<object>()

/** Fastify does not show what `trustProxy` is; what it makes of a request that came through anybody does. */
function trustsEveryone(request: FastifyRequest): boolean {
  const hops = Array.from({ length: 64 }, (_, i) => `203.0.113.${i}`)
  const raw = { headers: { 'x-forwarded-for': hops.join(', ') }, socket: { remoteAddress: '198.51.100.1' } }
  return Object.create(request, { raw: { value: raw } }).ip === hops[0]
}
