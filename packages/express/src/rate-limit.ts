import type { LimitForm, RateLimitOptions, Verdict } from '@sluice/core'
import {
  createGuard,
  type Enforcing,
  enforce,
  type Guard,
  type Outcome,
  refuseUncalled,
  runHandler,
  writeOutcome,
} from '@sluice/core/http'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { ExpressContext } from './context.js'
import type { RefusalHandler } from './handler.js'

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
export type RateLimitHandler = RequestHandler & Pick<Guard<Request>, 'limiter'>

/**
 * Limits requests in Express 4 and 5, for an app, a router or a route.
 *
 * @example app.use(rateLimit({ limit: 100, window: '1m' }))
 * @throws SluiceError `INVALID_POLICY`; what goes wrong with a request is handed to `next`
 */
export function rateLimit(options: ExpressRateLimitOptions & LimitForm, ...uncalled: never[]): RateLimitHandler {
  refuseUncalled('rateLimit({ limit: 100, window: "1m" })', uncalled)
  const guard = createGuard(options)
  const express = expressFor(guard.requestProperty)

  // By a key: bundlers rename a function inside another of its name.
  const named = {
    rateLimit(req: Request, res: Response, next: NextFunction): void {
      enforce(guard, new ExpressContext(req, res), express, next)
    },
  }

  return Object.assign(named.rateLimit, { limiter: guard.limiter })
}

/** `property`: the name of the verdict on the request. */
function expressFor(property: string): Enforcing<ExpressContext> {
  return {
    write(outcome, { request, response }) {
      if (outcome.verdict) (request as object as Record<string, unknown>)[property] = outcome.verdict
      send(outcome, response)
    },
    handle({ handler, status }, { request, response }, next, { verdict }) {
      const handle = handler as RefusalHandler
      runHandler(response, status, (goOn) => handle(request, response, goOn as NextFunction, verdict as Verdict), next)
    },
  }
}

function send(outcome: Outcome, res: Response): void {
  const { headers, reply } = outcome
  const isSent = typeof reply?.body === 'string' || reply?.body instanceof Uint8Array
  if (!reply?.likeHandler || !isSent) {
    writeOutcome(outcome, res)
    return
  }
  for (const [name, value] of headers) res.setHeader(name, value)
  // With an ETag, and 304 to conditional requests, like most handlers.
  res.status(reply.status).send(typeof reply.body === 'string' ? reply.body : Buffer.from(reply.body as Uint8Array))
}
