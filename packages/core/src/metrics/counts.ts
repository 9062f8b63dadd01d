import type { WaitedEvent } from '../limiter/events.js'
import { refusingLimit } from '../limiter/limiter-emitter.js'
import type { DecisionCounter } from '../limiter/watching.js'
import type { ReadablePlan } from '../policy/plan.js'
import { CHARGE, DEBIT, REFUND, type StoreRequest } from '../store/store.js'
import { type Decision, isHeld, isOfLimits, needOf, sourceOf } from '../verdict/decision.js'
import { DECISION, type Verdict } from '../verdict/verdict.js'
import { Permits } from './permit-counts.js'
import { OTHER, PolicyCounts, type TierCounts } from './policy-counts.js'
import type { LimitUseCounts } from './use-counts.js'

/** One decision in this many is measured: reading the clock twice would be most of the cost of a count. */
export const MEASURED_EVERY = 16
/** Policies beyond are counted as one, of the name `other`. */
const MAX_POLICIES = 100

/** The counters of this process. */
export class Counts implements DecisionCounter {
  readonly since = Date.now()
  readonly permits = new Permits()
  readonly warnings = new Map<string, number>()
  policiesReloaded = 0
  readonly #byPolicy = new Map<string, PolicyCounts>()
  /** The last decision's policy. */
  #last: PolicyCounts | undefined
  #decisions = 0

  get policies(): readonly PolicyCounts[] {
    return [...this.#byPolicy.values()]
  }

  measuresNext(): boolean {
    return this.#decisions++ % MEASURED_EVERY === 0
  }

  decided(verdict: Verdict): void {
    const last = this.#last
    const counts = last?.policy === verdict.policy ? last : this.of(verdict.policy)
    this.#last = counts
    const decision = verdict[DECISION]
    const source = sourceOf(decision)
    const { allowed } = verdict
    const ofTier = counts.ofTier(verdict.tier ?? '')
    ofTier.decided(
      allowed ? '' : (refusingLimit(verdict) ?? ''),
      verdict.reason ?? 'admitted',
      source,
      verdict.reported,
    )
    const { took } = decision.by
    if (took) counts.took(source, took.ms)
    if (!isOfLimits(decision)) return
    const { request } = decision
    // During an outage the limits differ: they are shares, or not those that other processes charge.
    if (verdict.kind === 'decided') this.#countUse(ofTier, decision)
    const { costs, plan } = request
    if (costs !== (plan as ReadablePlan).ones && costs.some((cost) => cost !== 1)) counts.chargesOnes = false
    if (isHeld(decision)) counts.units.add(request, 'charged')
    if (request.permitId !== '' && allowed && isHeld(decision)) this.permits.take(counts.policy, request)
  }

  #countUse(counts: TierCounts, decision: Decision): void {
    const uses = counts.usesOf(decision.request.plan as ReadablePlan)
    for (let i = 0; i < uses.length; i++) (uses[i] as LimitUseCounts).add(needOf(decision, i))
  }

  changedCharge(request: StoreRequest): void {
    if (request.permitId !== '') this.permits.change(request)
    const counts = this.of(request.plan.policy)
    counts.chargesOnes = false
    if (request.op === REFUND) counts.units.add(request, 'refunded')
    if (request.op === DEBIT || request.op === CHARGE) counts.units.add(request, 'charged')
  }

  waits(policy: string): (outcome: WaitedEvent['outcome'], waitedMs: number) => void {
    return this.of(policy).waits()
  }

  of(policy: string): PolicyCounts {
    let counts = this.#byPolicy.get(policy)
    if (!counts) {
      const name = this.#byPolicy.size < MAX_POLICIES ? policy : OTHER
      counts = this.#byPolicy.get(name) ?? new PolicyCounts(name)
      this.#byPolicy.set(name, counts)
    }
    return counts
  }
}
