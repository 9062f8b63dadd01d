import { asFailure, createGuard, type Guard, type Outcome, type RateLimitOptions } from '@sluice/core'
import type { Context, Middleware, Next } from 'koa'
import { KoaContext } from './context.js'

export type KoaRateLimitOptions = RateLimitOptions<Context>

/** A Koa middleware, and the limiter behind it: to peek, reset, block and unblock. */
export type RateLimitMiddleware = Middleware & Pick<Guard<Context>, 'limiter'>

/**
 * Limits requests in Koa, for an app or a route. The verdict is `ctx.state.rateLimit`.
 *
 * @example app.use(rateLimit({ limit: 100, window: '1m' }))
 * @throws SluiceError `INVALID_POLICY`; what goes wrong with a request is thrown into Koa's error handling
 */
export function rateLimit(options: KoaRateLimitOptions): RateLimitMiddleware {
  const guard = createGuard(options)

  async function rateLimit(ctx: Context, next: Next): Promise<void> {
    let outcome: Outcome
    try {
      const decided = guard(new KoaContext(ctx))
      outcome = decided instanceof Promise ? await decided : decided
    } catch (thrown) {
      throw asFailure(thrown)
    }
    const { proceed, verdict, headers, reply } = outcome
    if (verdict) ctx.state.rateLimit = verdict
    // Before the body, for which Koa would guess a content type.
    for (const [name, value] of headers) ctx.set(name, value)
    if (reply) {
      ctx.status = reply.status
      ctx.body = reply.body instanceof Uint8Array ? Buffer.from(reply.body) : reply.body
    }
    if (proceed) await next()
  }

  return Object.assign(rateLimit, { limiter: guard.limiter })
}
