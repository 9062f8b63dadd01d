/** `@sluice/bridges/fastify-rate-limit`: a store for @fastify/rate-limit. */

import type { BridgeOptions } from '../options.js'
import type { RouteStoreClass } from '../route-store.js'
import { routeStores } from '../route-store.js'

export type { BridgeOptions, Rate } from '../options.js'
export type { RouteHits, RouteStore, RouteStoreClass } from '../route-store.js'

/**
 * A class for the option `store` of @fastify/rate-limit.
 *
 * @example app.register(rateLimit, { max: 100, timeWindow: '1 minute', store: sluiceStore({ name: 'api', store: redisStore(client) }) })
 * @throws SluiceError `INVALID_POLICY`
 */
export function sluiceStore(options: BridgeOptions = {}): RouteStoreClass {
  return routeStores(options)
}
