import type { Store } from './store.js'

/** Made by `liveFigures()`, for the option `report` of `redisStore`. */
export interface FiguresReporting {
  /** Starts the reports of this process to a store. The store calls it. */
  start(store: Store): void
}
