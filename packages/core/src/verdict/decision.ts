import type { ReadablePlan } from '../policy/plan.js'
import type { ListReport } from '../store/list.js'
import { type Cell, PEEK, type Store, type StoreRequest, type StoreResult } from '../store/store.js'
import { SluiceError, show } from '../util/errors.js'
import { type LimitReport, reportsOf, unitsOf, useWithout } from './limit-report.js'

/** What decided: the store's state, a list, or, while the store is away, this process alone or nothing. */
export type VerdictKind = 'decided' | 'listed' | 'unavailable'

/**
 * What decided: the store's state; a refusal of a moment ago that this process repeats; units that it had taken ahead; this
 * process alone, while the store was away (`local`), or the blocks that it holds meanwhile (`mirror`); a list;
 * bytes of a response under way, which went beyond a limit of `response-bytes`.
 */
export type DecisionSource = 'store' | 'deny-cache' | 'lease' | 'relaxed' | 'local' | 'mirror' | 'list' | 'response'

/** What a store, a list or an outage made of a request. Verdicts show it, and copies of a verdict share it. */
export interface Decision {
  readonly request: StoreRequest
  readonly result: StoreResult
  readonly by: DecidedBy
  /** Which units of its charge have been settled or refunded, so that they are not again: the sum of the three below. */
  returned: number
  /** Of its limits, once they have been asked for. */
  reports: readonly LimitReport[] | undefined
}

/** Of `Decision.returned`: cells that count cost. */
export const SETTLED_COST = 1
/** Of `Decision.returned`: cells that count bytes. */
export const SETTLED_BYTES = 2
/** Of `Decision.returned`: all of it, permits too. */
export const REFUNDED = 4

/** What a decision has beside the store's request and result: nearly always the same for all decisions of a limiter. */
export interface DecidedBy {
  readonly charges: { settle(decision: Decision, actualCost: number, most: number): Promise<boolean> }
  readonly kind: VerdictKind
  /** Refunds go to this store; undefined where no limit decided. */
  readonly store: Store | undefined
  /** Where no limit decided: milliseconds until the next try, 0 if the request was admitted. */
  readonly tryAgainMs?: number
  readonly cost: number
  readonly tier: string | undefined
  readonly priority: number
  /** Units per cell that are kept for higher priorities. */
  readonly kept: readonly number[] | undefined
  /** How many resets of its limiter there had been before. */
  readonly resets: number
  /** The list that decided; undefined where none did. */
  readonly list: ListReport | undefined
  /** How long it took, where that is measured. */
  readonly took: { ms: number } | undefined
  /** Whether it is of bytes of a response under way, whose request was decided on before. */
  readonly isOfResponse?: true
}

export function decisionOn(request: StoreRequest, result: StoreResult, by: DecidedBy): Decision {
  return { request, result, by, returned: 0, reports: undefined }
}

/** Whether it charged. That may have been refunded since. */
export function isCharged({ request, result, by }: Decision): boolean {
  return result.allowed && request.op !== PEEK && by.store !== undefined
}

/** Whether it charged, and that has not been refunded. */
export function isHeld(decision: Decision): boolean {
  return isCharged(decision) && (decision.returned & REFUNDED) === 0
}

/** Whether limits were asked: neither a list nor a block has decided, nor what decides while the store is away. */
export function isOfLimits({ result, by }: Decision): boolean {
  return !result.block && !by.list && by.tryAgainMs === undefined
}

/** One report per limit, in the order they were written; none where no limit was asked. */
export function reportsIn(decision: Decision): readonly LimitReport[] {
  const { request, result, by } = decision
  decision.reports ??= isOfLimits(decision) ? reportsOf(request, result, by.kept) : []
  return decision.reports
}

/** What was decided on, each once. */
export function identitiesIn({ request: { identities } }: Decision): readonly string[] {
  return identities.length === 1 ? identities : [...new Set(identities)]
}

export function sourceOf({ result, by: { kind, isOfResponse } }: Decision): DecisionSource {
  if (isOfResponse) return 'response'
  if (kind === 'decided') return result.source ?? 'store'
  return kind === 'listed' ? 'list' : 'local'
}

/** How much of a limit, by its number, is in use after the decision: 0 to 1. */
export function useOf({ request, result }: Decision, i: number): number {
  return useWithout(request, result, i, 0)
}

/** How much of it was in use before the charge. */
export function useBefore({ request, result }: Decision, i: number): number {
  return useWithout(request, result, i, unitsOf(request.costs, request, i))
}

/** How much of it there had to be for the request to be admitted: above 1 where it was not. */
export function needOf(decision: Decision, i: number): number {
  const { request, result } = decision
  const missing = isHeld(decision) ? 0 : unitsOf(request.needs ?? request.costs, request, i)
  return useWithout(request, result, i, -missing)
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
 * The identities that a refusal is of, by the policy that refuses: those that had no room; all of them where no limit
 * refuses, as a block does not say which one is blocked.
 */
export function refusedBy(decision: Decision): ReadonlyMap<string, ReadonlySet<string>> {
  const { plan, identities } = decision.request
  const { cells, cellOf, definitions } = plan as ReadablePlan
  const limits = reportsIn(decision)
  const isByLimit = limits.some(({ allowed }) => !allowed)
  const refused = new Map<string, Set<string>>()
  for (const [i, cell] of cellOf.entries()) {
    if (isByLimit && limits[i]?.allowed) continue
    // Policies that are data are decided as one limiter.
    const policy = definitions[i]?.policy?.split('.', 1)[0] ?? plan.policy
    const identity = identities[(cells[cell] as Cell).identity] as string
    refused.set(policy, (refused.get(policy) ?? new Set()).add(identity))
  }
  return refused
}

/**
 * @param most what can have been charged at most; undefined where nothing was, so that anything may be settled
 * @throws SluiceError `INVALID_COST`
 */
export function checkActualCost(where: string, actualCost: unknown, most: number | undefined): void {
  if (Number.isSafeInteger(actualCost) && (actualCost as number) >= 0 && !((actualCost as number) > (most ?? Infinity)))
    return
  const range = most === undefined ? 'of at least 0' : `from 0 to the ${most} charged`
  throw new SluiceError(
    'INVALID_COST',
    `${where}: actual cost: expected a whole number ${range}, got ${show(actualCost)}`,
  )
}
