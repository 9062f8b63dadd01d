import type { Room } from './spec.js'

/** At most `limit` units in any window: everything younger than the window counts. */
export function exactLog(limit: number, window: number): Room {
  return (charges, now) => {
    let used = 0
    for (const { at, cost } of charges) if (now - at < window) used += cost
    return Math.max(0, limit - used)
  }
}
