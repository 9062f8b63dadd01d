/** `@sluice/express/lean`: `rateLimit` with some features alone, for those who bundle. */

import type { IdentityByKind } from '@sluice/core'
import { leanAdapter } from '@sluice/core/http'
import type { LeanAdapter, LeanFeature, LeanLimiter, NamesOf } from '@sluice/core/lean'
import type { Request, RequestHandler } from 'express'
import { limitingExpress } from './rate-limit.js'

export * from '@sluice/core/features'

/** An Express middleware, and the limiter behind it, with the methods of its features. */
export type LeanRateLimitHandler<Features extends readonly LeanFeature[]> = RequestHandler & {
  readonly limiter: LeanLimiter<Request | string | IdentityByKind, NamesOf<Features>>
}

/** The functions that `withFeatures` returns, with these features. */
export type LeanExpress<Features extends readonly LeanFeature[]> = LeanAdapter<
  Request,
  Features,
  LeanRateLimitHandler<Features>
>

/**
 * Limiters with some features alone.
 *
 * @example const { rateLimit } = withFeatures(bans, outcomes)
 * @throws SluiceError `INVALID_POLICY`
 */
export function withFeatures<const Features extends readonly LeanFeature[]>(
  ...features: Features
): LeanExpress<Features> {
  return leanAdapter<Request, Features, LeanRateLimitHandler<Features>>(features, limitingExpress)
}
