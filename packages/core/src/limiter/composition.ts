import type { PolicyFeature } from '../policy/policy-feature.js'
import type { Store } from '../store/store.js'

/** What an entry of the package composes around limiters: they know no feature, and get these. */
export interface Composition {
  readonly features: readonly PolicyFeature[]
  /** Makes the store of a limiter that names none. */
  readonly defaultStore: () => Store
  /** Makes the store of this process that decides during outages. `clock`: that of the other store, if it has one. */
  readonly localStore: (clock: (() => number) | undefined) => Store
}
