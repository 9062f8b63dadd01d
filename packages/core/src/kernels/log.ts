/**
 * The exact log: one instant per admitted unit. Never more than `limit` units in any window,
 * wherever the window starts. An entry exactly one window old no longer counts.
 *
 * State: instants in ms, oldest first; `nth(log, 1)` is the newest.
 */
export type Log = readonly number[]

/** The `k`-th newest entry, from 1. */
export function nth(log: Log, k: number): number {
  return log[log.length - k] as number
}

/** How many of the newest `atMost` entries stand in the window that ends at `at`. */
export function live(log: Log, at: number, windowMs: number, atMost: number): number {
  let low = 0
  let high = Math.min(log.length, atMost)
  // Entries never decrease, so those that count are the newest `low`: find the last that does.
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (nth(log, middle) > at - windowMs) low = middle
    else high = middle - 1
  }
  return low
}

/** Milliseconds from `at` until `cost` units have room: 0 now, -1 never. */
export function waitFor(log: Log, at: number, cost: number, limit: number, windowMs: number): number {
  if (cost > limit) return -1
  // With `cost` more, the entry that would be one too many is this far from the newest.
  const k = limit - cost + 1
  if (cost === 0 || k > log.length) return 0
  return Math.max(0, nth(log, k) + windowMs - at)
}
