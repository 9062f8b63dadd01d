import type { Units } from '../policy/costs.js'
import type { Limit } from '../policy/limits/limit.js'
import type { ReadablePlan } from '../policy/plan.js'
import type { Policy } from '../policy/policy.js'
import type { ListReport } from '../store/list.js'
import {
  type Cell,
  PEEK,
  type QuotaUnit,
  type ResolvedLimit,
  STRIDE,
  type Store,
  type StoreRequest,
  type StoreResult,
} from '../store/store.js'
import { SluiceError, show, wrongPolicy } from '../util/errors.js'
import { getOrInsert } from '../util/get-or-insert.js'
import { type LimitReport, leftOf, reportsOf, unitsOf, useWithout } from './limit-report.js'
import type { Meter, MeterOptions } from './meter.js'

/** The kind of decision: by the store's state, by a list, or, while the store is away, by this process alone or nothing. */
export type VerdictKind = 'decided' | 'listed' | 'unavailable'

/**
 * The source of a decision:
 *
 * - `store`: the store's state.
 * - `deny-cache`: a recent refusal that this process repeats.
 * - `lease`, `relaxed`: units that this process had taken ahead.
 * - `local`: this process alone, while the store was away.
 * - `mirror`: the blocks that this process knows, while the store was away.
 * - `list`: a list.
 * - `response`: bytes of a response under way, or units of a meter, which exceeded a limit.
 */
export type DecisionSource = 'store' | 'deny-cache' | 'lease' | 'relaxed' | 'local' | 'mirror' | 'list' | 'response'

/** The decision of a store, a list or an outage on a request. Verdicts show it, and copies of a verdict share it. */
export interface Decision {
  readonly request: StoreRequest
  readonly result: StoreResult
  readonly by: DecidedBy
  /** The units whose charge is settled, so that they are not refunded again. */
  settled: ReadonlySet<QuotaUnit> | undefined
  /** The reports of its limits, once they have been read. */
  reports: readonly LimitReport[] | undefined
}

/** `Decision.settled` of a charge that is refunded, with its permits. */
export const REFUNDED: ReadonlySet<QuotaUnit> = new Set()

/** The properties of a decision beside the store's request and result: nearly always the same for all decisions of a limiter. */
export interface DecidedBy {
  readonly charges: {
    /** Whether `settle` and meters may name a unit, be it that another policy of a document counts it. */
    counts(unit: QuotaUnit): boolean
    refund(decision: Decision): Promise<boolean>
    settle(decision: Decision, actual: number | Units): Promise<boolean>
    meter(decision: Decision, unit: QuotaUnit, options: MeterOptions, goesOn: boolean | 'beyond'): Meter
  }
  readonly kind: VerdictKind
  /** The store that takes refunds; undefined if no limit decided. */
  readonly store: Store | undefined
  /** Where no limit decided: milliseconds until the next try, 0 if the request was admitted. */
  readonly tryAgainMs: number | undefined
  /** The policy that decided: of a tier, or of a document. Undefined if a list did. */
  readonly policy: Policy<never> | undefined
  readonly priority: number
  /** Units per cell that are reserved for higher priorities. */
  readonly reserved: readonly number[] | undefined
  /** The number of earlier resets of its limiter. */
  readonly resets: number
  /** The list that decided; undefined if none did. */
  readonly list: ListReport | undefined
  /** The duration, where that is measured. */
  readonly took: { ms: number } | undefined
  /** Whether it decides on bytes of a response under way or on units of a meter, whose request was decided on before. */
  readonly isOfResponse: true | undefined
}

export function decisionOn(request: StoreRequest, result: StoreResult, by: DecidedBy): Decision {
  return { request, result, by, settled: undefined, reports: undefined }
}

/** Whether it charged. The charge may have been refunded since. */
export function isCharged({ request, result, by }: Decision): boolean {
  return result.allowed && request.op !== PEEK && by.store !== undefined
}

/** Whether it charged, and the charge has not been refunded. */
export function isHeld(decision: Decision): boolean {
  return isCharged(decision) && decision.settled !== REFUNDED
}

/** Whether limits decided: neither a list, nor a block, nor an outage without limits. */
export function isOfLimits({ result, by }: Decision): boolean {
  return !result.block && !by.list && by.tryAgainMs === undefined
}

/** One report per limit, in written order; none where no limit decided. */
export function reportsIn(decision: Decision): readonly LimitReport[] {
  const { request, result, by } = decision
  decision.reports ??= isOfLimits(decision) ? reportsOf(request, result, by.reserved) : []
  return decision.reports
}

/** The charged and the remaining units of one unit, over all limits that count it. */
export interface UnitReport {
  /** Charged units; 0 for a peek or a refusal. */
  readonly cost: number
  /** Whole units that would be admitted right now: the minimum over its limits. */
  readonly remaining: number
}

/** The reports of all units, by their names. `isCharging`: whether the verdict shows its charge. */
export function unitsIn(decision: Decision, isCharging: boolean): Readonly<Record<string, UnitReport>> {
  const { costs, plan } = decision.request
  const { cellOf } = plan as ReadablePlan
  const units = new Map<string, UnitReport>()
  for (const [i, { unit, remaining }] of reportsIn(decision).entries()) {
    const cost = isCharging ? (costs[cellOf[i] as number] as number) : 0
    const other = units.get(unit) ?? { cost, remaining }
    units.set(unit, { cost: Math.max(cost, other.cost), remaining: Math.min(remaining, other.remaining) })
  }
  return Object.fromEntries(units)
}

/**
 * The number of the limit that stands for all: of requests with the fewest left, else the one with the smallest share left, and of
 * equal shares with the fewest units.
 */
