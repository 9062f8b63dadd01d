import type { Verdict } from '@sluice/core'
import { type Enforcing, type Outcome, runHandler, writeOutcome } from '@sluice/core/http'
import type { NextFunction, Response } from 'express'
import type { ExpressContext } from './context.js'
import type { RefusalHandler } from './handler.js'

/** Puts outcomes on responses of Express. `property`: the name of the verdict on the request. */
export function enforcingExpress(property: string): Enforcing<ExpressContext> {
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
