import type { ByteUnit, QuotaUnit } from './store.js'

export const BUILT_IN_UNITS: readonly QuotaUnit[] = [
  'requests',
  'content-bytes',
  'response-bytes',
  'concurrent-requests',
]

/** Whether a unit is one of the user's own, such as `tokens`. */
export function isOwnUnit(unit: QuotaUnit): boolean {
  return !BUILT_IN_UNITS.includes(unit)
}

/** Whether a unit is measured, and not charged by a cost. */
export function isBytes(unit: unknown): unit is ByteUnit {
  return unit === 'content-bytes' || unit === 'response-bytes'
}
