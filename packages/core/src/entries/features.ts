/**
 * `@sluice/core/features`: the features of limiters one by one, for `withFeatures` of `@sluice/core/lean` and of adapters. Their
 * parts are internal.
 */

export { bans } from '../features/bans/lean.js'
export { responseBytes } from '../features/bodies/lean.js'
export { charges } from '../features/charges/lean.js'
export type { FeatureName, LeanFeature } from '../features/lean/lean-feature.js'
export { lists } from '../features/lists/lean.js'
export { meters } from '../features/meters/lean.js'
export { outcomes } from '../features/outcomes/lean.js'
export { queues } from '../features/queues/lean.js'
export { relaxed } from '../features/relaxed/lean.js'
