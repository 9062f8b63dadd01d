import { atLeastNone, type ReadReport } from './reply.js'

/**
 * A fixed window: one counter, in a window that starts at a clock multiple or with a key's first unit.
 *
 * State: `count`, and the `start` of its window in ms. Invariant: count <= limit, or the ceiling if refusals count.
 */

/** The start of the window that contains `at`, for a key without a window. */
export function startOf(at: number, windowMs: number, byClock: boolean): number {
  return byClock ? Math.floor(at / windowMs) * windowMs : at
}

/** How windows start: at a key's first unit, at multiples of their length by the clock, or by the calendar. */
export const BY_CLOCK = 1
export const BY_CALENDAR = 2
/** Index of the first bound among the parameters of a window of the calendar. */
export const FIRST_BOUND = 4

/**
 * The same for a window of the calendar, whose start is `windowMs` before its end: the largest length of such windows, so that all
 * else is the same for both. Its end is the first of the bounds, in ascending order, that is later than `at`. Where a clock is
 * outside of all, windows go on from the nearest bound in that length.
 */
export function startIn(at: number, windowMs: number, bounds: readonly number[]): number {
  const nearest = bounds.find((bound) => bound > at) ?? (bounds.at(-1) as number)
  return nearest + Math.floor((at - nearest) / windowMs) * windowMs
}

/** Milliseconds until `cost` units have room in a window that ends `endsIn` ms from now: 0 now, -1 never. */
export function waitFor(count: number, endsIn: number, cost: number, limit: number): number {
  if (cost > limit) return -1
  // A cost of 0 has room even if refusals exceed the limit.
  return count + cost <= limit || cost === 0 ? 0 : endsIn
}

export const readReport: ReadReport = (reply, values, params, now, need, later) => {
  const [limit, windowMs] = params as [number, number]
  const count = atLeastNone(reply, reply.uint56() - later)
  const start = reply.uint48()
  const endsIn = start + windowMs - now
  if (endsIn <= 0) throw reply.unreadable('expected a window that has not ended')
  // Counted refusals, and larger limits on the same state, may exceed the limit.
  const remaining = Math.max(0, limit - count)
  const reset = count === 0 ? 0 : endsIn
  const wait = (cost: number) => waitFor(count, endsIn, cost, limit)
  if (need === undefined) values.push(remaining, 0, reset, start)
  else values.push(remaining, wait(need), reset, wait(remaining + 1))
}
