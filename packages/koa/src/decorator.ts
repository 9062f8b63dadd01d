import type { LimitForm } from '@sluice/core'
import { decoratorFor, type HandlerDecorator } from '@sluice/core/http'
import type { Context, Next } from 'koa'
import { type KoaRateLimitOptions, rateLimit } from './rate-limit.js'

/** A method that is middleware. Written as a method, so that one may ask for a narrower context. */
export type KoaHandler = {
  // biome-ignore lint/suspicious/noExplicitAny: methods of any class
  handle(this: any, ctx: Context, next: Next): unknown
}['handle']

/**
 * Limits a method that is middleware: the limiter first, then the method, with its `this`.
 * Without a name the policy is called `Class-method`; where a minifier renames classes, give one.
 *
 * @example class Users { @RateLimited({ limit: 5, window: '1m' }) async list(ctx) { ctx.body = [] } }
 * @throws SluiceError `INVALID_POLICY` where the class is defined
 */
export function RateLimited(options: KoaRateLimitOptions & LimitForm): HandlerDecorator<KoaHandler> {
  return decoratorFor(options, rateLimit, async (limiter, method: KoaHandler, [ctx, next]) => {
    let result: unknown
    await limiter(ctx, async () => {
      result = await method(ctx, next)
    })
    return result
  })
}
