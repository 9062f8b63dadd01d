import type { ReadReport } from './reply.js'

/**
 * Permits in flight. Each permit ends at its own instant unless it is renewed or released before. The permits of a
 * crashed holder therefore expire by themselves.
 *
 * State: the instants at which permits end, in ms, soonest first. A permit counts until its end, and for at most the
 * `ttlMs` that it was taken for.
 *
 * Invariants in every order of taking, renewing, releasing, expiring and crashing
 * (`test/deep/interleavings/concurrency.test.ts`):
 * - at most `limit` permits are held;
 * - each permit is released once;
 * - releasing an expired permit releases no other.
 */

/** The index of the first permit that counts. */
export function firstHeld(ends: readonly number[], now: number): number {
  let low = 0
  let high = ends.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((ends[middle] as number) > now) high = middle
    else low = middle + 1
  }
  return low
}

/** Milliseconds until `cost` permits are free if none is renewed or released: 0 now, -1 never. `first`: see `firstHeld`. */
export function waitFor(
  ends: readonly number[],
  first: number,
  now: number,
  cost: number,
  limit: number,
  ttlMs: number,
): number {
  if (cost > limit) return -1
  const missing = ends.length - first + cost - limit
  if (cost === 0 || missing <= 0) return 0
  return Math.min((ends[first + missing - 1] as number) - now, ttlMs)
}

export const readReport: ReadReport = (reply, values, _, __, need) => {
  const free = reply.uint56()
  const reset = reply.uint56()
  // The permit id identifies the permits, so there is no receipt.
  if (need === undefined) values.push(free, 0, reset, 0)
  else values.push(free, reply.uint56() - 1, reset, reply.uint56() - 1)
}
