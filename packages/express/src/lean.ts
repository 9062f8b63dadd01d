/** `@sluice/express/lean`: `rateLimit` with some features alone, for those who bundle. */

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
import type { Request, RequestHandler } from 'express'
import { limitingExpress } from './rate-limit.js'

export * from '@sluice/core/features'

/** An Express middleware, and the limiter behind it, with the methods of its features. */
export type LeanRateLimitHandler<Features extends readonly LeanFeature[]> = RequestHandler & {
  readonly limiter: LeanLimiter<Request | string | IdentityByKind, NamesOf<Features>>
}

/** The functions that `withFeatures` returns, with these features. */
export interface LeanExpress<Features extends readonly LeanFeature[]> extends Lean<Features> {
  /** As `rateLimit` of `@sluice/express`, with these features. */
  rateLimit(
    options: LeanRateLimitOptions<Request, NamesOf<Features>> & LimitForm,
    ...uncalled: never[]
  ): LeanRateLimitHandler<Features>
}

/**
 * Limiters with some features alone.
 *
 * @example const { rateLimit } = withFeatures(bans, outcomes)
 * @throws SluiceError `INVALID_POLICY`
 */
export function withFeatures<const Features extends readonly LeanFeature[]>(
  ...features: Features
): LeanExpress<Features> {
  const guardOf = leanGuards<Request, NamesOf<Features>>(features)
  return {
    ...withFeaturesOfCore(...features),
    rateLimit(options, ...uncalled) {
      refuseUncalled('rateLimit({ limit: 100, window: "1m" })', uncalled)
      return limitingExpress(guardOf(options))
    },
  }
}
