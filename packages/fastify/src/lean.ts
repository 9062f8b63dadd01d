/** `@sluice/fastify/lean`: `rateLimit` as a hook, with some features alone, for those who bundle. */

import type { IdentityByKind, LimitForm } from '@sluice/core'
import { leanGuards, refuseUncalled } from '@sluice/core/http'
import {
  type Lean,
  type LeanFeature,
  type LeanLimiter,
  type LeanRateLimitOptions,
  type NamesOf,
  withFeatures as withFeaturesOfCore,
} from '@sluice/core/lean'
import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'
import { limitingFastify } from './hook.js'

export * from '@sluice/core/features'

/** A hook for `onRequest` or any other up to `preHandler`, and the limiter behind it, with the methods of its features. */
export interface LeanRateLimitHook<Features extends readonly LeanFeature[]> {
  (request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction): void
  readonly limiter: LeanLimiter<FastifyRequest | string | IdentityByKind, NamesOf<Features>>
}

/** The functions that `withFeatures` returns, with these features. */
export interface LeanFastify<Features extends readonly LeanFeature[]> extends Lean<Features> {
  /** A hook, not a plugin: `app.addHook('onRequest', rateLimit({ … }))`, or of one route. */
  rateLimit(
    options: LeanRateLimitOptions<FastifyRequest, NamesOf<Features>> & LimitForm,
    ...uncalled: never[]
  ): LeanRateLimitHook<Features>
}

/**
 * Limiters with some features alone.
 *
 * @example const { rateLimit } = withFeatures(bans, outcomes)
 * @throws SluiceError `INVALID_POLICY`
 */
export function withFeatures<const Features extends readonly LeanFeature[]>(
  ...features: Features
): LeanFastify<Features> {
  const guardOf = leanGuards<FastifyRequest, NamesOf<Features>>(features)
  return {
    ...withFeaturesOfCore(...features),
    rateLimit(options, ...uncalled) {
      refuseUncalled('rateLimit({ limit: 100, window: "1m" })', uncalled)
      return limitingFastify(guardOf(options))
    },
  }
}
