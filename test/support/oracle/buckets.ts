import type { Room } from './spec.js'

/** A full bucket loses nothing more; an empty one holds nothing less. */
const least = (a: bigint, b: bigint) => (a < b ? a : b)
const positive = (a: bigint) => (a > 0n ? a : 0n)

/** Drains `limit` per window, evenly. Fractions of a unit are numerators over `window`. */
export function drainingBucket(limit: number, window: number, capacity: number): Room {
  const full = BigInt(capacity) * BigInt(window)
  return (charges, now) => {
    let held = 0n
    let last = 0
    for (const { at, cost } of [...charges, { at: now, cost: 0 }]) {
      held = positive(held - BigInt(limit) * BigInt(at - last))
      held = least(full, held + BigInt(cost) * BigInt(window))
      last = at
    }
    return Number((full - held) / BigInt(window))
  }
}

/** Drains `refill` at once at every multiple of `every`. */
export function intervalBucket(refill: number, every: number, capacity: number): Room {
  return (charges, now) => {
    let held = 0n
    let last = 0
    for (const { at, cost } of [...charges, { at: now, cost: 0 }]) {
      const times = Math.floor(at / every) - Math.floor(last / every)
      held = positive(held - BigInt(refill) * BigInt(times))
      held = least(BigInt(capacity), held + BigInt(cost))
      last = at
    }
    return capacity - Number(held)
  }
}
