import { pipeline } from 'node:stream'
import type { LimitForm, RateLimitOptions, Verdict } from '@sluice/core'
import { createGuard, enforce, type Guard, type Outcome } from '@sluice/core/http'
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

function write({ verdict, headers, reply }: Outcome, { request: req, response: res }: ExpressContext): void {
  if (verdict) req.rateLimit = verdict
  for (const [name, value] of headers) res.setHeader(name, value)
  if (!reply) return
  res.status(reply.status)
  const { body, likeHandler } = reply
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) pipeline(body, res, ignore)
  // With an ETag, and 304 to who has it, like most handlers.
  else if (likeHandler) res.send(typeof body === 'string' ? body : Buffer.from(body))
  else res.end(body)
}

/** A stream that fails has ended the response by then. */
function ignore(): void {}
