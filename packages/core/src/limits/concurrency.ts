import { durationMs } from '../duration.js'
import { invalidPolicy } from '../errors.js'
import { exactProduct, knownOptions } from './checks.js'
import { makeLimit } from './common.js'
import type { CommonOptions, Limit, OrFunction } from './limit.js'

/** Most places of one limit: each is an entry of its own, and one request may take them all. */
export const MAX_PLACES = 100_000

export interface ConcurrencyOptions<Subject> extends CommonOptions<Subject> {
  /** Most places taken at once; whole, 0 to 100,000. */
  readonly limit: OrFunction<number, Subject>
  /** How long a place is held without being renewed: what a crashed holder costs. @default '1m' */
  readonly ttl?: number | string
}

/**
 * Requests in flight. A place is taken when a request starts and freed when it ends; one whose
 * holder died is freed `ttl` later, by the store's clock.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function concurrency<Subject>(options: ConcurrencyOptions<Subject>): Limit<Subject> {
  // Before `window` is made of `ttl`, or a user's own `window` would silently mean nothing.
  knownOptions('concurrency', options, ['name', 'limit', 'key', 'respond', 'ttl', 'reserve'])
  const { ttl = 60_000, ...rest } = options
  const rate = { ...rest, window: durationMs('concurrency', 'ttl', ttl) }
  return makeLimit('concurrency', rate as never, [], (where, limit, ttlMs) => {
    exactProduct(where, 'limit', limit, ttlMs)
    if (limit > MAX_PLACES) invalidPolicy(where, 'limit', `at most ${MAX_PLACES} places`, limit)
    return {
      kernel: 'concurrency',
      id: `concurrency.${limit}.${ttlMs}`,
      params: [limit, ttlMs],
      report: { algorithm: 'concurrency', limit, windowMs: ttlMs, capacity: limit, queue: false },
    }
  })
}
