import type { RateLimitOptions, Verdict } from '@sluice/core'
import { createGuard, type Enforcing, enforce, type Guard, type Outcome } from '@sluice/core/http'
import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'
import { FastifyContext } from './context.js'
import { withoutDetails } from './failure.js'
import { runHandler } from './handler.js'

export type FastifyRateLimitOptions = RateLimitOptions<FastifyRequest>

/** A hook for `onRequest` or any other up to `preHandler`, and the limiter behind it. */
export interface RateLimitHook extends Pick<Guard<FastifyRequest>, 'limiter'> {
  (request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction): void
}

/** @throws SluiceError `INVALID_POLICY`; what goes wrong with a request is handed to Fastify's error handler */
export function rateLimitHook(options: FastifyRateLimitOptions): RateLimitHook {
  const guard = createGuard(options)
  const fastify = fastifyFor(guard.requestProperty)

  // With a callback and not async: most requests are decided without waiting for anything.
  // By a key: bundlers rename a function inside another of its name.
  const named = {
    rateLimit(request: FastifyRequest, reply: FastifyReply, ...rest: unknown[]): void {
      // The hook `preParsing` takes the body before it.
      const done = rest.at(-1)
      enforce(guard, new FastifyContext(request, reply), fastify, done as () => void)
    },
  }

  return Object.assign(named.rateLimit, { limiter: guard.limiter })
}

/** `property`: the name of the verdict on the request. */
function fastifyFor(property: string): Enforcing<FastifyContext> {
  return {
    write(outcome, { request, reply }) {
      if (outcome.verdict) (request as object as Record<string, unknown>)[property] = outcome.verdict
      send(outcome, reply)
    },
    handle(call, { request, reply }, next, { verdict }) {
      runHandler(call, request, reply, verdict as Verdict, next)
    },
    failure: withoutDetails,
  }
}

function send(outcome: Outcome, reply: FastifyReply): void {
  const { proceed, headers, reply: answer } = outcome
  for (const [name, value] of headers) reply.header(name, value)
  if (answer) reply.code(answer.status).send(answer.body)
  // The client has gone; the handler must not run either.
  else if (!proceed && !outcome.error && !outcome.handler) reply.hijack()
}
