import { Stream } from 'node:stream'
import type { LimitForm, RateLimitOptions, Verdict } from '@sluice/core'
import {
  asFailure,
  type BasicGuard,
  createGuard,
  type Guard,
  holdPermitsUntil,
  type Outcome,
  refuseUncalled,
  streamEnd,
} from '@sluice/core/http'
import type { Context, Middleware, Next } from 'koa'
import { KoaContext } from './context.js'
import { runHandler } from './handler.js'

declare module 'koa' {
  interface DefaultState {
    /** The verdict of the last limiter that decided on this request. */
    rateLimit?: Verdict
  }
}

export type KoaRateLimitOptions = RateLimitOptions<Context>

/** A Koa middleware, and the limiter behind it: to peek, reset, block and unblock. */
export type RateLimitMiddleware = Middleware & Pick<Guard<Context>, 'limiter'>

/**
 * Limits requests in Koa, for an app or a route. The verdict is `ctx.state.rateLimit`.
 *
 * @example app.use(rateLimit({ limit: 100, window: '1m' }))
 * @throws SluiceError `INVALID_POLICY`; what goes wrong with a request is thrown into Koa's error handling
 */
export function rateLimit(options: KoaRateLimitOptions & LimitForm, ...uncalled: never[]): RateLimitMiddleware {
  refuseUncalled('rateLimit({ limit: 100, window: "1m" })', uncalled)
  return limitingKoa(createGuard(options))
}

/** The middleware of a guard. */
export function limitingKoa<Deciding extends BasicGuard<Context>>(guard: Deciding) {
  const { requestProperty: property } = guard
  const goOn = guard.holdsPermits ? goOnHolding : goOnFreely

  // Not `async`: an immediate decision continues at once, and others make no more promises than needed. By a key: bundlers
  // rename a function inside another of its name.
  const named = {
    rateLimit(ctx: Context, next: Next): Promise<void> | undefined {
      let outcome: Outcome | Promise<Outcome>
      try {
        outcome = guard(new KoaContext(ctx))
      } catch (thrown) {
        return fail(thrown)
      }
      return outcome instanceof Promise
        ? outcome.then((late) => goOn(late, ctx, next, property), fail)
        : goOn(outcome, ctx, next, property)
    },
  }

  return Object.assign(named.rateLimit, { limiter: guard.limiter as Deciding['limiter'] })
}

function fail(thrown: unknown): never {
  throw asFailure(thrown)
}

/** Puts an outcome on the response, and calls `next` if the request is admitted. */
function goOnFreely(outcome: Outcome, ctx: Context, next: Next, property: string): Promise<void> | undefined {
  const { proceed, verdict, headers, reply, error } = outcome
  const { res } = ctx
  if (verdict) ctx.state[property] = verdict
  // As `ctx.set` does, which looks for other types of values first. Before the body, for which Koa would guess a type.
  if (!res.headersSent) for (const [name, value] of headers) res.setHeader(name, value)
  if (reply) {
    ctx.status = reply.status
    ctx.body = reply.body instanceof Uint8Array ? Buffer.from(reply.body) : reply.body
  }
  if (error) throw error
  if (outcome.handler) return runHandler(outcome.handler, ctx, next, verdict as Verdict)
  return proceed ? next() : undefined
}

/** The same for a limiter with permits, which a handler whose client has left holds until it is done. */
function goOnHolding(outcome: Outcome, ctx: Context, next: Next, property: string): Promise<void> | undefined {
  const handled = goOnFreely(outcome, ctx, next, property)
  if (handled && outcome.verdict) holdPermitsUntil(ctx.res, handled, () => isDone(ctx), outcome.verdict)
  return handled
}

/** Whether nothing works for the response once the middleware is through. */
async function isDone(ctx: Context): Promise<boolean> {
  // The handler responds by itself, maybe later.
  if (ctx.respond === false) return false
  // Koa destroys the stream when the client has left. Its source may take longer.
  if (ctx.body instanceof Stream) await streamEnd(ctx.body as never)
  return true
}
