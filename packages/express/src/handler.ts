import type { Responder, Verdict } from '@sluice/core'
import { knowFactories, type NativeHandler, respondByHandler } from '@sluice/core/http'
import type { NextFunction, Request, Response } from 'express'

/** An Express handler for refused requests, which gets the verdict as well. */
export type RefusalHandler = (req: Request, res: Response, next: NextFunction, verdict: Verdict) => unknown

/**
 * Responds to refused requests by an Express handler of yours. Quota headers, `Retry-After` and
 * `Cache-Control: no-store` are on the response by then. The status is 429, or 503 where nothing could decide, unless the
 * handler sets another. `next()` admits the request to the route, uncharged and with the status from before. `next(error)`, and
 * errors that the handler throws or rejects with, go to the error handler, in Express 4 too.
 *
 * As with any handler, a request stays open without a response or a call of `next`.
 *
 * @example respond: handler((req, res, next, verdict) => res.json({ code: 'SLOW_DOWN', retryAfterMs: verdict.retryAfterMs }))
 * @throws SluiceError `INVALID_POLICY`
 */
export function handler(handler: RefusalHandler): Responder<Request> {
  return respondByHandler(handler as NativeHandler)
}

knowFactories({ 'handler((req, res, next, verdict) => …)': handler })
