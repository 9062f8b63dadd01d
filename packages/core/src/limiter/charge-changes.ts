import { takesNone } from '../store/kept-charge.js'
import {
  type Cell,
  DEBIT,
  type Keep,
  type KeptCharge,
  type Op,
  type QuotaUnit,
  REFUND,
  RELEASE,
  RENEW,
  type ResolvedLimit,
  type StoreRequest,
} from '../store/store.js'
import { countsPermits } from '../store/units.js'

/** The actual units of a cell `c`, whose unit is charged so many. Undefined if the charge stays as it is. */
export type ActualUnits = (unit: QuotaUnit, charged: number, c: number) => number | undefined

/**
 * The requests that replace the charge of each cell with the actual units: one that refunds, one that charges more. Each takes its
 * own cells. Where there are none, one that takes none, so that the record says whether the id is known. `isFree`: whether more than was charged counts.
 */
export function settling(part: KeptCharge, actual: ActualUnits, isFree: boolean): StoreRequest[] {
  const { plan, costs } = part.request
  const less: (number | undefined)[] = []
  const more: (number | undefined)[] = []
  for (const [c, charged] of costs.entries()) {
    const cell = plan.cells[c] as Cell
    const total = actual(unitOf(cell), charged, c)
    const isMore = isFree && total !== undefined && total > charged
    less.push(total === undefined || isMore ? undefined : Math.max(0, charged - total))
    // A limit of 0 refuses everything as it is.
    more.push(isMore ? (isOpen(cell) ? total - charged : 0) : undefined)
  }
  const refund = changing(part, REFUND, less)
  const debit = changing(part, DEBIT, more)
  return takesNone(debit) ? [refund] : takesNone(refund) ? [debit] : [refund, debit]
}

export function releasing(part: KeptCharge): StoreRequest[] {
  return [changing(part, RELEASE, permitsIn(part))]
}

export function renewing(part: KeptCharge): StoreRequest[] {
  return [changing(part, RENEW, permitsIn(part))]
}

/** A change of some cells, with the units of each; undefined for cells that stay as they are. */
function changing({ request, result }: KeptCharge, op: Op, units: readonly (number | undefined)[]): StoreRequest {
  const keep: Keep = { ...(request.keep as Keep), takes: units.map((each) => each !== undefined) }
  return { ...request, op, costs: units.map((each) => each ?? 0), charge: result, keep }
}

function permitsIn({ request: { plan, costs } }: KeptCharge): (number | undefined)[] {
  return plan.cells.map((cell, c) => (countsPermits(cell) ? costs[c] : undefined))
}

export function isOpen({ limits: [limit] }: Cell): boolean {
  return limit?.capacity !== 0
}

export function unitOf({ limits }: Cell): QuotaUnit {
  return (limits[0] as ResolvedLimit).unit
}
