/**
 * A fixed window: one counter, in a window that starts at a clock multiple or with a key's first unit.
 *
 * State: `count`, and the `start` of its window in ms. Invariant: count <= limit, or the ceiling where refusals count.
 */

/** When the window starts that `at` falls into, for a key without one. */
export function startOf(at: number, windowMs: number, byClock: boolean): number {
  return byClock ? Math.floor(at / windowMs) * windowMs : at
}

/** Milliseconds until `cost` units have room in a window that ends `endsIn` ms from now: 0 now, -1 never. */
export function waitFor(count: number, endsIn: number, cost: number, limit: number): number {
  if (cost > limit) return -1
  // What costs nothing has room where refusals have gone beyond the limit.
  return count + cost <= limit || cost === 0 ? 0 : endsIn
}
