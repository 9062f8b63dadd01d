import type { HandlerDecorator, LimitForm } from '@sluice/core'
import { asFailure, decoratorFor, holdPermitsUntil, runAfterMiddleware } from '@sluice/core/http'
import type { NextFunction, Request, Response } from 'express'
import { type ExpressRateLimitOptions, rateLimit } from './rate-limit.js'

/** A method that handles requests. Written as a method, so that one may ask for a narrower request. */
export type ExpressHandler = {
  // biome-ignore lint/suspicious/noExplicitAny: params, bodies and queries of any route, methods of any class
  handle(this: any, req: Request<any, any, any, any, any>, res: Response<any, any>, next: NextFunction): unknown
}['handle']

/**
 * Limits a method that is a handler: the limiter first, then the method, with its `this`. An error that the method throws or
 * rejects with goes to `next`, in Express 4 too, unless it has called that itself. Without a name the policy is called
 * `Class-method`; where a minifier renames classes, give one.
 *
 * @example class Users { @RateLimited({ limit: 5, window: '1m' }) async list(req, res) { res.json([]) } }
 * @throws SluiceError `INVALID_POLICY` where the class is defined
 */
export function RateLimited(options: ExpressRateLimitOptions & LimitForm): HandlerDecorator<ExpressHandler> {
  return decoratorFor(options, rateLimit, async (limiter, method: ExpressHandler, [req, res, next]) => {
    let isCalled = false
    const once = (...outcome: unknown[]): void => {
      if (isCalled) return
      isCalled = true
      ;(next as (...outcome: unknown[]) => void)(...outcome)
    }
    try {
      await runAfterMiddleware(
        (goOn) => limiter(req, res, goOn),
        () => {
          const result = method(req, res, once as NextFunction)
          // A request that the method has handed on to `next` is not done when the method is.
          holdPermitsUntil(res, result, () => !isCalled)
          return result
        },
        res,
      )
    } catch (error) {
      // Called by hand, as a method that does not use `next` may be.
      if (next === undefined) throw error
      once(asFailure(error))
    }
  })
}
