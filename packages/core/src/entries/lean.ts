/**
 * `@sluice/core/lean`: limiters with some features alone, for those who bundle. `@sluice/core/features` has the features.
 */

export type { FeatureName, LeanFeature } from '../features/lean/lean-feature.js'
export type { LeanStoreOptions } from '../features/lean/memory-store.js'
export { withFeatures } from '../features/lean/with-features.js'
export type {
  Lean,
  LeanAdapter,
  LeanLimiter,
  LeanLimiterOptions,
  LeanRateLimitOptions,
  NamesOf,
} from '../features/lean-types.js'
