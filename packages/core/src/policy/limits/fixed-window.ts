import { neverBeside } from '../../util/errors.js'
import { oneOf } from '../../util/validate.js'
import { makeLimit, type RateOptions } from './common.js'
import type { LeasableOptions, Limit, UnitOptions } from './limit.js'
import { type SpreadOptions, spreadOver } from './spread.js'

export interface FixedWindowOptions<Subject> extends RateOptions<Subject>, UnitOptions, LeasableOptions, SpreadOptions {
  /**
   * Where windows start: at multiples of the window on the store's clock (UTC), or at a key's first
   * request, so that keys do not all reset at once. @default 'clock'
   */
  readonly anchor?: 'clock' | 'first-request'
}

/**
 * One counter per window. The cheapest, and the loosest: up to twice `limit` can pass within less
 * than a window, half at the end of one and half at the start of the next.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function fixedWindow<Subject>(options: FixedWindowOptions<Subject>): Limit<Subject> {
  const { anchor = 'clock', spread, ...rate } = options ?? {}
  const byClock = oneOf('fixedWindow', 'anchor', anchor, ['clock', 'first-request']) === 'clock'
  if (spread !== undefined && !byClock) {
    // Each key then has its own windows, spread like the first requests.
    neverBeside('fixedWindow', 'spread', 'anchor "first-request"', spread)
  }
  const kind = byClock ? 'fixed' : 'opened'
  const resolve = spreadOver('fixedWindow', spread, (_where, limit, windowMs) => ({
    kernel: 'counter',
    id: `${kind}.${limit}.${windowMs}`,
    carriedId: `${kind}~${windowMs}`,
    // The third is 1 where refusals count: see `CELL_KINDS`.
    params: [limit, windowMs, 0, byClock ? 1 : 0],
    report: { algorithm: 'fixedWindow', limit, windowMs, capacity: limit, queue: false },
  }))
  return makeLimit(
    'fixedWindow',
    rate as RateOptions<Subject>,
    ['anchor', 'spread', 'unit', 'estimate', 'lease'],
    resolve,
  )
}
