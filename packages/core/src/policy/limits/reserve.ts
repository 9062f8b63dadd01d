import { invalidPolicy } from '../../util/errors.js'
import { isRecord } from '../../util/is-record.js'

/**
 * Units of a limit that are reserved for requests of a priority or higher: a share (below 1, rounded up to whole units) or
 * whole units, by priority. A bare number is reserved for priorities of 1 and more.
 *
 * @example { 1: 0.2, 2: 10 } // a fifth for priority 1 and up, and 10 units more that are for 2 and up alone
 */
export type Reserve = number | Readonly<Record<number, number>>

/** A priority, and the amount reserved for it and all above. */
export type ReserveStep = readonly [priority: number, amount: number]

/** @throws SluiceError `INVALID_POLICY` */
export function reserveSteps(where: string, reserve: unknown): readonly ReserveStep[] {
  if (typeof reserve === 'number') return [[1, amount(where, 'reserve', reserve)]]
  const steps = isRecord(reserve) ? Object.entries(reserve) : []
  // A Map would pass for an empty reserve.
  if (steps.length === 0) {
    const expected = 'a share such as 0.2, whole units, or either by priority such as { 1: 0.2 }'
    invalidPolicy(where, 'reserve', expected, reserve)
  }
  return steps.map(([text, value]) => {
    const priority = Number(text)
    if (text.trim() === '' || !Number.isFinite(priority)) {
      invalidPolicy(where, 'reserve', 'priorities that are numbers', text)
    }
    return [priority, amount(where, `reserve[${text}]`, value)]
  })
}

/** Units out of `capacity` that must stay free when a request of `priority` is admitted. */
export function reservedFrom(steps: readonly ReserveStep[], priority: number, capacity: number): number {
  let units = 0
  for (const [from, amount] of steps) if (from > priority) units += unitsOf(amount, capacity)
  return units
}

/** Rejects a reserve that leaves nothing to lower priorities: for them the limit would be 0. */
export function checkReserve(where: string, steps: readonly ReserveStep[], capacity: number): void {
  const reserved = reservedFrom(steps, Number.NEGATIVE_INFINITY, capacity)
  if (capacity > 0 && reserved >= capacity) {
    invalidPolicy(where, 'reserve', `less than the ${capacity} units that the limit holds`, reserved)
  }
}

function unitsOf(amount: number, capacity: number): number {
  // A share such as 0.1 of 30 must not become 4 units by a rounding error of the product.
  return amount >= 1 ? amount : Math.ceil(Number((amount * capacity).toFixed(6)))
}

function amount(where: string, field: string, value: unknown): number {
  const isShare = typeof value === 'number' && value >= 0 && value < 1
  if (!isShare && !(Number.isSafeInteger(value) && (value as number) >= 1)) {
    invalidPolicy(where, field, 'a share from 0 to below 1, or whole units', value)
  }
  return value as number
}
