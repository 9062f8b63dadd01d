/** `@sluice/koa/lean`: `rateLimit` with some features alone, for those who bundle. */

import type { IdentityByKind } from '@sluice/core'
import { leanAdapter } from '@sluice/core/http'
import type { LeanAdapter, LeanFeature, LeanLimiter, NamesOf } from '@sluice/core/lean'
import type { Context, Middleware } from 'koa'
import { limitingKoa } from './rate-limit.js'

export * from '@sluice/core/features'

/** A Koa middleware, and the limiter behind it, with the methods of its features. */
export type LeanRateLimitMiddleware<Features extends readonly LeanFeature[]> = Middleware & {
  readonly limiter: LeanLimiter<Context | string | IdentityByKind, NamesOf<Features>>
}

/** The functions that `withFeatures` returns, with these features. */
export type LeanKoa<Features extends readonly LeanFeature[]> = LeanAdapter<
  Context,
  Features,
  LeanRateLimitMiddleware<Features>
>

/**
 * Limiters with some features alone.
 *
 * @example const { rateLimit } = withFeatures(bans, outcomes)
 * @throws SluiceError `INVALID_POLICY`
 */
export function withFeatures<const Features extends readonly LeanFeature[]>(...features: Features): LeanKoa<Features> {
  return leanAdapter<Context, Features, LeanRateLimitMiddleware<Features>>(features, limitingKoa)
}
