/** `@sluice/bridges/hono-rate-limiter`: a store for hono-rate-limiter. */
import { HitStore, type HitStoreOptions } from '../hit-store.js'

export type { ClientHits, HitStore, HitStoreInit, HitStoreOptions } from '../hit-store.js'
export type { BridgeOptions, Rate } from '../options.js'

/**
 * A store for the option `store` of hono-rate-limiter. Each limiter needs its own.
 *
 * @example rateLimiter({ windowMs: 60_000, limit: 100, keyGenerator, store: sluiceStore({ name: 'api', store: redisStore(client) }) })
 * @throws SluiceError `INVALID_POLICY`
 */
export function sluiceStore(options: HitStoreOptions = {}): HitStore {
  return new HitStore('hono-rate-limiter', options)
}
