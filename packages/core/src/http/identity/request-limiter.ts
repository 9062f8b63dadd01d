import type { UnavailableOptions } from '../../limiter/fallback.js'
import { Limiter } from '../../limiter/limiter.js'
import type { LimiterEmitter } from '../../limiter/limiter-emitter.js'
import type { ListedSubjects } from '../../limiter/listed-subjects.js'
import { type DecisionOptions, NO_OPTIONS } from '../../limiter/options.js'
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
import { isThenable } from '../../util/thenable.js'
import { ignorePromises, whenAllKnown, whenKnown } from '../../util/when-known.js'
import type { Verdict } from '../../verdict/verdict.js'
import { type AnonymousPolicy, mayBeMissing } from './anonymous.js'

/**
 * A limiter of HTTP requests. What else its methods are given, a text or plain data, names an identity.
 * A request without a key is counted by the key of the anonymous, is not limited, or is an error.
 */
export class RequestLimiter<Request> extends Limiter<Request> {
  readonly #policy: PolicyChoice<Request>
  readonly #anonymous: AnonymousPolicy<Request> | undefined
  readonly #anonymousStart: string
  readonly #listed: ListedSubjects<Request> | undefined

  constructor(
    policy: PolicyChoice<Request>,
    store: Store,
    unavailable: UnavailableOptions,
    anonymous: AnonymousPolicy<Request> | undefined,
    listed: ListedSubjects<Request> | undefined,
    emitter: LimiterEmitter,
  ) {
    const key = anonymous?.key
    const replacement = key && { key, mayReplace: mayBeMissing }
    super(new Subjects(policy, { namesIdentity: isData, replacement }), store, unavailable, listed, emitter)
    this.#policy = policy
    this.#listed = listed
    this.#anonymous = anonymous
    this.#anonymousStart = startOf(kindOf(key))
  }

  /** While lists are read for the first time: what `decideByList` has to wait for. */
  get listsPending(): Promise<unknown> | undefined {
    return this.#listed?.pending
  }

  /** The verdict of a list that the request is on; undefined where it is on none. Asked before `decideRequest`. */
  decideByList(context: HttpContext<Request>): Verdict | undefined {
    return this.#listed?.decide(context.request, context)
  }

  /**
   * Undefined for a request without a key, where such requests are not limited. Without a promise where nothing needs one.
   *
   * @param choice that of the request, where it is another than the limiter's: the same but for the numbers of its limits
   */
  decideRequest(
    context: HttpContext<Request>,
    cost: number,
    options: DecisionOptions = NO_OPTIONS,
    op?: Op,
    choice: PolicyChoice<Request> = this.#policy,
  ): Verdict | undefined | Promise<Verdict | undefined> {
    const { request } = context
    const { plain } = choice
    if (plain && cost === 1 && !this.#anonymous) {
      const key: unknown = plain.key ? plain.key(request, context) : request
      if (typeof key !== 'string' && isThenable(key)) {
        return Promise.resolve(key).then((late) =>
          this.decidePlain(plain, checkedKey(plain.where, late, true), op, options.fresh, options.strikes),
        )
      }
      return this.decidePlain(plain, checkedKey(plain.where, key, true), op, options.fresh, options.strikes)
    }
    const units = checkCost(choice.where, 'cost', cost)
    const policy = choice.of(request, context)
    if (policy instanceof Promise) return policy.then((known) => this.#decideBy(known, context, units, options, op))
    return this.#decideBy(policy, context, units, options, op)
  }

  #decideBy(
    policy: Policy<Request>,
    context: HttpContext<Request>,
    units: number,
    options: DecisionOptions,
    op: Op | undefined,
  ): Verdict | undefined | Promise<Verdict | undefined> {
    return whenKnown(this.#identitiesOf(policy, context), (identities) => {
      const resolved = identities && policy.resolve(context.request, context, identities)
      return resolved && whenKnown(resolved, (known) => this.decideResolved(known, units, options, op))
    })
  }

  /** Whether others wait for one of the limits of this request, in this process. */
  hasWaiters(context: HttpContext<Request>, choice: PolicyChoice<Request> = this.#policy): boolean | Promise<boolean> {
    if (!this.hasQueues) return false
    const { request } = context
    return whenKnown(choice.of(request, context), (policy) =>
      whenKnown(this.#identitiesOf(policy, context), (identities) =>
        identities === undefined
          ? false
          : whenKnown(policy.plan(request, context), (plan) => this.hasWaitersFor(plan, identities)),
      ),
    )
  }

  /** Waits in the queue of the request's key until admitted. */
  async waitTurn(
    context: HttpContext<Request>,
    wait: WaitOptions,
    options?: DecisionOptions,
    choice: PolicyChoice<Request> = this.#policy,
  ): Promise<Verdict> {
    const { request } = context
    const chosen = choice.of(request, context)
    const policy = chosen instanceof Promise ? await chosen : chosen
    const found = this.#identitiesOf(policy, context)
    const identities = (found instanceof Promise ? await found : found) ?? []
    return this.waitTurnOf(() => policy.resolve(request, context, identities), wait, options)
  }

  /** Undefined for a request that is not limited because a key is missing. */
  #identitiesOf(
    policy: Policy<Request>,
    context: HttpContext<Request>,
  ): string[] | undefined | Promise<string[] | undefined> {
    const { request } = context
    if (!this.#anonymous) return policy.identitiesOf(request, context)
    const values: unknown[] = []
    try {
      for (const key of policy.keys) values.push(key ? key(request, context) : request)
      // Asked for now as well, while the request is as it came.
      const others = values.some(isThenable) ? this.#anonymousIdentity(policy, context) : undefined
      return whenAllKnown(values, (known) => this.#identitiesBy(policy, context, known, others))
    } catch (error) {
      ignorePromises(values)
      throw error
    }
  }

  #identitiesBy(
    policy: Policy<Request>,
    context: HttpContext<Request>,
    values: readonly unknown[],
    anonymous: string | undefined,
  ): string[] | undefined {
    const { starts, where } = policy
    this.#anonymous?.missing.look(context, policy.keys, values)
    const identities: string[] = []
    for (const [i, value] of values.entries()) {
      if (!isMissing(value)) identities.push(starts[i] + checkedKey(where, value, true))
      else if (!this.#anonymous?.key) return undefined
      else identities.push(anonymous ?? (this.#anonymousIdentity(policy, context) as string))
    }
    return identities
  }

  /** What a request without a key is counted under; undefined where such requests are not limited. */
  #anonymousIdentity({ where }: Policy<Request>, context: HttpContext<Request>): string | undefined {
    const key = this.#anonymous?.key
    return key && this.#anonymousStart + checkedKey(where, key(context.request, context), true)
  }
}
