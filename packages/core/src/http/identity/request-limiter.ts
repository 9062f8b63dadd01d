import type { UnavailableOptions } from '../../limiter/fallback.js'
import { Limiter } from '../../limiter/limiter.js'
import type { DecisionOptions } from '../../limiter/options.js'
import type { WaitOptions } from '../../limiter/wait-queue.js'
import { checkCost } from '../../policy/costs.js'
import { isData } from '../../policy/given-identities.js'
import { checkedKey, isMissing } from '../../policy/key.js'
import { kindOf } from '../../policy/keyed.js'
import type { Policy, PolicyChoice } from '../../policy/policy.js'
import { Subjects } from '../../policy/subjects.js'
import type { HttpContext } from '../../request/context.js'
import { startOf } from '../../store/identity.js'
import type { Op, Store } from '../../store/store.js'
import type { Verdict } from '../../verdict/verdict.js'
import { type AnonymousPolicy, mayBeMissing } from './anonymous.js'

const NO_OPTIONS: DecisionOptions = Object.freeze({})

/**
 * A limiter of HTTP requests. What else its methods are given, a text or plain data, names an identity.
 * A request without a key is counted by the key of the anonymous, is not limited, or is an error.
 */
export class RequestLimiter<Request> extends Limiter<Request> {
  readonly #policy: PolicyChoice<Request>
  readonly #anonymous: AnonymousPolicy<Request> | undefined
  readonly #anonymousStart: string

  constructor(
    policy: PolicyChoice<Request>,
    store: Store,
    unavailable: UnavailableOptions,
    anonymous: AnonymousPolicy<Request> | undefined,
  ) {
    const key = anonymous?.key
    const replacement = key && { key, mayReplace: mayBeMissing }
    super(new Subjects(policy, { namesIdentity: isData, replacement }), store, unavailable)
    this.#policy = policy
    this.#anonymous = anonymous
    this.#anonymousStart = startOf(kindOf(key))
  }

  /** Undefined for a request without a key, where such requests are not limited. Without a promise where the store needs none. */
  decideRequest(
    context: HttpContext<Request>,
    cost: number,
    options: DecisionOptions = NO_OPTIONS,
    op?: Op,
  ): Verdict | Promise<Verdict> | undefined {
    const { request } = context
    const { plain } = this.#policy
    if (plain && cost === 1 && !this.#anonymous) {
      const key = plain.key ? plain.key(request, context) : request
      return this.decidePlain(
        plain,
        plain.start + checkedKey(plain.where, key, true),
        op,
        options.fresh,
        options.strikes,
      )
    }
    const units = checkCost(this.#policy.where, 'cost', cost)
    const policy = this.#policy.of(request, context)
    const identities = this.#identitiesOf(policy, context)
    return identities && this.decideResolved(policy.resolve(request, context, identities), units, options, op)
  }

  /** Whether others wait for one of the limits of this request, in this process. */
  hasWaiters(context: HttpContext<Request>): boolean {
    if (!this.hasQueues) return false
    const { request } = context
    const policy = this.#policy.of(request, context)
    const identities = this.#identitiesOf(policy, context)
    return identities !== undefined && this.hasWaitersFor(policy.plan(request, context), identities)
  }

  /** Waits in the queue of the request's key until admitted. */
  async waitTurn(context: HttpContext<Request>, wait: WaitOptions, options?: DecisionOptions): Promise<Verdict> {
    const { request } = context
    const policy = this.#policy.of(request, context)
    const identities = this.#identitiesOf(policy, context) ?? []
    return this.waitTurnOf(() => policy.resolve(request, context, identities), wait, options)
  }

  /** Undefined for a request that is not limited because a key is missing. */
  #identitiesOf(policy: Policy<Request>, context: HttpContext<Request>): string[] | undefined {
    const anonymous = this.#anonymous
    const { request } = context
    if (!anonymous) return policy.identitiesOf(request, context)
    const { keys, starts, where } = policy
    const identities: string[] = []
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i]
      const value = key ? key(request, context) : request
      if (!isMissing(value)) identities.push(starts[i] + checkedKey(where, value, true))
      else if (!anonymous.key) return undefined
      else identities.push(this.#anonymousStart + checkedKey(where, anonymous.key(request, context), true))
    }
    return identities
  }
}
