import type { Responder, Verdict } from '@sluice/core'
import { type HandlerCall, knowFactories, type NativeHandler, respondByHandler } from '@sluice/core/http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { withoutDetails } from './failure.js'

/** A Fastify handler for refused requests, which gets the verdict as well. */
export type RefusalHandler = (request: FastifyRequest, reply: FastifyReply, verdict: Verdict) => unknown

/**
 * Responds to refused requests by a Fastify handler of yours: its result is sent, or it calls `reply.send`. Quota headers,
 * `Retry-After` and `Cache-Control: no-store` are on the reply by then. The status is 429, or 503 where nothing could decide,
 * unless the handler sets another. An error that it throws or rejects with goes to Fastify's error handler.
 *
 * As with any handler, a request without a response stays open.
 *
 * @example respond: handler((request, reply, verdict) => ({ code: 'SLOW_DOWN', retryAfterMs: verdict.retryAfterMs }))
 * @throws SluiceError `INVALID_POLICY`
 */
export function handler(handler: RefusalHandler): Responder<FastifyRequest> {
  return respondByHandler(handler as NativeHandler)
}

knowFactories({ 'handler((request, reply, verdict) => …)': handler })

/** Runs the handler of a refused request as Fastify runs a route's. */
export function runHandler(
  { handler, status }: HandlerCall,
  request: FastifyRequest,
  reply: FastifyReply,
  verdict: Verdict,
  done: (error: Error) => void,
): void {
  const before = reply.statusCode
  const fail = (thrown: unknown): void => {
    if (reply.sent) {
      reply.log.error({ err: thrown }, 'rateLimit: the handler of refused requests failed after it had replied')
      return
    }
    reply.code(before)
    done(withoutDetails(thrown) as Error)
  }
  reply.code(status)
  try {
    const result = (handler as RefusalHandler)(request, reply, verdict)
    // A reply is a promise as well, of its own end.
    if (result === undefined || result === reply) return
    if (isThenable(result)) result.then((late) => send(reply, late), fail)
    else send(reply, result)
  } catch (thrown) {
    fail(thrown)
  }
}

function isThenable(result: unknown): result is PromiseLike<unknown> {
  return typeof (result as { then?: unknown } | null)?.then === 'function'
}

/** Sends nothing where a response was sent already. */
function send(reply: FastifyReply, payload: unknown): void {
  if (!reply.sent && !reply.raw.destroyed) reply.send(payload)
}
