import type { Room } from './spec.js'

/** Permits are taken until they are released, and then no longer in the list, or until they lapse. */
export function permits(limit: number, ttl: number): Room {
  return (charges, now) => {
    let held = 0
    for (const { at, cost, until = at + ttl } of charges) if (now < until) held += cost
    return Math.max(0, limit - held)
  }
}
