import { type Cell, type Op, PEEK, type ResolvedLimit } from '../store/store.js'
import { SluiceError, show } from '../util/errors.js'
import { type ReserveStep, reservedFrom } from './limits/reserve.js'
import type { ReadablePlan } from './plan.js'

/** Units per cell. */
export function costsOf(
  where: string,
  plan: ReadablePlan,
  cost: number,
  bytes: number | undefined,
  op: Op | undefined,
): readonly number[] {
  const { ones, countsBytes } = plan
  if (!countsBytes) return ones.map(() => cost)
  // An uncounted body must not pass for an empty one.
  const units = op === PEEK ? (bytes ?? 0) : bytes
  const checked = checkCost(where, 'bytes', units)
  return countsBytes.map((isBytes) => (isBytes ? checked : cost))
}

export function takesNothing(costs: readonly number[]): boolean {
  for (let c = 0; c < costs.length; c++) if (costs[c] !== 0) return false
  return true
}

/** Units per cell that are kept from requests of this priority; undefined where none are. */
export function keptFor(
  plan: ReadablePlan,
  reserves: readonly (readonly ReserveStep[])[],
  priority: number,
): readonly number[] | undefined {
  const kept = reserves.map((steps, c) =>
    steps.length === 0
      ? 0
      : reservedFrom(steps, priority, ((plan.cells[c] as Cell).limits[0] as ResolvedLimit).capacity),
  )
  return takesNothing(kept) ? undefined : kept
}

/** Units per cell that must have room: what is charged, and on top what is kept for others. */
export function needsOf(costs: readonly number[], kept: readonly number[]): number[] {
  return costs.map((units, c) => (units > 0 ? units + (kept[c] as number) : 0))
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
