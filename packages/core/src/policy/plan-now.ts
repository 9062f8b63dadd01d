import { knownKind } from '../kinds/known.js'
import type { Calendar } from '../store/algorithms.js'
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
  const planOfNow = planOfPeriod(plan, plan.calendars, now)
  latest.set(plan, planOfNow)
  // More may be charged for a decision that it made.
  latest.set(planOfNow.plan, planOfNow)
  return planOfNow.plan
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
  const period = { plan: Object.freeze({ ...plan, cells }), ...running }
  latestKept.set(plan, period)
  return period.plan
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
    // A kept charge of a window that no limit here has stays in the bounds of its time.
    const running = calendar && knownKind(cell)?.windowAt?.(cell, calendar, now)
    if (!running) return cell
    from = Math.max(from, running.from)
    until = Math.min(until, running.until)
    lengths.set(cell.limits[0] as ResolvedLimit, running.cell.limits[0] as ResolvedLimit)
    return running.cell
  })
  return { cells, lengths, from, until }
}
