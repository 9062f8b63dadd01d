import type { PolicyChoice } from '../../policy/policy.js'
import type { HttpContext } from '../../request/context.js'
import { marked, type Verdict } from '../../verdict/verdict.js'
import type { Ending } from '../responders/responder.js'
import type { GuardParts } from './parts.js'

/** A request on its way through a guard: what the steps so far have found out. */
export class GuardedRequest<Request> {
  readonly guard: GuardParts<Request>
  readonly context: HttpContext<Request>
  /** The limits of this request, where they differ in numbers from those that the guard was made with. */
  readonly choice: PolicyChoice<Request> | undefined
  units = 1
  /** Whether a trap is for its path. */
  isCaught = false
  /** Whether the store that decided may hold charges of other processes. */
  isShared = false
  /** Whether the verdict is acted on: one for one key, whatever it says. */
  isEnforced = true
  verdict: Verdict | undefined
  /** What becomes of it, once that is known: then only its outcome is left to be made. */
  ending: Ending | undefined

  constructor(guard: GuardParts<Request>, context: HttpContext<Request>, choice: PolicyChoice<Request> | undefined) {
    this.guard = guard
    this.context = context
    this.choice = choice
  }

  /** From now on the request holds its permits, and its charge is corrected when its outcome is known. */
  holdCharges(verdict: Verdict): void {
    const { permits, charging } = this.guard
    permits?.hold(verdict, this.context.response)
    charging?.applyOutcomeLater(this.context, verdict)
  }

  /** The client has left before its request was admitted, or before its turn came: it was not refused, and holds no charge. */
  leave(verdict: Verdict): void {
    this.verdict = marked(verdict, { hasLeft: true })
    this.ending = 'gone'
  }
}
