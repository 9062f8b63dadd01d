import type { HandlerDecorator, LimitForm } from '@sluice/core'
import { decoratorFor, holdPermitsUntil, runAfterMiddleware } from '@sluice/core/http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type FastifyRateLimitOptions, rateLimitHook } from './hook.js'

/** A method that handles requests. Written as a method, so that one may ask for a narrower request. */
export type FastifyHandler = {
  // biome-ignore lint/suspicious/noExplicitAny: requests of any route, methods of any class
  handle(this: any, request: FastifyRequest<any>, reply: FastifyReply<any>): unknown
}['handle']

/**
 * Limits a method that is a route's handler: the limiter first, then the method, with its `this`;
 * what that returns is sent as ever. It stands by itself: options of the plugin do not reach it.
 * Without a name the policy is called `Class-method`; where a minifier renames classes, give one.
 *
 * @example class Users { @RateLimited({ limit: 5, window: '1m' }) async list(request) { return [] } }
 * @throws SluiceError `INVALID_POLICY` where the class is defined
 */
export function RateLimited(options: FastifyRateLimitOptions & LimitForm): HandlerDecorator<FastifyHandler> {
  return decoratorFor(options, rateLimitHook, (hook, method: FastifyHandler, [request, reply]) => {
    // Called by hand, with no more than the method itself uses.
    if (reply === undefined) throw new TypeError('RateLimited: expected the method to be called with (request, reply)')
    return runAfterMiddleware(
      (goOn) => hook(request, reply, goOn),
      () => {
        const result = method(request, reply)
        if (result !== reply) holdPermitsUntil(reply.raw, result, () => !isHijacked(reply))
        // The method responds by `reply.send`, maybe later. Where there may be a promise, Fastify wants the reply returned
        // then.
        return result === undefined ? reply : result
      },
      reply.raw,
    )
  })
}

/** Whether the method responds by the raw response, maybe later. */
function isHijacked(reply: FastifyReply): boolean {
  return reply.sent && !reply.raw.writableEnded
}
