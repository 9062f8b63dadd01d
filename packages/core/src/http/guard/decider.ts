import type { Engine } from '../../limiter/engine.js'
import type { DecisionOptions } from '../../limiter/options.js'
import type { Cost } from '../../policy/costs.js'
import type { Policy, PolicyChoice, Resolved } from '../../policy/policy.js'
import type { HttpContext } from '../../request/context.js'
import { PEEK } from '../../store/store.js'
import { type MaybePromise, whenKnown } from '../../util/when-known.js'
import { marked, type Verdict } from '../../verdict/verdict.js'
import { requestCost } from '../charging/cost.js'
import type { AnonymousRequests } from '../identity/anonymous.js'
import type { Waits } from './guard-feature.js'

/** The parts of a decider, beside its engine. */
export interface DeciderParts<Request> {
  /** Undefined if a missing key is an error. */
  readonly anonymous: AnonymousRequests<Request> | undefined
  /** Where requests wait for a turn. */
  readonly waits: Waits<Request> | undefined
  readonly optionsFor: (context: HttpContext<Request>) => DecisionOptions
}

/** Decides on requests by the policy's identities, and behind requests that already wait. */
export class Decider<Request> {
  readonly #engine: Engine<Request>
  readonly #by: DeciderParts<Request>

  constructor(engine: Engine<Request>, by: DeciderParts<Request>) {
    this.#engine = engine
    this.#by = by
  }

  /**
   * Undefined for a request without a key, where such requests are not limited. Returns a promise only where it has to wait.
   *
   * @param choice the request's own policy, where it differs from the limiter's in the numbers of its limits
   */
  decide(
    context: HttpContext<Request>,
    units: unknown,
    choice: PolicyChoice<Request> = this.#engine.policy,
  ): MaybePromise<Verdict | undefined> {
    const options = this.#by.optionsFor(context)
    const cost = requestCost(choice, units)
    return whenKnown(
      this.#resolve(context, choice),
      (resolved) => resolved && this.#decideInTurn(resolved, cost, options),
    )
  }

  #decideInTurn(resolved: Resolved<Request>, cost: Cost, options: DecisionOptions): Verdict | Promise<Verdict> {
    const engine = this.#engine
    if (!this.#by.waits?.areBefore(resolved, cost)) return engine.decide(resolved, cost, options)
    // Waiting requests are first: any room belongs to them.
    return whenKnown(engine.decide(resolved, cost, options, PEEK), behindWaiters)
  }

  #resolve(context: HttpContext<Request>, choice: PolicyChoice<Request>): MaybePromise<Resolved<Request> | undefined> {
    const { request } = context
    return whenKnown(choice.of(request, context), (policy) =>
      whenKnown(
        identitiesOf(policy, context, this.#by.anonymous),
        (identities) => identities && policy.resolve(request, context, identities),
      ),
    )
  }
}

/** Undefined for a request that is not limited because a key is missing. */
export function identitiesOf<Request>(
  policy: Policy<Request>,
  context: HttpContext<Request>,
  anonymous: AnonymousRequests<Request> | undefined,
): MaybePromise<string[] | undefined> {
  return anonymous ? anonymous.identitiesOf(policy, context) : policy.identitiesOf(context.request, context)
}

/** Turns an admission into a wait for the request's turn behind the others. */
function behindWaiters(verdict: Verdict): Verdict {
  return verdict.allowed ? marked(verdict, { waitMs: 1 }) : verdict
}
