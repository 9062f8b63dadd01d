/** The share of a full map that is kept. */
const KEPT = 0.8

/**
 * Keeps the number of entries at `max` or less by dropping the oldest ones. It drops many at once: a map passes over all
 * entries that were deleted at its beginning to find its first one, which takes microseconds.
 */
export function dropOldest(map: Map<unknown, unknown>, max: number): void {
  if (map.size <= max) return
  const kept = Math.floor(max * KEPT)
  for (const key of map.keys()) {
    if (map.size <= kept) return
    map.delete(key)
  }
}
