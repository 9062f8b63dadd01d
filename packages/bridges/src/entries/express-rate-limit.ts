/** `@sluice/bridges/express-rate-limit`: a store for express-rate-limit 7 and 8. */
import { HitStore, type HitStoreOptions } from '../hit-store.js'

export type { ClientHits, HitStore, HitStoreInit, HitStoreOptions } from '../hit-store.js'
export type { BridgeOptions, Rate } from '../options.js'

/**
 * A store for the option `store` of express-rate-limit. Each limiter needs its own.
 *
 * @example rateLimit({ windowMs: 60_000, limit: 100, store: sluiceStore({ name: 'api', store: redisStore(client) }) })
 * @throws SluiceError `INVALID_POLICY`
 */
export function sluiceStore(options: HitStoreOptions = {}): HitStore {
  return new HitStore('express-rate-limit', options)
}
