import type { ReadablePlan } from '../policy/plan.js'
import type { HttpContext } from '../request/context.js'
import { identityIn } from '../store/identity.js'
import type { ResolvedLimit, StoreRequest, StoreResult, StrikeResult } from '../store/store.js'
import { MadeAt } from '../util/caller.js'
import { hasDecisionListeners, Listeners } from '../util/listeners.js'
import { isHeld, isOfLimits, sourceOf, useBefore, useOf } from '../verdict/decision.js'
import { longestRefusal } from '../verdict/limit-report.js'
import { DECISION, type Verdict } from '../verdict/verdict.js'
import { type DecisionEvent, LIMITER_EVENTS, type LimiterEvents, type WaitedEvent } from './events.js'
import type { LimitUse } from './near-limit.js'
import { activeCounter, activeRecorder } from './watching.js'

/** Sends the events of a limiter to its listeners, those of the process, diagnostics channels, and counters of metrics. */
export class LimiterEmitter {
  readonly listeners: Listeners<LimiterEvents>

  /** `where`: the name of the limiter in warnings, which name the place where one without a name is made. */
  constructor(where: string, name: string | undefined) {
    const madeAt = name === undefined ? new MadeAt(where) : undefined
    this.listeners = new Listeners<LimiterEvents>(where, LIMITER_EVENTS, undefined, madeAt)
  }

  /** Whether to measure the next decision. */
  get isMeasured(): boolean {
    const { listeners } = this
    if (activeCounter()?.measuresNext()) return true
    return hasDecisionListeners() && (listeners.hasListeners('decision') || listeners.hasListeners('refused'))
  }

  /** Whether there is a listener for strikes or bans. */
  get hasStrikeListeners(): boolean {
    return this.listeners.hasListeners('strike') || this.listeners.hasListeners('ban')
  }

  /** Takes a final verdict. `isRefused`: whether the request does not proceed. Call it where decisions are watched. */
  decided(verdict: Verdict, isRefused: boolean, context?: HttpContext): void {
    activeCounter()?.decided(verdict)
    activeRecorder()?.decided(verdict, isRefused, context)
    if (!hasDecisionListeners()) return
    const { listeners } = this
    if (verdict.allowed && listeners.hasListeners('near-limit')) {
      for (const use of usesOf(verdict)) listeners.send('near-limit', use as never)
    }
    const isObserved = listeners.hasListeners('decision')
    const isRefusalObserved = isRefused && listeners.hasListeners('refused')
    if (!isObserved && !isRefusalObserved) return
    const event = decisionEvent(verdict, context)
    if (isObserved) listeners.send('decision', event)
    if (isRefusalObserved) listeners.send('refused', event)
  }

  /** Takes the verdict of a request whose refusal is a strike. */
  struckByRefusal({ plan: { ban }, identities }: StoreRequest, verdict: Verdict): void {
    const { result } = verdict[DECISION]
    if (!ban || !(verdict.reason === 'limited' || result.block?.hasBegun)) return
    const strike = { weight: 1, reason: '' }
    this.struck(verdict.policy, identities[ban.identity] as string, strike, result, verdict.kind === 'unavailable')
  }

  /** Takes each strike. */
  struck(
    policy: string,
    text: string,
    { weight, reason }: { readonly weight: number; readonly reason: string },
    { block }: StrikeResult | StoreResult,
    isLocal: boolean,
  ): void {
    // While a block or ban holds, strikes do not count.
    if (!this.hasStrikeListeners || (block && !block.hasBegun)) return
    const { listeners } = this
    const identity = identityIn(text)
    listeners.send('strike', { policy, identity, weight, reason, isLocal })
    if (!block?.ban) return
    const { rung, strikes } = block.ban
    listeners.send('ban', { policy, identity, rung, strikes, forMs: block.remainingMs, reason: block.reason, isLocal })
  }

  /** Takes the start of a wait in a queue. Returns the function to call at its end; undefined without listeners. */
  waits(policy: string): ((outcome: WaitedEvent['outcome']) => void) | undefined {
    const counted = activeCounter()?.waits(policy)
    const isObserved = this.listeners.hasListeners('waited')
    if (!counted && !isObserved) return undefined
    const began = performance.now()
    return (outcome) => {
      const waitedMs = performance.now() - began
      counted?.(outcome, waitedMs)
      if (isObserved) this.listeners.send('waited', { policy, waitedMs, outcome })
    }
  }
}

function decisionEvent(verdict: Verdict, context: HttpContext | undefined): DecisionEvent {
  const { policy, allowed, reported } = verdict
  return {
    policy,
    allowed,
    outcome: verdict.reason ?? 'admitted',
    limit: refusingLimit(verdict),
    source: sourceOf(verdict[DECISION]),
    durationMs: verdict[DECISION].by.took?.ms ?? 0,
    used: largestUse(verdict),
    reported,
    path: context?.path,
    verdict,
  }
}

/** The name of the limit with the longest refusal. */
export function refusingLimit(verdict: Verdict): string | undefined {
  if (verdict.allowed || verdict.reason === 'left') return undefined
  const { limits } = verdict
  return limits[longestRefusal(limits)]?.name
}

function largestUse(verdict: Verdict): number | undefined {
  const decision = verdict[DECISION]
  if (!isOfLimits(decision)) return undefined
  const { resolved } = decision.request.plan as ReadablePlan
  return resolved.reduce((largest, _, i) => Math.max(largest, useOf(decision, i)), 0)
}

/** The change that a verdict's charge made in the use of each limit. */
function usesOf(verdict: Verdict): readonly LimitUse[] {
  const decision = verdict[DECISION]
  if (!isOfLimits(decision) || !isHeld(decision)) return []
  const { resolved } = decision.request.plan as ReadablePlan
  return resolved.map(({ name }: ResolvedLimit, i) => {
    const [before, used] = [useBefore(decision, i), useOf(decision, i)]
    return { policy: verdict.policy, limit: name, used, before, verdict }
  })
}
