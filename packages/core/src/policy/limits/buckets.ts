import type { ResolvedLimit } from '../../store/store.js'
import type { Duration } from '../../util/duration.js'
import { neverBeside, neverWithout } from '../../util/errors.js'
import { exactProduct, oneOf, wholeNumber } from '../../util/validate.js'
import { makeLimit, type RateNames, type RateOptions } from './common.js'
import type { CommonOptions, LeasableOptions, Limit, OrFunction, Resolution, UnitOptions } from './limit.js'
import { type SpreadOptions, spreadOf } from './spread.js'

export interface GcraOptions<Subject> extends RateOptions<Subject>, UnitOptions, LeasableOptions {
  /** Largest burst, in units. At least 1. @default `limit` */
  readonly burst?: number
}

/**
 * The generic cell rate algorithm (ITU-T I.371): a burst of up to `burst` units, then one unit each
 * `window / limit`. Two integers of state, whatever the limit.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function gcra<Subject>(options: GcraOptions<Subject>): Limit<Subject> {
  const { burst, ...rate } = options ?? {}
  if (burst !== undefined) wholeNumber('gcra', 'burst', burst, 1)
  return makeLimit('gcra', rate as RateOptions<Subject>, ['burst', 'unit', 'lease'], (where, limit, windowMs) =>
    bucket(where, 'gcra', 'limit', 'burst', limit, windowMs, burst ?? limit, 1, false),
  )
}

export interface TokenBucketOptions<Subject>
  extends CommonOptions<Subject>,
    UnitOptions,
    LeasableOptions,
    SpreadOptions {
  /** Most tokens the bucket holds, at least 1; it starts full. @default `refill` */
  readonly capacity?: number
  /** Tokens that come back `every`; `limit` is another name for it. */
  readonly refill?: OrFunction<number, Subject>
  /** How often they come back; `window` is another name for it. */
  readonly every?: OrFunction<Duration, Subject>
  readonly limit?: OrFunction<number, Subject>
  readonly window?: OrFunction<Duration, Subject>
  /**
   * `greedy` lets tokens back one by one, evenly; `interval` all of `refill` at once, at multiples
   * of `every` on the store's clock. @default 'greedy'
   */
  readonly style?: 'greedy' | 'interval'
}

/**
 * A bucket of `capacity` tokens, one per unit of cost, refilled with `refill` tokens per `every`.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function tokenBucket<Subject>(options: TokenBucketOptions<Subject>): Limit<Subject> {
  const { capacity, style = 'greedy', spread, ...rest } = options ?? {}
  oneOf('tokenBucket', 'style', style, ['greedy', 'interval'])
  if (capacity !== undefined) wholeNumber('tokenBucket', 'capacity', capacity, 1)
  if (spread !== undefined && style !== 'interval') {
    // Greedy buckets refill token by token, at times that already differ by key.
    neverWithout('tokenBucket', 'spread', 'style "interval"', spread)
  }
  const withSpread = spreadOf('tokenBucket', spread)
  const { rate, names } = renamed('tokenBucket', rest, 'refill')
  return makeLimit(
    'tokenBucket',
    rate,
    ['capacity', 'refill', 'every', 'style', 'spread', 'unit', 'lease'],
    (where, limit, windowMs) =>
      withSpread(
        where,
        bucket(
          where,
          'tokenBucket',
          names.limit,
          'capacity',
          limit,
          windowMs,
          capacity ?? limit,
          style === 'interval' ? windowMs : 1,
          false,
        ),
      ),
    names,
  )
}

export interface LeakyBucketOptions<Subject> extends CommonOptions<Subject>, UnitOptions, LeasableOptions {
  /** Most units the bucket holds, at least 1. With `queue`, how many may be under way at once. @default `leak` */
  readonly capacity?: number
  /** Units that leak out `every`; `limit` is another name for it. */
  readonly leak?: OrFunction<number, Subject>
  /** `window` is another name for it. */
  readonly every?: OrFunction<Duration, Subject>
  readonly limit?: OrFunction<number, Subject>
  readonly window?: OrFunction<Duration, Subject>
  /**
   * Space admitted requests out, `every / leak` apart, first come first served: the verdict's
   * `delayMs` says how long to wait, and the middleware waits. @default false
   */
  readonly queue?: boolean
}

/**
 * A bucket that each unit fills and time empties: `leak` units per `every`. As a meter it refuses
 * what would overflow; as a `queue` it also spaces out what it admits.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function leakyBucket<Subject>(options: LeakyBucketOptions<Subject>): Limit<Subject> {
  const { capacity, queue = false, ...rest } = options ?? {}
  if (typeof queue !== 'boolean') oneOf('leakyBucket', 'queue', queue, ['true', 'false'])
  if (queue && rest.lease !== undefined) {
    // Turns are given out by the store, one after the other.
    neverBeside('leakyBucket', 'lease', 'queue', rest.lease)
  }
  if (queue && rest.unit === 'response-bytes') {
    // When a turn comes depends on the sizes of the responses before it, which are not known.
    neverBeside('leakyBucket', 'queue', 'unit "response-bytes"', queue)
  }
  if (capacity !== undefined) wholeNumber('leakyBucket', 'capacity', capacity, 1)
  const { rate, names } = renamed('leakyBucket', rest, 'leak')
  return makeLimit(
    'leakyBucket',
    rate,
    ['capacity', 'leak', 'every', 'queue', 'unit', 'lease'],
    (where, limit, windowMs) =>
      bucket(where, 'leakyBucket', names.limit, 'capacity', limit, windowMs, capacity ?? limit, 1, queue),
    names,
  )
}

/** `refill`/`leak` and `every` are what the field calls a bucket's limit and window; errors call them as they were given. */
function renamed(where: string, options: object, unitsName: string): { rate: RateOptions<unknown>; names: RateNames } {
  const { [unitsName]: units, every, ...rest } = options as Record<string, unknown>
  if (units !== undefined && rest.limit !== undefined) neverBeside(where, unitsName, 'limit', units)
  if (every !== undefined && rest.window !== undefined) neverBeside(where, 'every', 'window', every)
  const names = {
    limit: units === undefined && 'limit' in rest ? 'limit' : unitsName,
    window: every === undefined && 'window' in rest ? 'window' : 'every',
  }
  const rate = { ...rest, limit: units ?? rest.limit, window: every ?? rest.window }
  return { rate: rate as RateOptions<unknown>, names }
}

function bucket(
  where: string,
  algorithm: ResolvedLimit['algorithm'],
  limitName: string,
  capacityName: string,
  limit: number,
  windowMs: number,
  capacity: number,
  stepMs: number,
  queue: boolean,
): Resolution {
  exactProduct(where, limitName, limit, windowMs)
  exactProduct(where, capacityName, capacity, windowMs)
  // A limit of 0 lets nothing back, so its burst must be 0 too: it refuses everything.
  const size = limit === 0 ? 0 : capacity
  const kind = queue ? '.queue' : ''
  return {
    kernel: 'bucket',
    id: `bucket.${limit}.${windowMs}.${size}.${stepMs}${kind}`,
    // What a bucket holds beyond a new capacity is paid off within a window (see `pace`), which is no faster than its own limit
    // would only where no capacity is above its limit.
    carriedId: `bucket~${windowMs}.${stepMs}${size > limit ? `.${size}` : ''}${kind}`,
    params: [limit, windowMs, size, stepMs],
    report: { algorithm, limit, windowMs, capacity: size, queue },
  }
}
