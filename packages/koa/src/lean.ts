/** `@sluice/koa/lean`: `rateLimit` with some features alone, for those who bundle. */

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
import type { Context, Middleware } from 'koa'
import { limitingKoa } from './rate-limit.js'

export * from '@sluice/core/features'

/** A Koa middleware, and the limiter behind it, with the methods of its features. */
export type LeanRateLimitMiddleware<Features extends readonly LeanFeature[]> = Middleware & {
  readonly limiter: LeanLimiter<Context | string | IdentityByKind, NamesOf<Features>>
}

/** The functions that `withFeatures` returns, with these features. */
export interface LeanKoa<Features extends readonly LeanFeature[]> extends Lean<Features> {
  /** As `rateLimit` of `@sluice/koa`, with these features. */
  rateLimit(
    options: LeanRateLimitOptions<Context, NamesOf<Features>> & LimitForm,
    ...uncalled: never[]
  ): LeanRateLimitMiddleware<Features>
}

/**
 * Limiters with some features alone.
 *
 * @example const { rateLimit } = withFeatures(bans, outcomes)
 * @throws SluiceError `INVALID_POLICY`
 */
export function withFeatures<const Features extends readonly LeanFeature[]>(...features: Features): LeanKoa<Features> {
  const guardOf = leanGuards<Context, NamesOf<Features>>(features)
  return {
    ...withFeaturesOfCore(...features),
    rateLimit(options, ...uncalled) {
      refuseUncalled('rateLimit({ limit: 100, window: "1m" })', uncalled)
      return limitingKoa(guardOf(options))
    },
  }
}
