import type { WaitedEvent } from '../limiter/events.js'
import { refusingLimit } from '../limiter/limiter-emitter.js'
import type { DecisionCounter } from '../limiter/watching.js'
import type { ReadablePlan } from '../policy/plan.js'
import type { StoreRequest } from '../store/store.js'
import { Verdict } from '../verdict/verdict.js'
import { Permits } from './permit-counts.js'
import { OTHER, PolicyCounts } from './policy-counts.js'
import type { LimitUseCounts } from './use-counts.js'

/** One in so many decisions is measured: two looks at the clock would be most of what a count costs. */
export const MEASURED_EVERY = 16
/** Policies beyond are counted as one, of the name `other`. */
const MOST_POLICIES = 100

/** The counters of this process. */
export class Counts implements DecisionCounter {
  readonly since = Date.now()
  readonly permits = new Permits()
  readonly warnings = new Map<string, number>()
  policiesReloaded = 0
  readonly #byPolicy = new Map<string, PolicyCounts>()
  /** Of the last decision. */
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
    const source = Verdict.sourceOf(verdict)
    const { allowed } = verdict
    counts.decided(
      allowed ? '' : (refusingLimit(verdict) ?? ''),
      verdict.reason ?? 'admitted',
      source,
      verdict.reported,
    )
    const took = Verdict.tookOf(verdict)
    if (took !== undefined) counts.took(source, took)
    const request = Verdict.limitedRequestOf(verdict)
    if (!request) return
    // During an outage the limits are others: shares of them, or not those that other processes charge.
    if (verdict.kind === 'decided') this.#countUse(counts, verdict, request)
    if (request.permitId !== '' && allowed && Verdict.isHeld(verdict)) this.permits.take(counts.policy, request)
  }

  #countUse(counts: PolicyCounts, verdict: Verdict, { plan }: StoreRequest): void {
    const uses = counts.usesOf(plan as ReadablePlan)
    for (let i = 0; i < uses.length; i++) (uses[i] as LimitUseCounts).add(Verdict.needOf(verdict, i))
  }

  changedPermits(request: StoreRequest): void {
    this.permits.change(request)
  }

  waits(policy: string): (outcome: WaitedEvent['outcome'], waitedMs: number) => void {
    return this.of(policy).waits()
  }

  of(policy: string): PolicyCounts {
    let counts = this.#byPolicy.get(policy)
    if (!counts) {
      const name = this.#byPolicy.size < MOST_POLICIES ? policy : OTHER
      counts = this.#byPolicy.get(name) ?? new PolicyCounts(name)
      this.#byPolicy.set(name, counts)
    }
    return counts
  }
}
