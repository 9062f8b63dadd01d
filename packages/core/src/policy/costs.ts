import { type Cell, type Op, PEEK, type ResolvedLimit } from '../store/store.js'
import { SluiceError, show } from '../util/errors.js'
import { type ReserveStep, reservedFrom } from './limits/reserve.js'
import type { ReadablePlan } from './plan.js'

/** The sizes of bodies. */
interface Bytes {
  readonly bytes?: number | undefined
  readonly responseBytes?: number | undefined
}

/** Units per cell. */
export function costsOf(
  where: string,
  plan: ReadablePlan,
  cost: number,
  { bytes, responseBytes }: Bytes,
  op: Op | undefined,
): readonly number[] {
  const { ones, byteUnits } = plan
  if (!byteUnits) return ones.map(() => cost)
  // An uncounted body must not pass for an empty one.
  const checked = (field: string, units: number | undefined) =>
    checkCost(where, field, op === PEEK ? (units ?? 0) : units)
  return byteUnits.map((unit) => {
    if (unit === undefined) return cost
    return unit === 'response-bytes' ? checked('responseBytes', responseBytes) : checked('bytes', bytes)
  })
}

export function takesNothing(costs: readonly number[]): boolean {
  for (let c = 0; c < costs.length; c++) if (costs[c] !== 0) return false
  return true
}

/** Units per cell that are reserved for priorities above this one. Undefined where none are. */
export function reservedFor(
  plan: ReadablePlan,
  reserves: readonly (readonly ReserveStep[])[],
  priority: number,
): readonly number[] | undefined {
  const reserved = reserves.map((steps, c) =>
    steps.length === 0
      ? 0
      : reservedFrom(steps, priority, ((plan.cells[c] as Cell).limits[0] as ResolvedLimit).capacity),
  )
  return takesNothing(reserved) ? undefined : reserved
}

/**
 * Units per cell that must have room: the costs, and on top the units `reserved` for higher priorities. The size of a response
 * is not known in advance, so room for one byte admits it. Undefined where these are the costs.
 */
export function needsOf(
  { byteUnits }: ReadablePlan,
  costs: readonly number[],
  reserved: readonly number[] | undefined,
): readonly number[] | undefined {
  if (!reserved && !byteUnits?.includes('response-bytes')) return undefined
  return costs.map((units, c) => {
    if (byteUnits?.[c] === 'response-bytes') return Math.max(1, units)
    return units > 0 ? units + (reserved?.[c] ?? 0) : 0
  })
}

/** @throws SluiceError `INVALID_COST` */
export function checkCost(where: string, field: string, cost: unknown): number {
  if (!Number.isSafeInteger(cost) || (cost as number) < 0) {
    throw new SluiceError(
      'INVALID_COST',
      `${where}: ${field}: expected a whole number of at least 0, got ${show(cost)}`,
    )
  }
  // Not -0, which would show up in verdicts.
  return (cost as number) + 0
}
