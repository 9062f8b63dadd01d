import type { Room } from './spec.js'

/** Windows start at multiples of their length. */
export function clockWindow(limit: number, window: number): Room {
  return (charges, now) => {
    let used = 0
    for (const { at, cost } of charges) if (Math.floor(at / window) === Math.floor(now / window)) used += cost
    return Math.max(0, limit - used)
  }
}

/** A window starts with the first charge outside of an open one. */
export function openedWindow(limit: number, window: number): Room {
  return (charges, now) => {
    let opened = Number.NEGATIVE_INFINITY
    let used = 0
    for (const { at, cost } of charges) {
      if (at >= opened + window) {
        opened = at
        used = 0
      }
      used += cost
    }
    return now >= opened + window ? limit : Math.max(0, limit - used)
  }
}