export function shownLimit({ request, result: { values, offset }, by: { reserved } }: Decision): number {
  const { resolved, positions, cellOf, units } = request.plan as ReadablePlan
  const countsRequests = units.includes('requests')
  let [shown, least, fewest] = [0, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  for (let i = 0; i < resolved.length; i++) {
    const { unit, capacity } = resolved[i] as ResolvedLimit
    if (countsRequests && unit !== 'requests') continue
    const left = leftOf(values[offset + (positions[i] as number) * STRIDE] as number, cellOf[i] as number, reserved)
    const rank = countsRequests ? left : left / Math.max(1, capacity)
    // The order of limits with equal shares must not matter.
    if (rank < least || (rank === least && left < fewest)) [shown, least, fewest] = [i, rank, left]
  }
  return shown
}

/** The identities of the request, each once. */
export function identitiesIn({ request: { identities } }: Decision): readonly string[] {
  return identities.length === 1 ? identities : [...new Set(identities)]
}

export function sourceOf({ result, by: { kind, isOfResponse } }: Decision): DecisionSource {
  if (isOfResponse) return 'response'
  if (kind === 'decided') return result.source ?? 'store'
  return kind === 'listed' ? 'list' : 'local'
}

/** The used fraction of a limit, by its number, after the decision: 0 to 1. */
export function useOf({ request, result }: Decision, i: number): number {
  return useWithout(request, result, i, 0)
}

/** Its used fraction before the charge. */
export function useBefore({ request, result }: Decision, i: number): number {
  return useWithout(request, result, i, unitsOf(request.costs, request, i))
}

/** The used fraction that an admission needs: above 1 where the request was refused. */
export function needOf(decision: Decision, i: number): number {
  const { request, result } = decision
  const missing = isHeld(decision) ? 0 : unitsOf(request.needs ?? request.costs, request, i)
  return useWithout(request, result, i, -missing)
}

/** The name of the policy of a limit: policies that are data are decided as one limiter, and each tier of one is named, too. */
export function policyOfLimit({ policy }: Pick<Limit, 'policy'>, limiter: string): string {
  return policy?.split('.', 1)[0] ?? limiter
}

const policiesOfPlan = new WeakMap<StoreRequest['plan'], readonly string[]>()

/** The policies that decided, each once: those of a document by their own names. Of a refusal, those that refuse. */
export function decidingPolicies(decision: Decision): readonly string[] {
  const { plan } = decision.request
  const all = getOrInsert(policiesOfPlan, plan, () => {
    const names = (plan as ReadablePlan).definitions.map((limit) => policyOfLimit(limit, plan.policy))
    return names.length === 0 ? [plan.policy] : [...new Set(names)]
  })
  return all.length === 1 || decision.result.allowed ? all : [...refusedBy(decision).keys()]
}

/** The identities on which a limit had no room, each once. */
export function refusingIdentities(decision: Decision): readonly string[] {
  const { plan, identities } = decision.request
  const { cells, cellOf } = plan as ReadablePlan
  const refusing = new Set<string>()
  for (const [i, { allowed }] of reportsIn(decision).entries()) {
    const { identity } = cells[cellOf[i] as number] as Cell
    if (!allowed) refusing.add(identities[identity] as string)
  }
  return [...refusing]
}

/**
 * The refused identities, by the policy that refuses: those without room. All identities where no limit
 * refuses, as a block does not show which one is blocked.
 */
export function refusedBy(decision: Decision): ReadonlyMap<string, ReadonlySet<string>> {
  const { plan, identities } = decision.request
  const { cells, cellOf, definitions } = plan as ReadablePlan
  const limits = reportsIn(decision)
  const isByLimit = limits.some(({ allowed }) => !allowed)
  const refused = new Map<string, Set<string>>()
  for (const [i, cell] of cellOf.entries()) {
    if (isByLimit && limits[i]?.allowed) continue
    const policy = policyOfLimit(definitions[i] as Limit, plan.policy)
    const identity = identities[(cells[cell] as Cell).identity] as string
    refused.set(policy, (refused.get(policy) ?? new Set()).add(identity))
  }
  return refused
}

/**
 * The most requests that may be settled: those charged. Where no limit counts requests, any unit's charge. Undefined if
 * nothing was charged, because the request was refused or nothing could decide.
 */
export function maxToSettle(decision: Decision): number | undefined {
  const { request, result, by } = decision
  if (!result.allowed || by.store === undefined) return undefined
  if (request.op === PEEK) return 0
  const { units } = request.plan as ReadablePlan
  const requests = request.costs.filter((_, c) => units[c] === 'requests')
  return Math.max(...(requests.length > 0 ? requests : [1, ...request.costs]))
}

/**
 * Rejects what may charge more than a decision took. Its own process would not count that before its next exchange.
 *
 * @throws SluiceError `INVALID_POLICY` for relaxed counts
 */
export function refuseRelaxed(where: string, { request: { plan } }: Decision, field: 'settle' | 'meter'): void {
  if (!plan.relaxed) return
  wrongPolicy(
    `${where}: ${field}: expected no units by name beside consistency: settle a number, which is at most the charge`,
  )
}

/**
 * @param max the charged requests; undefined if nothing was charged, so that any cost may be settled
 * @throws SluiceError `INVALID_COST`
 */
export function checkActualCost(where: string, actualCost: unknown, max = Number.POSITIVE_INFINITY): number {
  const isUnits = Number.isSafeInteger(actualCost) && (actualCost as number) >= 0
  if (isUnits && (actualCost as number) <= max) return actualCost as number
  const range = max === Number.POSITIVE_INFINITY ? 'of at least 0' : `from 0 to the ${max} charged`
  throw new SluiceError(
    'INVALID_COST',
    `${where}: actual cost: expected a whole number ${range}, got ${show(actualCost)}`,
  )
}
