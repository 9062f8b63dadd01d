import { BUCKET } from '../../kinds/bucket.js'
import type { ResolvedLimit } from '../../store/store.js'
import type { Duration } from '../../util/duration.js'
import { neverBeside, neverWithout } from '../../util/errors.js'
import { exactProduct, oneOf, wholeNumber } from '../../util/validate.js'
import { makeLimit, type RateNames, type RateOptions } from './common.js'
import type { CommonOptions, LeasableOptions, Limit, OrFunction, UnitOptions } from './limit.js'
import { type SpreadOptions, spreadOver } from './spread.js'

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
  const resolve = bucketOf('gcra', { limit: 'limit', capacity: 'burst' }, burst)
  return makeLimit('gcra', rate as RateOptions<Subject>, ['burst', 'unit', 'estimate', 'lease'], resolve)
}

export interface TokenBucketOptions<Subject>
  extends CommonOptions<Subject>,
    UnitOptions,
    LeasableOptions,
    SpreadOptions {
  /** Most tokens the bucket holds, at least 1; it starts full. @default `refill` */
  readonly capacity?: number
  /** Tokens that return `every`; `limit` is another name for it. */
  readonly refill?: OrFunction<number, Subject>
  /** How often they return; `window` is another name for it. */
  readonly every?: OrFunction<Duration, Subject>
  readonly limit?: OrFunction<number, Subject>
  readonly window?: OrFunction<Duration, Subject>
  /**
   * How tokens return: `'greedy'` one by one, evenly, and `'interval'` all of `refill` at once.
   *
   * An interval begins at a multiple of `every` on the store's clock.
   * @default 'greedy'
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
  const { rate, names } = renamed('tokenBucket', rest, 'refill')
  const resolve = bucketOf('tokenBucket', names, capacity, style)
  const known = ['capacity', 'refill', 'every', 'style', 'spread', 'unit', 'estimate', 'lease']
  return makeLimit('tokenBucket', rate, known, spreadOver('tokenBucket', spread, resolve), names)
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
   * Space admitted requests out, `every / leak` apart, first come first served.
   *
   * The verdict's `delayMs` says how long to wait, and the middleware waits.
   * @default false
   */
  readonly queue?: boolean
}

/**
 * A bucket that each unit fills and time empties: `leak` units per `every`. As a meter it refuses units that would overflow. As
 * a `queue` it also spaces out admitted requests.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function leakyBucket<Subject>(options: LeakyBucketOptions<Subject>): Limit<Subject> {
  const { capacity, queue = false, ...rest } = options ?? {}
  if (typeof queue !== 'boolean') oneOf('leakyBucket', 'queue', queue, ['true', 'false'])
  if (queue && rest.lease !== undefined) {
    // The store hands out turns, one after the other.
    neverBeside('leakyBucket', 'lease', 'queue', rest.lease)
  }
  if (queue && rest.unit === 'response-bytes') {
    // The time of a turn depends on the sizes of the responses before it, which are not known.
    neverBeside('leakyBucket', 'queue', 'unit "response-bytes"', queue)
  }
  if (capacity !== undefined) wholeNumber('leakyBucket', 'capacity', capacity, 1)
  const { rate, names } = renamed('leakyBucket', rest, 'leak')
  const resolve = bucketOf('leakyBucket', names, capacity, 'greedy', queue)
  return makeLimit(
    'leakyBucket',
    rate,
    ['capacity', 'leak', 'every', 'queue', 'unit', 'estimate', 'lease'],
    resolve,
    names,
  )
}

/** The units that a bucket holds. Undefined for other limits, and where its numbers are functions of the request. */
export function capacityOf({ algorithm, limit, window, resolve }: Limit): number | undefined {
  if (algorithm !== 'gcra' && algorithm !== 'tokenBucket' && algorithm !== 'leakyBucket') return undefined
  if (typeof limit !== 'number' || typeof window !== 'number') return undefined
  return resolve(algorithm, limit, window).report.capacity
}

/** `refill`/`leak` and `every` are the usual terms for a bucket's limit and window. Errors use the names that were given. */
function renamed(where: string, options: object, unitsName: string) {
  const { [unitsName]: units, every, ...rest } = options as Record<string, unknown>
  if (units !== undefined && rest.limit !== undefined) neverBeside(where, unitsName, 'limit', units)
  if (every !== undefined && rest.window !== undefined) neverBeside(where, 'every', 'window', every)
  const names: RateNames & BucketNames = {
    capacity: 'capacity',
    limit: units === undefined && 'limit' in rest ? 'limit' : unitsName,
    window: every === undefined && 'window' in rest ? 'window' : 'every',
  }
  const rate = { ...rest, limit: units ?? rest.limit, window: every ?? rest.window }
  return { rate: rate as RateOptions<unknown>, names }
}

/** The option names of a bucket's numbers. */
interface BucketNames {
  readonly limit: string
  readonly capacity: string
}

function bucketOf(
  algorithm: ResolvedLimit['algorithm'],
  names: BucketNames,
  given: number | undefined,
  style: 'greedy' | 'interval' = 'greedy',
  queue = false,
): Limit['resolve'] {
  return (where, limit, windowMs) => {
    const capacity = given ?? limit
    const stepMs = style === 'interval' ? windowMs : 1
    exactProduct(where, names.limit, limit, windowMs)
    exactProduct(where, names.capacity, capacity, windowMs)
    // A limit of 0 returns nothing, so its burst must be 0 too: it refuses everything.
    const size = limit === 0 ? 0 : capacity
    const kind = queue ? '.queue' : ''
    return {
      kind: BUCKET,
      id: `bucket.${limit}.${windowMs}.${size}.${stepMs}${kind}`,
      // A debt by a larger limit is paid off in two windows (see `paceOf`). That is no faster than by the larger limit only where
      // no capacity is above its limit.
      carriedId: `bucket~${windowMs}.${stepMs}${size > limit ? `.${size}` : ''}${kind}`,
      params: [limit, windowMs, size, stepMs],
      report: { algorithm, limit, windowMs, capacity: size, queue, calendar: undefined, spreadMs: undefined },
      lease: undefined,
      calendar: undefined,
    }
  }
}
