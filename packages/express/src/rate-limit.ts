import type { LimitForm, RateLimitOptions, Verdict } from '@sluice/core'
import { type BasicGuard, createGuard, enforce, type Guard, refuseUncalled } from '@sluice/core/http'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { ExpressContext } from './context.js'
import { enforcingExpress } from './enforcing.js'

declare global {
  namespace Express {
    interface Request {
      /** The verdict of the last limiter that decided on this request. */
      rateLimit?: Verdict
    }
  }
}

export type ExpressRateLimitOptions = RateLimitOptions<Request>

/** An Express middleware, and the limiter behind it: to peek, reset, block and unblock. */
export type RateLimitHandler = RequestHandler &
  Pick<Guard<Request>, 'limiter'> & {
    /** @deprecated Write `limiter.reset(key)`: `limiter` is a property of the middleware. */
    readonly resetKey: (use: 'use limiter.reset(key)') => never
  }

/**
 * Limits requests in Express 4 and 5, for an app, a router or a route.
 *
 * @example app.use(rateLimit({ limit: 100, window: '1m' }))
 * @throws SluiceError `INVALID_POLICY`; what goes wrong with a request is handed to `next`
 */
export function rateLimit(options: ExpressRateLimitOptions & LimitForm, ...uncalled: never[]): RateLimitHandler {
  refuseUncalled('rateLimit({ limit: 100, window: "1m" })', uncalled)
  return limitingExpress(createGuard(options))
}

/** The middleware of a guard. */
export function limitingExpress<Deciding extends BasicGuard<Request>>(guard: Deciding) {
  const express = enforcingExpress(guard.requestProperty)

  // By a key: bundlers rename a function inside another of its name.
  const named = {
    rateLimit(req: Request, res: Response, next: NextFunction): void {
      enforce(guard, new ExpressContext(req, res), express, next)
    },
  }

  const limiter: Deciding['limiter'] = guard.limiter
  return Object.assign(named.rateLimit, { limiter, resetKey: limiter.resetKey.bind(limiter) as never })
}
