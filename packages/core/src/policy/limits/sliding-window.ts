import { DROPPED, STRICT, WEIGHTED_DOWN, WEIGHTED_UP } from '../../kernels/segments.js'
import { SEGMENTS } from '../../kinds/segments.js'
import { type Duration, durationMs } from '../../util/duration.js'
import { invalidPolicy, neverBeside } from '../../util/errors.js'
import { exactProduct, oneOf, wholeNumber } from '../../util/validate.js'
import { makeLimit, type RateOptions } from './common.js'
import type { LeasableOptions, Limit, UnitOptions } from './limit.js'
import { slidingLog } from './sliding-log.js'

export interface SlidingWindowOptions<Subject> extends RateOptions<Subject>, UnitOptions, LeasableOptions {
  /** Counters per window, 1 to 1,000; must divide the window. @default 1 when weighted, else 60 or the most up to 60 that divide it */
  readonly segments?: number
  /** Length of a segment instead of their number; must divide the window. */
  readonly precision?: Duration
  /**
   * How a segment counts that only partly lies in the window.
   *
   * By the part that does (`weighted`, an estimate), in full (`strict`), or not at all (`dropped`). `strict` never
   * admits more than `limit` in any window.
   * @default 'weighted'
   */
  readonly edge?: 'weighted' | 'strict' | 'dropped'
  /** How a weighted edge rounds; `'up'` never admits a unit on a fraction. @default 'down' */
  readonly rounding?: 'down' | 'up'
}

const MAX_SEGMENTS = 1000

/** The most segments up to 60 that divide the window. */
function defaultSegments(windowMs: number): number {
  for (let segments = Math.min(60, windowMs); ; segments--) if (windowMs % segments === 0) return segments
}

/**
 * A window that slides over segments. `weighted` with one segment is the two-counter estimate known
 * from CDNs; `strict` is exact on the safe side and its memory does not grow with the limit.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function slidingWindow<Subject>(options: SlidingWindowOptions<Subject>): Limit<Subject> {
  const { segments, precision, edge = 'weighted', rounding = 'down', ...rate } = options ?? {}
  oneOf('slidingWindow', 'edge', edge, ['weighted', 'strict', 'dropped'])
  oneOf('slidingWindow', 'rounding', rounding, ['down', 'up'])
  if (segments !== undefined && precision !== undefined) {
    neverBeside('slidingWindow', 'precision', 'segments', precision)
  }
  if (segments !== undefined) wholeNumber('slidingWindow', 'segments', segments, 1)
  const segmentMs = precision === undefined ? undefined : durationMs('slidingWindow', 'precision', precision)
  const edgeCode =
    edge === 'strict' ? STRICT : edge === 'dropped' ? DROPPED : rounding === 'up' ? WEIGHTED_UP : WEIGHTED_DOWN

  return makeLimit(
    'slidingWindow',
    rate as RateOptions<Subject>,
    ['segments', 'precision', 'edge', 'rounding', 'unit', 'estimate', 'lease'],
    (where, limit, windowMs) => {
      exactProduct(where, 'limit', limit, windowMs)
      const count = segments ?? (segmentMs ? windowMs / segmentMs : edge === 'weighted' ? 1 : defaultSegments(windowMs))
      if (!Number.isInteger(count) || count > MAX_SEGMENTS || windowMs % count !== 0) {
        const expected = `up to ${MAX_SEGMENTS} equal parts of the window of ${windowMs} ms in whole ms`
        invalidPolicy(where, segmentMs ? 'precision' : 'segments', expected, segmentMs ?? segments)
      }
      return {
        kind: SEGMENTS,
        id: `sliding.${limit}.${windowMs}.${count}.${edgeCode}`,
        carriedId: `sliding~${windowMs}.${count}.${edgeCode}`,
        params: [limit, windowMs, count, edgeCode],
        report: {
          algorithm: 'slidingWindow',
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
    },
  )
}

/** Up to here a plain `{ limit, window }` is an exact log; above, a strict window of segments, whose state does not grow. */
const LARGEST_DEFAULT_LOG = 1000

/** The limit that a plain `{ limit, window }` means. `needsWindows`: whether it may not be a log. */
export function defaultLimit<Subject>(rate: RateOptions<Subject>, needsWindows = false): Limit<Subject> {
  const log = slidingLog({ limit: 1, window: '1ms' })
  const segments = slidingWindow({ limit: 1, window: '1ms', edge: 'strict' })
  const choose = (limit: number) => (limit <= LARGEST_DEFAULT_LOG && !needsWindows ? log : segments)
  const { algorithm } = choose(typeof rate.limit === 'number' ? rate.limit : 0)
  return makeLimit(algorithm, rate, [], (where, limit, windowMs) => choose(limit).resolve(where, limit, windowMs))
}
