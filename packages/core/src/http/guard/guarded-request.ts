import type { PolicyChoice } from '../../policy/policy.js'
import type { HttpContext } from '../../request/context.js'
import { propertyOf } from '../../util/property-of.js'
import type { MaybePromise } from '../../util/when-known.js'
import { marked, type Verdict } from '../../verdict/verdict.js'
import type { Ending } from '../responders/responder.js'
import type { FindInForce, HoldsCharges, PassingRequest } from './guard-feature.js'
import type { GuardParts } from './parts.js'

/** A request within a guard: the results of the steps so far. */
export class GuardedRequest<Request> implements PassingRequest<Request> {
  readonly guard: GuardParts<Request>
  readonly context: HttpContext<Request>
  readonly choice: PolicyChoice<Request> | undefined
  readonly inForce: FindInForce<Request> | undefined
  units: unknown
  holder: HoldsCharges<Request>
  isShared = false
  isEnforced = true
  verdict: Verdict | undefined
  ending: Ending | undefined

  constructor(
    guard: GuardParts<Request>,
    context: HttpContext<Request>,
    choice: PolicyChoice<Request> | undefined,
    inForce: FindInForce<Request> | undefined,
  ) {
    this.guard = guard
    this.holder = guard
    this.context = context
    this.choice = choice
    this.inForce = inForce
    // A function is asked in a step.
    this.units = typeof guard.cost === 'number' ? guard.cost : 1
  }

  decideEarly(verdict: Verdict): void {
    this.isEnforced = this.guard.enforcement.covers(verdict)
    this.verdict = this.isEnforced ? verdict : marked(verdict, { reported: true })
    if (verdict.allowed || !this.isEnforced) this.ending = 'proceed'
  }

  decideAgain(): MaybePromise<Verdict | undefined> {
    return this.guard.decider.decide(this.context, this.units, this.choice)
  }

  holdCharges(verdict: Verdict): void {
    const { context, holder } = this
    if (propertyOf(context, 'keepsCharges')) return
    holder.permits?.hold(verdict, context.response)
    for (const charged of holder.charged) charged(context, verdict)
  }

  leave(verdict: Verdict): void {
    this.verdict = marked(verdict, { hasLeft: true })
    this.ending = 'gone'
  }
}
