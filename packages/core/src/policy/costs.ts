import { type Cell, type Op, PEEK, type QuotaUnit, type ResolvedLimit } from '../store/store.js'
import { isBytes, isOwnUnit, PERMITS } from '../store/units.js'
import { SluiceError, show } from '../util/errors.js'
import { entriesIn } from './given-identities.js'
import type { Limit, LimitCost } from './limits/limit.js'
import { type ReserveStep, reservedFrom } from './limits/reserve.js'
import type { ReadablePlan } from './plan.js'
import type { PolicyChoice } from './policy.js'

/** Units of a request by name, such as `{ tokens: 812, cents: 3 }`: whole, 0 or more. */
export type Units = Readonly<Record<string, number>>

/** A checked cost: of `requests`, or by unit. */
export type Cost = number | NamedCost

export interface NamedCost {
  readonly named: ReadonlyMap<QuotaUnit, number>
  /** The units that policies of a document take from their limits. Undefined if the limiter alone names units. */
  readonly ofLimits: ReadonlyMap<LimitCost, number> | undefined
}

/** The policy that counts a cost. */
export type Counting = Pick<PolicyChoice<never>, 'where' | 'units'>

/** The sizes of bodies. */
interface Bytes {
  readonly bytes: number | undefined
  readonly responseBytes: number | undefined
}

/** @throws SluiceError `INVALID_COST`; nothing is charged then */
export function checkedCost(policy: Counting, cost: unknown): Cost {
  const { where } = policy
  const entries = entriesIn(cost)
  if (!entries) {
    const units = checkCost(where, 'cost', cost)
    if (units > 1) checkNumber(policy, units, 'INVALID_COST')
    return units
  }
  const named = entries.map(([unit, units]): [QuotaUnit, number] => {
    checkName(policy, unit, 'INVALID_COST')
    return [unit, checkCost(where, `cost: ${unit}`, units)]
  })
  return { named: new Map(named), ofLimits: undefined }
}

/**
 * The units of `settle` and meters. Permits are released, and never settled.
 *
 * @throws SluiceError `INVALID_COST`
 */
export function actualUnits(
  policy: Counting,
  actual: readonly (readonly [unit: string, amount: unknown])[],
  field = 'settle',
): ReadonlyMap<QuotaUnit, number> {
  const { where } = policy
  const units = actual.map(([unit, amount]): [QuotaUnit, number] => {
    if (unit === PERMITS) {
      throw new SluiceError(
        'INVALID_COST',
        `${where}: ${field}: expected no permits, which are released, got ${show(unit)}`,
      )
    }
    checkName(policy, unit, 'INVALID_COST', field)
    return [unit, checkCost(where, `${field}: ${unit}`, amount)]
  })
  return new Map(units)
}

/** A number is of `requests`. Where units are named and none is of requests, a limit would count nothing of it. */
export function checkNumber({ where, units }: Counting, cost: number, code: SluiceError['code']): void {
  if (units.has('requests') || ![...units].some(isOwnUnit)) return
  const expected = `units by name, such as { ${JSON.stringify([...units].find(isOwnUnit))}: ${cost} }`
  throw new SluiceError(code, `${where}: cost: expected ${expected}, as no limit counts requests, got ${cost}`)
}

/** A unit that no limit counts would be charged nowhere. */
export function checkName({ where, units }: Counting, unit: string, code: SluiceError['code'], field = 'cost'): void {
  if (units.has(unit) && !isBytes(unit)) return
  const known = [...units].filter((each) => !isBytes(each)).map(show)
  const expected = isBytes(unit)
    ? 'no bytes, which are measured'
    : `units that limits count, ${known.join(' or ') || 'of which there are none'}`
  throw new SluiceError(code, `${where}: ${field}: expected ${expected}, got ${show(unit)}`)
}

/** Units per cell. `reserved`: those that are for higher priorities, of which a capped estimate takes none. */
export function costsOf(
  where: string,
  plan: ReadablePlan,
  cost: Cost,
  { bytes, responseBytes }: Bytes,
  op: Op | undefined,
  reserved: readonly number[] | undefined,
): readonly number[] {
  // An uncounted body must not pass for an empty one.
  const checked = (field: string, units: number | undefined) =>
    checkCost(where, field, op === PEEK ? (units ?? 0) : units)
  const costs = plan.units.map((unit, c) => {
    if (unit === 'content-bytes') return checked('bytes', bytes)
    if (unit === 'response-bytes') return checked('responseBytes', responseBytes)
    return namedFor(plan, cost, c) ?? 0
  })
  return cappedCosts(plan, costs, reserved)
}

/** Capped estimates are at most what a request may take: the capacity, less the units `reserved` for higher priorities. */
export function cappedCosts(
  { caps }: Pick<ReadablePlan, 'caps'>,
  costs: readonly number[],
  reserved: readonly number[] | undefined,
): readonly number[] {
  return caps ? costs.map((units, c) => Math.min(units, (caps[c] as number) - (reserved?.[c] ?? 0))) : costs
}

/** The units that a cost takes from a cell. Undefined if it names none, and the unit is none of which a request takes one. */
function namedFor({ units, definitions, cellOf }: ReadablePlan, cost: Cost, c: number): number | undefined {
  const unit = units[c] as QuotaUnit
  const isRequests = unit === 'requests'
  const takesOne = isRequests || unit === PERMITS
  if (typeof cost === 'number') {
    // A cost of 0 takes nothing.
    return isRequests ? cost : takesOne || cost === 0 ? Math.min(cost, 1) : undefined
  }
  const { named, ofLimits } = cost
  const costOption = ofLimits && (definitions[cellOf.indexOf(c)] as Limit).cost
  return (costOption === undefined ? named.get(unit) : ofLimits?.get(costOption)) ?? (takesOne ? 1 : undefined)
}

export function takesNothing(costs: readonly number[]): boolean {
  for (let c = 0; c < costs.length; c++) if (costs[c] !== 0) return false
  return true
}

/** Units per cell that are reserved for priorities above this one. Undefined if none are. */
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
 * is not known in advance, nor are units that the cost does not name, so room for one admits them. Undefined if these are the
 * costs.
 */
export function needsOf(
  plan: ReadablePlan,
  cost: Cost,
  costs: readonly number[],
  reserved: readonly number[] | undefined,
): readonly number[] | undefined {
  const isUnknown = (unit: QuotaUnit, c: number) =>
    unit === 'response-bytes' || (isOwnUnit(unit) && namedFor(plan, cost, c) === undefined)
  const ones = plan.units.map((unit, c) => (isUnknown(unit, c) ? 1 : 0))
  return reserved || !takesNothing(ones) ? withReserved(costs, ones, reserved) : undefined
}

/** `needs`: units that must have room where the cost is 0. */
export function withReserved(
  costs: readonly number[],
  needs: readonly number[],
  reserved: readonly number[] | undefined,
): readonly number[] {
  return costs.map((cost, c) => {
    const units = cost === 0 ? Math.min(needs[c] as number, 1) : cost
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

/** Whether a request takes nothing. Units that are named as 0 may be settled above that. */
export function isPeek(cost: Cost, needs: readonly number[]): boolean {
  return typeof cost === 'number' && takesNothing(needs)
}
