/**
 * Places in flight. Each taken place is a lease that ends at its own instant unless it is renewed or
 * freed first, so a crashed holder gives its place back by itself.
 *
 * State: the instants at which leases end, in ms. A lease counts while its end lies ahead of now.
 *
 * Holds in every order of taking, renewing, freeing, lapsing and dying (`test/interleavings/places.test.ts`): never
 * more places are held than there are, each is freed once, and freeing one that has lapsed frees nobody else's.
 */

/** Milliseconds until `cost` places are free if nobody renews or frees any: 0 now, -1 never. */
export function waitFor(ends: readonly number[], now: number, cost: number, limit: number): number {
  if (cost > limit) return -1
  const missing = ends.length + cost - limit
  if (cost === 0 || missing <= 0) return 0
  return ([...ends].sort((a, b) => a - b)[missing - 1] as number) - now
}
