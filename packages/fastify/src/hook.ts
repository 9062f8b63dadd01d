import type { RateLimitOptions } from '@sluice/core'
import { createGuard, enforce, type Guard, type Outcome } from '@sluice/core/http'
import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'
import { FastifyContext } from './context.js'
import { withoutDetails } from './failure.js'

export type FastifyRateLimitOptions = RateLimitOptions<FastifyRequest>

/** A hook for `onRequest` or any other up to `preHandler`, and the limiter behind it. */
export interface RateLimitHook extends Pick<Guard<FastifyRequest>, 'limiter'> {
  (request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction): void
}

/** @throws SluiceError `INVALID_POLICY`; what goes wrong with a request is handed to Fastify's error handler */
export function rateLimitHook(options: FastifyRateLimitOptions): RateLimitHook {
  const guard = createGuard(options)

  // With a callback and not async: most requests are decided without waiting for anything.
  // By a key: bundlers rename a function inside another of its name.
  const named = {
    rateLimit(request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction): void {
      enforce(guard, new FastifyContext(request, reply), write, done as (error?: unknown) => void, withoutDetails)
    },
  }

  return Object.assign(named.rateLimit, { limiter: guard.limiter })
}

function write({ proceed, verdict, headers, reply: answer }: Outcome, { request, reply }: FastifyContext): void {
  if (verdict) request.rateLimit = verdict
  for (const [name, value] of headers) reply.header(name, value)
  if (answer) reply.code(answer.status).send(answer.body)
  // Nobody is there to be answered; the handler must not run either.
  else if (!proceed) reply.hijack()
}
