import type { LimitForm, RateLimitOptions, Verdict } from '@sluice/core'
import { createGuard, enforce, type Guard, type Outcome, writeOutcome } from '@sluice/core/http'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { ExpressContext } from './context.js'

declare global {
  namespace Express {
    interface Request {
      /** What the limiter that decided last on this request said. */
      rateLimit?: Verdict
    }
  }
}

export type ExpressRateLimitOptions = RateLimitOptions<Request>

/** An Express middleware, and the limiter behind it: to peek, reset, block and unblock. */
export type RateLimitHandler = RequestHandler & Pick<Guard<Request>, 'limiter'>

/**
 * Limits requests in Express 4 and 5, for an app, a router or a route.
 *
 * @example app.use(rateLimit({ limit: 100, window: '1m' }))
 * @throws SluiceError `INVALID_POLICY`; what goes wrong with a request is handed to `next`
 */
export function rateLimit(options: ExpressRateLimitOptions & LimitForm): RateLimitHandler {
  const guard = createGuard(options)

  // By a key: bundlers rename a function inside another of its name.
  const named = {
    rateLimit(req: Request, res: Response, next: NextFunction): void {
      enforce(guard, new ExpressContext(req, res), write, next)
    },
  }

  return Object.assign(named.rateLimit, { limiter: guard.limiter })
}

function write(outcome: Outcome, { request: req, response: res }: ExpressContext): void {
  const { verdict, headers, reply } = outcome
  if (verdict) req.rateLimit = verdict
  const isSent = typeof reply?.body === 'string' || reply?.body instanceof Uint8Array
  if (!reply?.likeHandler || !isSent) {
    writeOutcome(outcome, res)
    return
  }
  for (const [name, value] of headers) res.setHeader(name, value)
  // With an ETag, and 304 to conditional requests, like most handlers.
  res.status(reply.status).send(typeof reply.body === 'string' ? reply.body : Buffer.from(reply.body as Uint8Array))
}
