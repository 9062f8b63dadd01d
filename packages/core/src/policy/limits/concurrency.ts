import { CONCURRENCY } from '../../kinds/concurrency.js'
import { PERMITS } from '../../store/units.js'
import { type Duration, MAX_DURATION_MS, waitMs } from '../../util/duration.js'
import { invalidPolicy } from '../../util/errors.js'
import { exactProduct, knownOptions } from '../../util/validate.js'
import { makeLimit } from './common.js'
import type { CommonOptions, Limit, OrFunction } from './limit.js'

/** Most permits of one limit: each is an entry of its own, and one request may take them all. */
const MAX_PERMITS = 100_000

export interface ConcurrencyOptions<Subject> extends CommonOptions<Subject> {
  /** Most permits held at once; whole, 0 to 100,000. */
  readonly limit: OrFunction<number, Subject>
  /** How long a permit is held without being renewed. A crashed holder keeps it that long. @default '1m' */
  readonly ttl?: Duration
  /**
   * For HTTP: longest time in which bytes of a response wait and the client takes none, from 1 ms to 100 years.
   *
   * Then the connection (over HTTP/2 the stream) is ended and its permit is free. Looked at every `ttl / 3`, so it may
   * take two of those longer. A response that has nothing to send is left alone.
   * @default ten times `ttl`
   */
  readonly maxHold?: Duration
}

/**
 * A limit of `concurrency`, which has what holds its permits over HTTP.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function permitLimit<Subject>(
  options: ConcurrencyOptions<Subject>,
  holdPermits: Limit['holdPermits'],
): Limit<Subject> {
  // Before `window` is made of `ttl`, or a user's own `window` would silently mean nothing.
  knownOptions('concurrency', options, ['name', 'limit', 'key', 'respond', 'ttl', 'maxHold', 'reserve'])
  const { ttl = 60_000, maxHold, ...rest } = options
  const ttlMs = waitMs('concurrency', 'ttl', ttl)
  const maxHoldMs =
    maxHold === undefined ? Math.min(10 * ttlMs, MAX_DURATION_MS) : waitMs('concurrency', 'maxHold', maxHold)
  // With its unit: it may be shorter than windows are.
  const limit = makeLimit<Subject>('concurrency', { ...rest, window: `${ttlMs}ms` }, [], (where, limit, ttlMs) => {
    exactProduct(where, 'limit', limit, ttlMs)
    if (limit > MAX_PERMITS) invalidPolicy(where, 'limit', `at most ${MAX_PERMITS} permits`, limit)
    return {
      kind: CONCURRENCY,
      id: `concurrency.${limit}.${ttlMs}`,
      carriedId: `concurrency~${ttlMs}`,
      params: [limit, ttlMs],
      report: {
        algorithm: 'concurrency',
        limit,
        windowMs: ttlMs,
        capacity: limit,
        queue: false,
        calendar: undefined,
        spreadMs: undefined,
      },
      lease: undefined,
      calendar: undefined,
    }
  })
  return Object.freeze({ ...limit, unit: PERMITS, maxHold: maxHoldMs, holdPermits })
}
