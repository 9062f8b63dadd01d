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
/** The plans that plans of a period were made from. */
const wholes = new WeakMap<ReadablePlan, ReadablePlan>()

/**
 * A plan whose windows of the calendar have the bounds of the periods around now, and the lengths of those that run. The same object
 * while they run, since plans are compared by identity. A plan without such windows is returned as it is.
 */
export function planNow(plan: ReadablePlan, { clock = Date.now }: Pick<Store, 'clock'>): ReadablePlan {
  if (plan.calendars === undefined) return plan
  const now = clock()
  const whole = wholes.get(plan) ?? plan
  let known = latest.get(whole)
  if (!known || now < known.from || now >= known.until) {
    known = planOfPeriod(whole, plan.calendars, now)
    latest.set(whole, known)
    wholes.set(known.plan, whole)
  }
  return known.plan
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
