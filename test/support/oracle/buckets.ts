import type { Charge, Room } from './spec.js'

const least = (a: bigint, b: bigint) => (a < b ? a : b)
const most = (a: bigint, b: bigint) => (a > b ? a : b)
const positive = (a: bigint) => most(a, 0n)

/** What a bucket holds after a charge of `units`. A full one takes nothing more, except a debt: as much again. The rest is forgiven. */
function after(held: bigint, units: bigint, full: bigint, isDebt = false): bigint {
  return isDebt ? least(2n * full, held + units) : most(held, least(full, held + units))
}

/** The instants that matter: of all charges, and now. */
function withNow(charges: readonly Charge[], now: number): readonly Charge[] {
  return [...charges, { at: now, cost: 0 }]
}

/** Drains `limit` per window, evenly. Fractions of a unit are numerators over `window`. */
export function drainingBucket(limit: number, window: number, capacity: number): Room {
  const full = BigInt(capacity) * BigInt(window)
  return (charges, now) => {
    let held = 0n
    let last = 0
    for (const { at, cost, isDebt } of withNow(charges, now)) {
      held = positive(held - BigInt(limit) * BigInt(at - last))
      held = after(held, BigInt(cost) * BigInt(window), full, isDebt)
      last = at
    }
    return Number(positive(full - held) / BigInt(window))
  }
}

/** Drains `refill` at once at every multiple of `every`. */
export function intervalBucket(refill: number, every: number, capacity: number): Room {
  return (charges, now) => {
    let held = 0n
    let last = 0
    for (const { at, cost, isDebt } of withNow(charges, now)) {
      const times = Math.floor(at / every) - Math.floor(last / every)
      held = positive(held - BigInt(refill) * BigInt(times))
      held = after(held, BigInt(cost), BigInt(capacity), isDebt)
      last = at
    }
    return Number(positive(BigInt(capacity) - held))
  }
}
