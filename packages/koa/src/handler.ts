import type { Responder, Verdict } from '@sluice/core'
import { asFailure, type HandlerCall, knowFactories, type NativeHandler, respondByHandler } from '@sluice/core/http'
import type { Context, Next, Response } from 'koa'

/** A Koa middleware for refused requests, which gets the verdict as well. */
export type RefusalHandler = (ctx: Context, next: Next, verdict: Verdict) => unknown

/**
 * Responds to refused requests by a Koa middleware of yours. Quota headers, `Retry-After` and `Cache-Control: no-store`
 * are on the response by then. The status is 429, or 503 where nothing could decide, unless the handler sets another.
 * `next()` admits the request to the route, uncharged and with the status from before. An error that the handler throws or
 * rejects with is an error of Koa.
 *
 * @example respond: handler((ctx, next, verdict) => { ctx.body = { code: 'SLOW_DOWN', retryAfterMs: verdict.retryAfterMs } })
 * @throws SluiceError `INVALID_POLICY`
 */
export function handler(handler: RefusalHandler): Responder<Context> {
  return respondByHandler(handler as NativeHandler)
}

knowFactories({ 'handler((ctx, next, verdict) => …)': handler })

/** Runs the handler of a refused request. */
export async function runHandler({ handler, status }: HandlerCall, ctx: Context, next: Next, verdict: Verdict) {
  const restore = statusOf(ctx)
  ctx.status = status
  try {
    await (handler as RefusalHandler)(
      ctx,
      () => {
        restore()
        return next()
      },
      verdict,
    )
  } catch (thrown) {
    restore()
    throw asFailure(thrown)
  }
}

/** Returns a function that restores the present status of the response, and whether Koa takes it for one that was set. */
function statusOf(ctx: Context): () => void {
  const { res } = ctx
  const response = ctx.response as Response & { _explicitStatus?: boolean }
  const { statusCode } = res
  // HTTP/2 has none, and warns where it is read.
  const hasMessage = ctx.req.httpVersionMajor < 2
  const statusMessage = hasMessage ? res.statusMessage : ''
  const isExplicit = response._explicitStatus
  return () => {
    if (res.headersSent) return
    res.statusCode = statusCode
    if (hasMessage) res.statusMessage = statusMessage
    response._explicitStatus = isExplicit as boolean
  }
}
