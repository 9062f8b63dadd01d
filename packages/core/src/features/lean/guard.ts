import { createGuardOf } from '../../http/guard/guard.js'
import type { LeanGuard, LeanRateLimitOptions } from '../lean-types.js'
import type { FeatureName, LeanFeature } from './lean-feature.js'
import { leanComposition } from './with-features.js'

/**
 * Returns the function that makes the guard behind `rateLimit` of an adapter, with some features alone.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function leanGuards<Request, Names extends FeatureName>(features: readonly LeanFeature<Names>[]) {
  const composition = leanComposition(features)
  return (options: LeanRateLimitOptions<Request, Names>): LeanGuard<Request, Names> =>
    createGuardOf(options, composition) as unknown as LeanGuard<Request, Names>
}
