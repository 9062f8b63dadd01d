import { FIRST_BOUND } from '../../kernels/counter.js'
import type { Cell, ResolvedLimit, Store } from '../../store/store.js'
import { type ReadablePlan, readablePlan } from '../plan.js'
import { boundsAt, type Calendar } from './periods.js'

/** A plan with bounds, and when its periods run. */
interface PlanOfPeriod {
  readonly plan: ReadablePlan
  readonly from: number
  readonly until: number
}

const latest = new WeakMap<ReadablePlan, PlanOfPeriod>()

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

function planOfPeriod(plan: ReadablePlan, calendars: readonly (Calendar | undefined)[], now: number): PlanOfPeriod {
  let [from, until] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]
  const running = new Map<ResolvedLimit, ResolvedLimit>()
  const cells = plan.cells.map((cell, c): Cell => {
    const calendar = calendars[c]
    if (!calendar) return cell
    const bounds = boundsAt(calendar, now)
    const next = bounds.findIndex((bound) => bound > now)
    const [start, end] = [bounds[next - 1], bounds[next]] as [number, number]
    from = Math.max(from, start)
    until = Math.min(until, end)
    const [limit] = cell.limits as [ResolvedLimit]
    running.set(limit, Object.freeze({ ...limit, windowMs: end - start }))
    return Object.freeze({
      ...cell,
      params: [...cell.params.slice(0, FIRST_BOUND), ...bounds],
      limits: [running.get(limit) as ResolvedLimit],
    })
  })
  const resolved = plan.resolved.map((limit) => running.get(limit) ?? limit)
  return { plan: readablePlan({ ...plan, cells, resolved }), from, until }
}
