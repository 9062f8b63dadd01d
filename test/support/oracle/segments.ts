import type { Room } from './spec.js'

/** The last `count` segments in full, and the part of the previous one that `edge` defines. */
export function segmentedWindow(
  limit: number,
  window: number,
  count: number,
  edge: 'weighted' | 'strict' | 'dropped',
  rounding: 'down' | 'up',
): Room {
  const length = window / count
  return (charges, now) => {
    const current = Math.floor(now / length)
    let inFull = 0
    let onEdge = 0
    for (const { at, cost } of charges) {
      const age = current - Math.floor(at / length)
      if (age < count) inFull += cost
      else if (age === count) onEdge += cost
    }
    return Math.max(0, limit - inFull - counted(onEdge, now - current * length))
  }

  function counted(units: number, passed: number): number {
    if (edge === 'dropped') return 0
    if (edge === 'strict') return units
    const share = BigInt(units) * BigInt(length - passed)
    const whole = share / BigInt(length)
    const isWhole = whole * BigInt(length) === share
    return Number(rounding === 'up' && !isWhole ? whole + 1n : whole)
  }
}
