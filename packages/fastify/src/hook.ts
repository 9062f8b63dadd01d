import type { RateLimitOptions } from '@sluice/core'
import { type BasicGuard, createGuard, enforce, type Guard } from '@sluice/core/http'
import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'
import { FastifyContext } from './context.js'
import { enforcingFastify } from './enforcing.js'

export type FastifyRateLimitOptions = RateLimitOptions<FastifyRequest>

/** A hook for `onRequest` or any other up to `preHandler`, and the limiter behind it. */
export interface RateLimitHook extends Pick<Guard<FastifyRequest>, 'limiter'> {
  (request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction): void
}

/** @throws SluiceError `INVALID_POLICY`; what goes wrong with a request is handed to Fastify's error handler */
export function rateLimitHook(options: FastifyRateLimitOptions): RateLimitHook {
  return limitingFastify(createGuard(options))
}

/** The hook of a guard. */
export function limitingFastify<Deciding extends BasicGuard<FastifyRequest>>(guard: Deciding) {
  const fastify = enforcingFastify(guard.requestProperty)

  // With a callback and not async: most requests are decided without waiting for anything.
  // By a key: bundlers rename a function inside another of its name.
  const named = {
    rateLimit(request: FastifyRequest, reply: FastifyReply, third: unknown, fourth?: unknown): void {
      enforce(guard, new FastifyContext(request, reply), fastify, doneOf(third, fourth) as () => void)
    },
  }

  return Object.assign(named.rateLimit, { limiter: guard.limiter as Deciding['limiter'] })
}

/** The last argument of a hook: of the four hooks, `preParsing` takes the body before it. */
export function doneOf(third: unknown, fourth: unknown): HookHandlerDoneFunction {
  return (fourth ?? third) as HookHandlerDoneFunction
}
