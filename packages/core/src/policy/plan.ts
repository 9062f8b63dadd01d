import type { Calendar } from '../store/algorithms.js'
import type { Plan, QuotaUnit, ResolvedLimit } from '../store/store.js'
import { arePermits } from '../store/units.js'
import type { KeyFunction, Limit } from './limits/limit.js'
import type { ReserveStep } from './limits/reserve.js'

/** A plan, and how its results are read in the order in which the limits were written. */
export interface ReadablePlan extends Plan {
  readonly resolved: readonly ResolvedLimit[]
  /** The position of each limit of `resolved` in a result. */
  readonly positions: readonly number[]
  readonly hasPermits: boolean
  /** Whether it is one limit, which is no queueing one and spreads no times: nearly every plan. */
  readonly isSimple: boolean
  /** Costs of 1 for every cell: nearly every request's. */
  readonly ones: readonly number[]
  /** Which cell each limit of `resolved` is counted in. */
  readonly cellOf: readonly number[]
  /** The unit that each cell counts. */
  readonly units: readonly QuotaUnit[]
  /** Whether a cost of 1 is 1 for every cell, as none counts another unit than requests and permits: nearly every plan. */
  readonly takesOnes: boolean
  /** The most units that a cost takes from each cell. Undefined if none bounds them. */
  readonly caps: readonly number[] | undefined
  /** The units that each cell reserves for higher priorities. Undefined if none reserves any. */
  readonly reserves: readonly (readonly ReserveStep[])[] | undefined
  /**
   * The calendar of each cell that is a window of one. Undefined if none is. The bounds of its windows are in the plan that
   * `planNow` returns.
   */
  readonly calendars: readonly (Calendar | undefined)[] | undefined
  /** The limits as they were made, in the same order. */
  readonly definitions: readonly Limit[]
}

/** Properties that follow from the rest of a plan. */
type Derived =
  | 'identities'
  | 'reports'
  | 'positions'
  | 'hasPermits'
  | 'isSimple'
  | 'ones'
  | 'units'
  | 'takesOnes'
  | 'caps'

/** `reserves` and `calendars` may be given for every cell, also where none has any. */
export function readablePlan(own: Omit<ReadablePlan, Derived>): ReadablePlan {
  const { cells, starts, resolved, sharesTurns, reserves, calendars } = own
  const caps = cells.map((_, c) => capOf(own, c))
  const units = cells.map(({ limits }) => (limits[0] as ResolvedLimit).unit)
  const inResult = cells.flatMap(({ limits }) => limits)
  const [first] = resolved
  const hasPermits = units.some(arePermits)
  const takesOnes = units.every((unit) => unit === 'requests' || arePermits(unit))
  const onCalendar = calendars?.some((calendar) => calendar !== undefined) ? calendars : undefined
  const reserving = reserves?.some((steps) => steps.length > 0) ? reserves : undefined
  return Object.freeze({
    ...own,
    identities: starts.length,
    reports: resolved.length,
    positions: resolved.map((limit) => inResult.indexOf(limit)),
    isSimple: resolved.length === 1 && !first?.queue && first?.spreadMs === undefined && !sharesTurns,
    hasPermits,
    ones: cells.map(() => 1),
    units,
    caps: caps.every((cap) => cap === Number.POSITIVE_INFINITY) ? undefined : caps,
    takesOnes,
    calendars: onCalendar,
    reserves: reserving,
  })
}

function capOf(
  { cells, cellOf, definitions }: Pick<ReadablePlan, 'cells' | 'cellOf' | 'definitions'>,
  c: number,
): number {
  if (definitions[cellOf.indexOf(c)]?.estimate !== 'cap') return Number.POSITIVE_INFINITY
  // A limit of 0 refuses everything.
  return Math.max(1, ((cells[c] as Plan['cells'][number]).limits[0] as ResolvedLimit).capacity)
}

/** The tier that a policy is for. */
export interface TierOf {
  readonly name: string
  readonly shared: ReadonlyMap<Limit, number>
  /** The key functions of all tiers so far, by their kind: tiers share blocks, so a kind means one thing in all of them. */
  readonly known: Map<string, { key: KeyFunction<never> | undefined; field: string }>
}
