import { FIRST_BOUND } from '../kernels/counter.js'
import { boundsAt } from '../kinds/calendar/periods.js'
import type { Calendar } from '../store/cell-kinds.js'
import type { Cell, Plan, ResolvedLimit, Store } from '../store/store.js'
import { type ReadablePlan, readablePlan } from './plan.js'

/** When the periods run whose bounds a plan has. */
interface Running {
  readonly from: number
  readonly until: number
}

interface PlanOfPeriod<Of> extends Running {
  readonly plan: Of
}

const latest = new WeakMap<ReadablePlan, PlanOfPeriod<ReadablePlan>>()
const latestKept = new WeakMap<Plan, PlanOfPeriod<Plan>>()

/**
 * A plan whose windows of the calendar have the bounds of the periods around now, and the lengths of those that run. The same object
 * while they run, since plans are compared by identity. A plan without such windows is returned as it is.
 */
export function planNow(plan: ReadablePlan, { clock = Date.now }: Pick<Store, 'clock'>): ReadablePlan {
  if (plan.calendars === undefined) return plan
  const now = clock()
  const known = latest.get(plan)
  if (known && now >= known.from && now < known.until) return known.plan
  const made = planOfPeriod(plan, plan.calendars, now)
  latest.set(plan, made)
  // More may be charged for a decision that it made.
  latest.set(made.plan, made)
  return made.plan
}

/** The same for the plan of a kept charge, whose bounds are of the periods around the charge. */
export function keptPlanNow(plan: Plan, { clock = Date.now }: Pick<Store, 'clock'>): Plan {
  if (plan.cells.every(({ calendar }) => calendar === undefined)) return plan
  const now = clock()
  const known = latestKept.get(plan)
  if (known && now >= known.from && now < known.until) return known.plan
  const { cells, ...running } = cellsAt(
    plan.cells,
    plan.cells.map(({ calendar }) => calendar),
    now,
  )
  const made = { plan: Object.freeze({ ...plan, cells }), ...running }
  latestKept.set(plan, made)
  return made.plan
}

function planOfPeriod(
  plan: ReadablePlan,
  calendars: readonly (Calendar | undefined)[],
  now: number,
): PlanOfPeriod<ReadablePlan> {
  const { cells, lengths, from, until } = cellsAt(plan.cells, calendars, now)
  const resolved = plan.resolved.map((limit) => lengths.get(limit) ?? limit)
  return { plan: readablePlan({ ...plan, cells, resolved }), from, until }
}

/** Cells with the bounds of the periods around now, and their limits with the lengths of those that run. */
function cellsAt(
  given: readonly Cell[],
  calendars: readonly (Calendar | undefined)[],
  now: number,
): Running & { readonly cells: readonly Cell[]; readonly lengths: ReadonlyMap<ResolvedLimit, ResolvedLimit> } {
  let [from, until] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]
  const lengths = new Map<ResolvedLimit, ResolvedLimit>()
  const cells = given.map((cell, c): Cell => {
    const calendar = calendars[c]
    if (!calendar) return cell
    const bounds = boundsAt(calendar, now)
    const next = bounds.findIndex((bound) => bound > now)
    const [start, end] = [bounds[next - 1], bounds[next]] as [number, number]
    from = Math.max(from, start)
    until = Math.min(until, end)
    const [limit] = cell.limits as [ResolvedLimit]
    lengths.set(limit, Object.freeze({ ...limit, windowMs: end - start }))
    return Object.freeze({
      ...cell,
      params: [...cell.params.slice(0, FIRST_BOUND), ...bounds],
      limits: [lengths.get(limit) as ResolvedLimit],
      calendar,
    })
  })
  return { cells, lengths, from, until }
}
