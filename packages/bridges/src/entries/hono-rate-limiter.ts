/** `@sluice/bridges/hono-rate-limiter`: a store for hono-rate-limiter. */
import { HitStore as HitStoreOfAll, type HitStoreOptions } from '../hit-store.js'

export type { HitStoreInit, HitStoreOptions } from '../hit-store.js'
export type { BridgeOptions, Rate } from '../options.js'

/**
 * The hits of a client within the window, and when it may come again. The peer declares `resetTime?: Date`, which may not be
 * undefined under `exactOptionalPropertyTypes`.
 */
export type ClientHits = { readonly totalHits: number; readonly resetTime: Date } | { readonly totalHits: number }

/** A store with the hits of clients as hono-rate-limiter declares them. */
export interface HitStore extends Omit<HitStoreOfAll, 'increment' | 'get'> {
  /** Charges a hit, if there is room. */
  increment(key: string): Promise<ClientHits>
  /** The hits of a client. Undefined if it has none. */
  get(key: string): Promise<ClientHits | undefined>
}

/**
 * A store for the option `store` of hono-rate-limiter. Each limiter needs its own.
 *
 * @example rateLimiter({ windowMs: 60_000, limit: 100, keyGenerator, store: sluiceStore({ name: 'api', store: redisStore(client) }) })
 * @throws SluiceError `INVALID_POLICY`
 */
export function sluiceStore(options: HitStoreOptions = {}): HitStore {
  return new HitStoreOfAll('hono-rate-limiter', options)
}
