/**
 * Places in flight. Each taken place is a lease that ends at its own instant unless it is renewed or
 * freed first, so a crashed holder gives its place back by itself.
 *
 * State: the instants at which leases end, in ms, soonest first. A lease counts while its end lies ahead of
 * now, and for no longer than the `ttlMs` it could have been taken for.
 *
 * Holds in every order of taking, renewing, freeing, lapsing and dying (`test/deep/interleavings/places.test.ts`): never
 * more places are held than there are, each is freed once, and freeing one that has lapsed frees nobody else's.
 */

/** The index of the first lease that counts. */
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

/** Milliseconds until `cost` places are free if nobody renews or frees any: 0 now, -1 never. `first`: see `firstHeld`. */
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
