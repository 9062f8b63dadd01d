import { atLeastNone, type ReadReport } from './reply.js'

/**
 * The exact log: one instant per admitted unit. Never more than `limit` units in any window, wherever the window
 * starts. An entry exactly one window old does not count.
 *
 * State: `entries`, instants in ms, oldest first, and `total`, their number.
 */
export type Entries = ArrayLike<number>

/**
 * The index of the first entry that counts at `at`, or `total` if none does. Gallops from `from`, before which nothing
 * counts: few entries lapse between two decisions.
 */
export function firstLive(entries: Entries, from: number, total: number, at: number, windowMs: number): number {
  let low = from
  let step = 1
  while (low + step <= total && (entries[low + step - 1] as number) <= at - windowMs) {
    low += step
    step *= 2
  }
  let high = Math.min(low + step, total)
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if ((entries[middle] as number) > at - windowMs) high = middle
    else low = middle + 1
  }
  return low
}

/** Milliseconds from `at` until `cost` units have room, `live` entries counting: 0 now, -1 never. */
export function waitFor(
  entries: Entries,
  total: number,
  live: number,
  at: number,
  cost: number,
  limit: number,
  windowMs: number,
): number {
  if (cost > limit) return -1
  // A cost of 0 has room even if the entries exceed the limit.
  if (live + cost <= limit || cost === 0) return 0
  // With `cost` more units, the first entry beyond the limit is this far from the newest.
  return (entries[total - (limit - cost + 1)] as number) + windowMs - at
}

export const readReport: ReadReport = (reply, values, params, now, need, later) => {
  const at = reply.uint48()
  const newest = reply.uint48() - 1
  // The first two parameters are the largest limit and the longest window; then come each limit and its window.
  for (let i = 2; i < params.length; i += 2) {
    const count = atLeastNone(reply, reply.uint32() - later)
    const remaining = Math.max(0, (params[i] as number) - count)
    const windowMs = params[i + 1] as number
    const reset = newest < 0 ? 0 : Math.max(0, newest + windowMs - now)
    if (need === undefined) values.push(remaining, 0, reset, at)
    else values.push(remaining, reply.uint56() - 1, reset, reply.uint56() - 1)
  }
}
