import type { PolicyChoice } from '../../policy/policy.js'
import type { HttpContext } from '../../request/context.js'
import { propertyOf } from '../../util/property-of.js'
import { marked, type Verdict } from '../../verdict/verdict.js'
import type { Ending } from '../responders/responder.js'
import type { FindInForce, HoldsCharges } from './decider.js'
import type { GuardParts } from './parts.js'

/** A request within a guard: the results of the steps so far. */
export class GuardedRequest<Request> {
  readonly guard: GuardParts<Request>
  readonly context: HttpContext<Request>
  /** The limits of this request, where their numbers differ from those of the guard. */
  readonly choice: PolicyChoice<Request> | undefined
  /** Undefined where its policies stay. */
  readonly inForce: FindInForce<Request> | undefined
  /** Its cost, unchecked. */
  units: unknown
  /** Those of the guard, or of the policies that have come into force while it waited. */
  holder: HoldsCharges<Request>
  /** Whether its path is in a trap. */
  isCaught = false
  /** Whether the store that decided may hold charges of other processes. */
  isShared = false
  /** Whether the verdict is enforced: the same for every verdict of one key. */
  isEnforced = true
  verdict: Verdict | undefined
  /** The ending, once that is known: then only the outcome is to be made. */
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

  /** Holds the request's permits from now on, and corrects its charge when its outcome is known. */
  holdCharges(verdict: Verdict): void {
    if (propertyOf(this.context, 'keepsCharges')) return
    const { permits, charging } = this.holder
    permits?.hold(verdict, this.context.response)
    charging?.applyOutcomeLater(this.context, verdict)
  }

  /** The client left before its request was admitted, or before its turn came. The request was not refused, and holds no charge. */
  leave(verdict: Verdict): void {
    this.verdict = marked(verdict, { hasLeft: true })
    this.ending = 'gone'
  }
}
