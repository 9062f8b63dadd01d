import { kindOfCell } from '../kinds/known.js'
import type { Cell, Plan, ResolvedLimit } from '../store/store.js'
import { getOrInsert } from '../util/get-or-insert.js'
import type { ReadablePlan } from './plan.js'

/**
 * A plan of the same limits at a share of their units, rounded down, each at least 1 (and 0 of 0). Several shares never add up
 * to more than the whole. Windows, segments and names stay as they are.
 */
export function planShare(plan: ReadablePlan, share: number): ReadablePlan {
  const scaled = new Map<ResolvedLimit, ResolvedLimit>()
  // The limits of a kept charge's cells, which have the lengths of other periods, are not those that its plan has resolved.
  const ofLimit = (limit: ResolvedLimit) =>
    getOrInsert(scaled, limit, ({ limit: units, capacity }) =>
      Object.freeze({ ...limit, limit: part(units, share), capacity: part(capacity, share) }),
    )
  const shared: ReadablePlan = Object.freeze({
    ...plan,
    caps: plan.caps?.map((cap) => (cap === Number.POSITIVE_INFINITY ? cap : part(cap, share))),
    resolved: plan.resolved.map(ofLimit),
    cells: plan.cells.map((cell) => {
      const { isUnits } = kindOfCell(cell)
      return Object.freeze({
        ...cell,
        id: `${cell.id}*${share}`,
        params: cell.params.map((value, i) => (isUnits(i) ? part(value, share) : value)),
        limits: cell.limits.map(ofLimit),
      })
    }),
  })
  wholes.set(shared, plan)
  return shared
}

const wholes = new WeakMap<Plan, ReadablePlan>()

/** The plan that a share was made from; the plan itself where it is no share. */
export function wholeOf(plan: Plan): ReadablePlan {
  return wholes.get(plan) ?? (plan as ReadablePlan)
}

/** A share of the units that each cell reserves for higher priorities; always less than the cell holds. */
export function reservedShare(plan: ReadablePlan, reserved: readonly number[], share: number): readonly number[] {
  return reserved.map((units, c) => {
    const [{ capacity }] = (plan.cells[c] as Cell).limits as [ResolvedLimit]
    return Math.max(0, Math.min(floor(units * share), capacity - 1))
  })
}

function part(units: number, share: number): number {
  return units === 0 ? 0 : Math.max(1, floor(units * share))
}

/** A third of 300 must not become 99 by a rounding error of the product. */
function floor(units: number): number {
  return Math.floor(Number(units.toFixed(6)))
}
