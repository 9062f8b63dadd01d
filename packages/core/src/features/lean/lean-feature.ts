import type { GuardFeature } from '../../http/guard/guard-feature.js'
import type { LimiterFeature } from '../../limiter/engine.js'
import type { BasicLimiter } from '../../limiter/limiter.js'
import type { MemoryBase } from '../../memory/base.js'
import type { MemoryLayer } from '../../memory/layer.js'
import type { Store } from '../../store/store.js'

/** The options that features add to those of the core, each with its feature: the words for those that a composition lacks. */
export const FEATURE_OF = {
  sharedTurns: 'queues',
  consistency: 'relaxed',
  charges: 'charges',
  ban: 'bans',
  allow: 'lists',
  deny: 'lists',
  count: 'outcomes',
  body: 'outcomes',
  onExhausted: 'responseBytes',
} as const

/** The same for methods of limiters. Those that take ids of charges are methods of every limiter. */
export const FEATURE_OF_METHOD = { acquire: 'queues', block: 'bans', unblock: 'bans', strike: 'bans' } as const

export type FeatureName = (typeof FEATURE_OF)[keyof typeof FEATURE_OF] | 'meters'

/** The remedy where a feature is missing. */
export function addFeature(name: FeatureName): string {
  return `add the feature: withFeatures(${name})`
}

/** A feature for `withFeatures`. Its parts are internal, and change with any version. */
export interface LeanFeature<Name extends FeatureName = FeatureName> {
  readonly name: Name
  /** @internal */
  readonly limiter: LimiterFeature
  /** @internal */
  readonly guard?: GuardFeature
  /** @internal Adds its methods to a class of limiters. */
  readonly extend?: (Base: typeof BasicLimiter) => typeof BasicLimiter
  /** @internal Its layer of a memory store above the one beneath, and the members that it adds to the store. */
  readonly memory?: (
    base: MemoryBase,
    next: MemoryLayer,
  ) => { readonly layer: MemoryLayer; readonly members: Partial<Store> }
}
