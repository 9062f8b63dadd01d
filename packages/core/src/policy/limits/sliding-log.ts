import { LOG } from '../../kinds/log.js'
import { isBytes } from '../../store/units.js'
import { invalidPolicy } from '../../util/errors.js'
import { exactProduct } from '../../util/validate.js'
import { makeLimit, type RateOptions } from './common.js'
import type { CommonOptions, LeasableOptions, Limit, UnitOptions } from './limit.js'

/** Most entries one log may have to keep: 1,000,000, which is 4 to 6 MB of Redis memory for one key. */
const MAX_LOG_LIMIT = 1_000_000

/**
 * The exact log: never more than `limit` units in any `window`, wherever the window starts.
 * Keeps one instant (four bytes in Redis, six for windows over 49.7 days) per admitted unit, so it suits limits up to
 * some thousands.
 *
 * @example slidingLog({ limit: 100, window: '1m' })
 * @throws SluiceError `INVALID_POLICY`
 */
export function slidingLog<Subject>(options: RateOptions<Subject> & UnitOptions & LeasableOptions): Limit<Subject> {
  if (isBytes(options?.unit))
    invalidPolicy('slidingLog', 'unit', 'none of bytes: use a window or a bucket', options.unit)
  return makeLimit('slidingLog', options, ['unit', 'estimate', 'lease'], (where, limit, windowMs) => {
    exactProduct(where, 'limit', limit, windowMs)
    if (limit > MAX_LOG_LIMIT) invalidPolicy(where, 'limit', `at most ${MAX_LOG_LIMIT} for an exact log`, limit)
    return {
      kind: LOG,
      id: `log.${limit}.${windowMs}`,
      carriedId: `log~${windowMs}`,
      params: [limit, windowMs, limit, windowMs],
      report: {
        algorithm: 'slidingLog',
        limit,
        windowMs,
        capacity: limit,
        queue: false,
        calendar: undefined,
        spreadMs: undefined,
      },
      lease: undefined,
      calendar: undefined,
    }
  })
}

type LogOptions<Subject> = CommonOptions<Subject> & UnitOptions & LeasableOptions

/** At most `limit` units in any second; an exact log. */
export const perSecond = <Subject>(limit: number, options: LogOptions<Subject> = {}): Limit<Subject> =>
  logOf('perSecond', limit, 1000, options)
/** At most `limit` units in any minute; an exact log. */
export const perMinute = <Subject>(limit: number, options: LogOptions<Subject> = {}): Limit<Subject> =>
  logOf('perMinute', limit, 60_000, options)
/** At most `limit` units in any hour; an exact log. */
export const perHour = <Subject>(limit: number, options: LogOptions<Subject> = {}): Limit<Subject> =>
  logOf('perHour', limit, 3_600_000, options)
/** At most `limit` units in any 24 hours; an exact log. */
export const perDay = <Subject>(limit: number, options: LogOptions<Subject> = {}): Limit<Subject> =>
  logOf('perDay', limit, 86_400_000, options)

function logOf<Subject>(name: string, limit: unknown, window: number, options: LogOptions<Subject>): Limit<Subject> {
  if (typeof limit !== 'number') {
    invalidPolicy(name, 'limit', 'a whole number', limit, `write ${name}(20), with options after the number`)
  }
  return slidingLog({ ...options, limit, window })
}
