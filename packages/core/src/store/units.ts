import type { ByteUnit, Cell, QuotaUnit } from './store.js'

/** The unit of `concurrency`. */
export const PERMITS = 'concurrent-requests'

export const BUILT_IN_UNITS: readonly QuotaUnit[] = ['requests', 'content-bytes', 'response-bytes', PERMITS]

/** Whether a unit is one of the user's own, such as `tokens`. */
export function isOwnUnit(unit: QuotaUnit): boolean {
  return !BUILT_IN_UNITS.includes(unit)
}

/** Whether a unit is measured, and not charged by a cost. */
export function isBytes(unit: unknown): unit is ByteUnit {
  return unit === 'content-bytes' || unit === 'response-bytes'
}

/** Whether units are permits: in flight until they are released or expire. Time alone never restores those. */
export function arePermits(unit: QuotaUnit): boolean {
  return unit === PERMITS
}

/** Whether a cell counts permits. */
export function countsPermits({ limits: [limit] }: Cell): boolean {
  return limit !== undefined && arePermits(limit.unit)
}
