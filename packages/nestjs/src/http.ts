import { SluiceError, type Verdict } from '@sluice/core'
import { asFailure, type Enforcing, enforce, type Guard, type HttpContext, propertyOf } from '@sluice/core/http'
import { ExpressContext, enforcingExpress } from '@sluice/express/platform'
import { enforcingFastify, FastifyContext } from '@sluice/fastify/platform'

// biome-ignore lint/suspicious/noExplicitAny: a request of Express or of Fastify, or a socket
export type NestGuard = Guard<any>
export type PlatformContext = ExpressContext | FastifyContext
type Next = (...failure: unknown[]) => void

/**
 * The core's view of a request of the platform that Nest runs on.
 *
 * @throws SluiceError `INVALID_POLICY` where that is neither Express nor Fastify
 */
export function platformContext(request: unknown, response: unknown): PlatformContext {
  if (isReply(response)) return new FastifyContext(request as never, response as never)
  if (isOfExpress(request)) return new ExpressContext(request as never, response as never)
  throw new SluiceError(
    'INVALID_POLICY',
    'SluiceGuard: expected a request of Express or Fastify: the addresses of clients of other platforms are unknown',
  )
}

export function isReply(response: unknown): response is { readonly raw: object; readonly request: unknown } {
  if (typeof response !== 'object' || response === null) return false
  const reply = response as { raw?: unknown; hijack?: unknown }
  return typeof propertyOf(reply, 'raw') === 'object' && typeof propertyOf(reply, 'hijack') === 'function'
}

export function isOfExpress(request: unknown): boolean {
  const app = typeof request === 'object' && request && propertyOf(request as { app?: unknown }, 'app')
  // A function, which no JSON of a client has.
  return typeof app === 'function' && typeof (app as { settings?: unknown }).settings === 'object'
}

/** Runs a guard on requests of both platforms: it sends refusals by itself, and calls `next` for the rest and for errors. */
export function enforcerFor(guard: NestGuard): (context: PlatformContext, next: Next) => void {
  const express = enforcingExpress(guard.requestProperty)
  // Nest's exception filters send no message of an unknown error to clients.
  const fastify = { ...enforcingFastify(guard.requestProperty), failure: asFailure }
  return (context, next) => {
    const by = context instanceof FastifyContext ? fastify : express
    enforce(guard, context as HttpContext, by as unknown as Enforcing<HttpContext>, next)
  }
}

/** Sets a field of the response, for errors that come with fields. */
export function setHeader(context: PlatformContext, name: string, value: string): void {
  if (context instanceof FastifyContext) context.reply.header(name, value)
  else context.response.setHeader(name, value)
}

export function setVerdict(context: HttpContext, property: string, verdict: Verdict | undefined): void {
  if (verdict) Object.assign(context.request as object, { [property]: verdict })
}
