import type { Room } from './spec.js'

/** Permits are held until they are freed (then they are no longer in the list) or their time is over. */
export function permits(limit: number, ttl: number): Room {
  return (charges, now) => {
    let held = 0
    for (const { at, cost, until = at + ttl } of charges) if (now < until) held += cost
    return Math.max(0, limit - held)
  }
}
