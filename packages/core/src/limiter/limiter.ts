import { memoryStore } from '../memory/store.js'
import { checkCost, costsOf, keptFor, needsOf, takesNothing } from '../policy/costs.js'
import { ANONYMOUS_START, GivenIdentities, isData, isPlainObject } from '../policy/given-identities.js'
import { checkedKey, isMissing } from '../policy/key.js'
import type { GivenKeys } from '../policy/kinds.js'
import type { LimitForm } from '../policy/limit-form.js'
import type { KeyFunction } from '../policy/limits/limit.js'
import type { ReadablePlan } from '../policy/plan.js'
import { type Plain, POLICY_OPTIONS, Policy, type PolicyChoice, type PolicyOptions } from '../policy/policy.js'
import { checkPriority } from '../policy/priority.js'
import { choosePolicy } from '../policy/tiers.js'
import type { HttpContext } from '../request/context.js'
import type { IdentityByKind, KeyValue } from '../store/identity.js'
import {
  type Cell,
  type Op,
  PEEK,
  REFUND,
  RELEASE,
  RENEW,
  type Store,
  type StoreRequest,
  type StoreResult,
} from '../store/store.js'
import { type Duration, durationMs } from '../util/duration.js'
import { invalidPolicy, SluiceError } from '../util/errors.js'
import { pause } from '../util/pause.js'
import { knownOptions } from '../util/validate.js'
import {
  type Charge,
  checkActualCost,
  type DecidedBy,
  SETTLED_BYTES,
  SETTLED_COST,
  Verdict,
} from '../verdict/verdict.js'
import { isUnavailable, LocalFallback, UNAVAILABLE_OPTIONS, type UnavailableOptions } from './fallback.js'
import { Resets } from './resets.js'
import { type AcquireOptions, acquireOptions, type Waiter, type WaitOptions, WaitQueues } from './wait-queue.js'

export interface LimiterOptions<Subject> extends PolicyOptions<Subject>, UnavailableOptions {
  /** Where state lives. @default a memory store of this limiter's own */
  readonly store?: Store
}

export interface CostOptions {
  /** Units this takes from every limit: whole, 0 or more; 0 peeks. @default 1 */
  readonly cost?: number
  /** Bytes this takes from limits whose unit is `content-bytes`; needed to consume where there are such limits. */
  readonly bytes?: number
  /** What `reserve` goes by. @default by the policy's `priority`, else 0 */
  readonly priority?: number
  /** The tier, for a key that is given as text to a limiter of requests. @default by the policy's `tier` */
  readonly tier?: string
}

/** What is asked with beside the cost. */
export interface DecisionOptions extends Omit<CostOptions, 'cost'> {
  /** Whether only the store's state will do, not what it said a moment ago. @default false */
  readonly fresh?: boolean
}

export interface BlockOptions {
  /** How long: whole milliseconds or a duration such as `'1h'`. */
  readonly for: Duration
  /** Shown in verdicts of blocked requests; up to 200 characters. @default '' */
  readonly reason?: string
}

/**
 * A limiter: one policy on one store.
 *
 * ```ts
 * const limiter = createLimiter({ name: 'mail', store, limit: 20, window: '1m' })
 * const verdict = await limiter.consume('user:42', { cost: 3 })
 * ```
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function createLimiter<Subject = string>(options: LimiterOptions<Subject> & LimitForm): Limiter<Subject> {
  knownOptions('limiter', options, [...POLICY_OPTIONS, ...UNAVAILABLE_OPTIONS, 'store'])
  const { store = memoryStore() } = options
  return new Limiter(choosePolicy(options), store, options)
}

/** Permit ids are unique over processes and restarts: the id of this process, and a number. */
let permits = 0
const holder = crypto.randomUUID().slice(-12)

export class Limiter<Subject = string> {
  readonly #policy: PolicyChoice<Subject>
  readonly #store: Store
  readonly #fallback: LocalFallback
  readonly #queues = new WaitQueues()
  /** What its subjects are, beside identities by their kind. */
  readonly #subjects: 'requests' | 'texts' | 'own'
  readonly #given: GivenIdentities
  readonly #anonymous: AnonymousPolicy<Subject> | undefined
  readonly #plain: Plain<Subject> | undefined
  readonly #resets = new Resets()
  /** What nearly every verdict is told of its decision. */
  #from: DecidedBy

  /**
   * @internal Use `createLimiter`. `ofRequests`: its subjects are HTTP requests, so a text is an identity's.
   * `anonymous`: what counts for a request that has no key; without it, that is an error.
   */
  constructor(
    policy: PolicyChoice<Subject>,
    store: Store,
    unavailable: UnavailableOptions,
    ofRequests = false,
    anonymous?: AnonymousPolicy<Subject>,
  ) {
    if (typeof store?.decide !== 'function') {
      invalidPolicy(policy.where, 'store', 'memoryStore() or redisStore(client)', store)
    }
    this.#policy = policy
    this.#store = store
    this.#fallback = new LocalFallback(policy.where, store, unavailable)
    this.#plain = policy instanceof Policy ? policy.plain : undefined
    this.#from = {
      limiter: this,
      kind: 'decided',
      store,
      cost: 1,
      tier: undefined,
      priority: 0,
      kept: undefined,
      resets: 0,
    }
    const isKeyed = policy.all.some(({ keys }) => keys.some((key) => key !== undefined))
    this.#subjects = ofRequests ? 'requests' : isKeyed ? 'own' : 'texts'
    this.#given = new GivenIdentities(policy, anonymous?.key)
    this.#anonymous = anonymous
  }

  get name(): string {
    return this.#policy.name
  }

  /** The limits as they were made; a plain `{ limit, window }` shows here which algorithm it became. */
  get limits(): PolicyChoice<Subject>['limits'] {
    return this.#policy.limits
  }

  /**
   * Decides, and charges every limit if all have room. Never rejects for a refusal, nor because the
   * store is away: then `onUnavailable` decides.
   *
   * @throws SluiceError `INVALID_KEY`, `INVALID_COST`, `INVALID_POLICY` (options, or a limit function's result)
   */
  // Not `async`, which would pass a store's promise on three turns of the microtask queue later, and through two more.
  consume(subject: Subject, options: CostOptions = NO_OPTIONS): Promise<Verdict> {
    try {
      if (options !== NO_OPTIONS && !isCostOptions(options)) this.#checkOptions('consume', options)
      const verdict = this.decide(subject, undefined, options.cost, undefined, options)
      return verdict instanceof Promise ? verdict : Promise.resolve(verdict)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** What `consume` would answer now. Changes nothing. */
  async peek(subject: Subject, options: CostOptions = NO_OPTIONS): Promise<Verdict> {
    if (options !== NO_OPTIONS && !isCostOptions(options)) this.#checkOptions('peek', options)
    return this.decide(subject, undefined, options.cost, PEEK, options)
  }

  #checkOptions(method: string, options: CostOptions): void {
    knownOptions(`${this.#policy.where}: ${method}`, options, COST_OPTIONS)
  }

  /** @internal `consume` for a request that may have an HTTP context; answers at once where the store can. */
  decide(
    subject: Subject,
    context: HttpContext<Subject> | undefined,
    cost = 1,
    op?: Op,
    options: DecisionOptions = NO_OPTIONS,
  ): Verdict | Promise<Verdict> {
    const isGiven = context === undefined && this.#isIdentity(subject)
    const plain = this.#plain
    if (plain && !isGiven && cost === 1 && options.tier === undefined && options.priority === undefined) {
      return this.#decidePlainly(plain, subject, context, op, options)
    }
    const units = checkCost(this.#policy.where, 'cost', cost)
    const policy = this.#policyOf(subject, isGiven, context, options.tier)
    if (!isGiven) {
      const identities = this.#identities(policy, subject, context)
      return this.#decideFor(policy, identities, subject, context, units, op, options)
    }
    const keys = this.#given.keysIn(policy, subject)
    const own = subjectOf(this.#subjects, subject, keys)
    const plan = keys.planOf(policy.plan(own, NO_CONTEXT))
    return this.#decideFor(policy, keys.identities, own, context, units, op, options, plan)
  }

  /** @internal `decide`, but undefined for a request that has no key and is not limited therefore. */
  decideRequest(
    request: Subject,
    context: HttpContext<Subject>,
    cost: number,
    options: DecisionOptions = NO_OPTIONS,
    op?: Op,
  ): Verdict | Promise<Verdict> | undefined {
    const plain = this.#plain
    if (plain && cost === 1 && !this.#anonymous) return this.#decidePlainly(plain, request, context, op, options)
    const units = checkCost(this.#policy.where, 'cost', cost)
    const policy = this.#policy.of(request, context)
    const identities = this.#identitiesOfRequest(policy, request, context)
    return identities && this.#decideFor(policy, identities, request, context, units, op, options)
  }

  /** What `#decideFor` does where there is nothing to work out but the key: nearly every decision, so with as little as that takes. */
  #decidePlainly(
    { key, start, where, plan, consume }: Plain<Subject>,
    subject: Subject,
    context: HttpContext<Subject> | undefined,
    op: Op = consume,
    { fresh = false }: DecisionOptions,
  ): Verdict | Promise<Verdict> {
    // Key functions written for HTTP say so themselves when there is no request.
    const given = key ? key(subject, context as HttpContext<Subject>) : subject
    const identities = [start + checkedKey(where, given, context !== undefined)]
    return this.#decide({ op, plan, identities, costs: plan.ones, permitId: '', fresh }, this.#from)
  }

  #decideFor(
    policy: Policy<Subject>,
    identities: readonly string[],
    subject: Subject,
    context: HttpContext<Subject> | undefined,
    cost: number,
    op: Op | undefined,
    options: DecisionOptions,
    // Key and limit functions written for HTTP say so themselves when there is no request.
    plan = policy.plan(subject, context as HttpContext<Subject>),
  ): Verdict | Promise<Verdict> {
    const priority =
      options.priority === undefined
        ? (policy.priority?.(subject, context as HttpContext<Subject>) ?? 0)
        : checkPriority(policy.where, options.priority)
    const costs = cost === 1 && !plan.countsBytes ? plan.ones : costsOf(policy.where, plan, cost, options.bytes, op)
    const kept = plan.reserves && keptFor(plan, plan.reserves, priority)
    const charge: StoreRequest = {
      op: op ?? (costs !== plan.ones && takesNothing(costs) ? PEEK : policy.consume),
      plan,
      identities,
      costs,
      permitId: plan.hasPermits ? `${holder}.${(permits++).toString(36)}` : '',
      fresh: options.fresh === true,
    }
    const request = kept ? { ...charge, needs: needsOf(costs, kept) } : charge
    return this.#decide(request, { ...this.#from, cost, tier: policy.tier, priority, kept })
  }

  #decide(request: StoreRequest, from: DecidedBy): Verdict | Promise<Verdict> {
    try {
      const result = this.#store.decide(request)
      return result instanceof Promise ? this.#verdictLater(request, result, from) : Verdict.of(request, result, from)
    } catch (error) {
      return this.#decideWithout(request, from, error)
    }
  }

  // Apart from `#decide`, which would else make room on the heap for what a closure sees, in every decision.
  #verdictLater(request: StoreRequest, result: Promise<StoreResult>, from: DecidedBy): Promise<Verdict> {
    return result.then(
      (late) => Verdict.of(request, late, from),
      (error) => this.#decideWithout(request, from, error),
    )
  }

  /** What happens where the store could not decide. */
  #decideWithout(request: StoreRequest, from: DecidedBy, error: unknown): Verdict {
    if (isUnavailable(error)) return this.#fallback.decide(request, from)
    throw error
  }

  /**
   * Gives back what an allowed verdict charged, once, and never more than time has not given back
   * already. Releases its permits, too. Resolves to whether this call gave anything back; while the store that
   * was charged is away, nothing is, now or later.
   */
  async refund(subject: Subject, verdict: Verdict): Promise<boolean> {
    const charge = this.#chargeOf(verdict)
    if (!charge || charge.refunded) return false
    const { identities } = charge.request
    const isGiven = this.#isIdentity(subject)
    const policy = this.#policyOf(subject, isGiven, undefined, verdict.tier)
    const given = isGiven
      ? this.#given.keysIn(policy, subject).identities
      : this.#identities(policy, subject, undefined)
    if (given.some((identity, i) => (isGiven ? !identities.includes(identity) : identity !== identities[i]))) {
      throw new SluiceError('INVALID_KEY', `${this.#policy.where}: key: expected the key the verdict was given for`)
    }
    return this.refundVerdict(verdict)
  }

  /** @internal `refund` by a verdict alone. */
  async refundVerdict(verdict: Verdict): Promise<boolean> {
    const charge = this.#chargeOf(verdict)
    if (!charge || charge.refunded) return false
    // A charge that was settled still holds its permits.
    charge.refunded = charge.settled === 0
    return this.#reduce(charge, SETTLED_COST | SETTLED_BYTES, () => 0)
  }

  /** What `verdict.settle(actualCost)` does, which see. */
  async settle(verdict: Verdict, actualCost: number): Promise<boolean> {
    const charge = this.#chargeOf(verdict)
    checkActualCost(this.#policy.where, actualCost, Verdict.mostToSettle(verdict))
    return charge ? this.#reduce(charge, SETTLED_COST, () => actualCost) : false
  }

  /** @internal Settles limits of bytes for what was received; what was charged, if that was more. */
  async settleBytes(verdict: Verdict, received: number): Promise<boolean> {
    const charge = this.#chargeOf(verdict)
    return charge ? this.#reduce(charge, SETTLED_BYTES, (charged) => Math.min(received, charged)) : false
  }

  /** Gives back what exceeds `actual`, in the cells of these units, unless that has been done. */
  async #reduce(charge: Charge, units: number, actual: (charged: number) => number): Promise<boolean> {
    const open = units & ~charge.settled
    charge.settled |= units
    const { request } = charge
    const { countsBytes } = request.plan as ReadablePlan
    const costs = request.costs.map((charged, c) => {
      if ((open & (countsBytes?.[c] ? SETTLED_BYTES : SETTLED_COST)) === 0) return 0
      const { kernel, identity } = request.plan.cells[c] as Cell
      // Permits are released by their id, whatever was reset.
      const isGone =
        kernel !== 'concurrency' &&
        this.#resets.wasResetAfter(charge.resets, charge.tier, request.identities[identity] as string)
      return isGone ? 0 : charged - actual(charged)
    })
    if (takesNothing(costs)) return false
    if (!(await this.#tell(charge, { ...request, op: REFUND, costs }))) return false
    this.#queues.wake()
    return true
  }

  /**
   * Tells the store that charged, and resolves to whether it heard. Not told again if it did not: it may have
   * heard all the same. What is charged lapses by itself.
   */
  async #tell({ store, result }: Charge, request: StoreRequest): Promise<boolean> {
    try {
      await store.decide({ ...request, charge: result })
      return true
    } catch (error) {
      if (isUnavailable(error)) return false
      throw error
    }
  }

  /**
   * Releases the permits that a verdict took in `concurrency` limits; what it charged elsewhere stays charged. A second
   * call frees nothing more. Without a verdict, as a skipped request is, it does nothing.
   */
  async release(verdict: Verdict | undefined): Promise<void> {
    const charge = verdict && this.#chargeOf(verdict)
    if (!charge?.request.permitId || charge.refunded) return
    if (await this.#tell(charge, { ...charge.request, op: RELEASE })) this.#queues.wake()
  }

  /** Holds the permits of a verdict for another `ttl`; permits already released or lapsed are not taken again. */
  async renew(verdict: Verdict): Promise<void> {
    const charge = this.#chargeOf(verdict)
    if (!charge?.request.permitId || charge.refunded) return
    await this.#tell(charge, { ...charge.request, op: RENEW })
  }

  /**
   * Waits its turn and resolves when admitted: first in, first out per key within this process.
   *
   * @throws SluiceError `WAIT_EXCEEDED` at once when the wait would exceed `maxWait`, or when it can never succeed;
   * the signal's reason when aborted (a charge already made is given back then).
   */
  // `async`, so that a bad key rejects like everywhere else.
  async acquire(subject: Subject, options: AcquireOptions = {}): Promise<Verdict> {
    const wait = acquireOptions(this.#policy.where, options)
    const cost = checkCost(this.#policy.where, 'cost', wait.cost)
    const verdict = await this.waitTurn(subject, undefined, { ...wait, cost, waitsForStore: true })
    if (verdict.delayMs > 0) {
      try {
        await pause(verdict.delayMs, wait.signal)
      } catch (error) {
        await this.refundVerdict(verdict)
        throw error
      }
    }
    return verdict
  }

  /** @internal Waits in the queue of its key until admitted. The caller still waits for `delayMs` of a queueing limit. */
  async waitTurn(
    subject: Subject,
    context: HttpContext<Subject> | undefined,
    wait: WaitOptions,
    options: DecisionOptions = NO_OPTIONS,
  ): Promise<Verdict> {
    const isGiven = context === undefined && this.#isIdentity(subject)
    const policy = this.#policyOf(subject, isGiven, context)
    const keys = isGiven ? this.#given.keysIn(policy, subject) : undefined
    const own = keys ? subjectOf(this.#subjects, subject, keys) : subject
    const whole = policy.plan(own, context as HttpContext<Subject>)
    const plan = keys ? keys.planOf(whole) : whole
    const identities = keys?.identities ?? this.#identitiesOfRequest(policy, subject, context) ?? []
    const waiter: Waiter = {
      queues: queuesOf(plan, identities),
      // Another process may have refunded, which a cached refusal does not show.
      decide: (cost, op) =>
        this.#decideFor(policy, identities, own, context, cost, op, { ...options, fresh: true }, keys && plan),
      refund: (verdict) => this.refundVerdict(verdict),
    }
    return this.#queues.admission(this.#policy.where, waiter, wait)
  }

  /** @internal Whether others wait for one of the limits of this subject, in this process. */
  hasWaiters(subject: Subject, context: HttpContext<Subject> | undefined): boolean {
    if (this.#queues.size === 0) return false
    const policy = this.#policyOf(subject, false, context)
    const identities = this.#identitiesOfRequest(policy, subject, context)
    if (!identities) return false
    return this.#queues.hasAny(queuesOf(policy.plan(subject, context as HttpContext<Subject>), identities))
  }

  /**
   * Forgets what was charged on an identity, in every tier if it is given as text or by its kind. Blocks stay. What was
   * charged before is not given back any more by `refund`, `settle` or `count` of this limiter; others, also of other
   * processes, do not hear of it.
   *
   * @throws SluiceError `INVALID_KEY`, `STORE_UNAVAILABLE`
   */
  async reset(subject: Subject): Promise<void> {
    // What names no tier may have been of any.
    if (this.#isIdentity(subject)) {
      for (const { policy, keys } of this.#given.keysInAll(this.#policy.all, subject)) {
        const plan = keys.planOf(policy.plan(subjectOf(this.#subjects, subject, keys), NO_CONTEXT))
        await this.#reset(policy, plan, keys.identities)
      }
    } else {
      const policies = typeof subject === 'string' ? this.#policy.all : [this.#policyOf(subject, false, undefined)]
      for (const policy of policies) {
        await this.#reset(policy, policy.plan(subject, NO_CONTEXT), this.#identities(policy, subject, undefined))
      }
    }
    this.#queues.wake()
  }

  async #reset({ tier }: Policy<Subject>, plan: ReadablePlan, identities: readonly string[]): Promise<void> {
    // Stores take what is asked in the order in which it is: what was before this is forgotten, what comes after stays.
    this.#resets.note(tier, identities)
    this.#from = { ...this.#from, resets: this.#resets.count }
    this.#fallback.reset(plan, identities)
    await this.#store.reset(plan, identities)
  }

  /**
   * Refuses an identity, in every process that shares the store, until `for` from now. A second block replaces the first.
   * Where a policy groups addresses in several ways, the smallest group of an address is refused.
   *
   * @param identity by its kind, such as `{ ip: '192.0.2.7' }`; or its text, where the limiter counts one kind only
   * @throws SluiceError `INVALID_KEY`, which lists the kinds; `STORE_UNAVAILABLE`: nobody can be sure of the block then
   */
  async block(identity: KeyValue | IdentityByKind, options: BlockOptions): Promise<void> {
    knownOptions(`${this.#policy.where}: block`, options, ['for', 'reason'])
    const { reason = '' } = options
    if (typeof reason !== 'string' || reason.length > 200) {
      invalidPolicy(this.#policy.where, 'reason', 'up to 200 characters', reason)
    }
    const forMs = durationMs(this.#policy.where, 'for', options.for)
    await Promise.all(
      this.#blockedBy(identity).map((text) => this.#store.block(this.#policy.name, text, forMs, reason)),
    )
  }

  /**
   * Ends a block before its time.
   *
   * @throws SluiceError `INVALID_KEY`, `STORE_UNAVAILABLE`
   */
  async unblock(identity: KeyValue | IdentityByKind): Promise<void> {
    await Promise.all(this.#blockedBy(identity).map((text) => this.#store.unblock(this.#policy.name, text)))
    this.#queues.wake()
  }

  #blockedBy(identity: KeyValue | IdentityByKind): string[] {
    return [...new Set(this.#given.keysInAll(this.#policy.all, identity).map(({ keys }) => keys.finest))]
  }

  /** Whether a subject is no request and nothing of the user's own, but names an identity itself. */
  #isIdentity(subject: unknown): boolean {
    if (typeof subject === 'string') return this.#subjects === 'requests'
    if (this.#subjects === 'texts') return isPlainObject(subject)
    if (this.#subjects === 'own') return false
    return isData(subject)
  }

  #policyOf(
    subject: Subject,
    isGiven: boolean,
    context: HttpContext<Subject> | undefined,
    tier?: string,
  ): Policy<Subject> {
    // What an identity cannot tell has to be named, or there is but one policy.
    const named = isGiven && this.#policy.all.length > 1 ? String(tier) : tier
    return this.#policy.of(subject, context as HttpContext<Subject>, named)
  }

  #identities(
    { keys, starts, where }: Policy<Subject>,
    subject: Subject,
    context: HttpContext<Subject> | undefined,
  ): string[] {
    const identities = new Array<string>(keys.length)
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i]
      const given = key ? key(subject, context as HttpContext<Subject>) : subject
      identities[i] = starts[i] + checkedKey(where, given, context !== undefined)
    }
    return identities
  }

  /** Undefined for a request that has no key and is not limited therefore. */
  #identitiesOfRequest(
    policy: Policy<Subject>,
    request: Subject,
    context: HttpContext<Subject> | undefined,
  ): string[] | undefined {
    return context && this.#anonymous
      ? this.#identitiesOrNone(policy, this.#anonymous, request, context)
      : this.#identities(policy, request, context)
  }

  /** `#identities`, where a request without a key is anonymous, or is not limited. */
  #identitiesOrNone(
    { keys, starts, where }: Policy<Subject>,
    anonymous: AnonymousPolicy<Subject>,
    request: Subject,
    context: HttpContext<Subject>,
  ): string[] | undefined {
    const identities: string[] = []
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i]
      const given = key ? key(request, context) : request
      if (!isMissing(given)) identities.push(starts[i] + checkedKey(where, given, true))
      else if (!anonymous.key) return undefined
      else identities.push(ANONYMOUS_START + checkedKey(where, anonymous.key(request, context), true))
    }
    return identities
  }

  #chargeOf(verdict: Verdict): Charge | undefined {
    if (!(verdict instanceof Verdict))
      invalidPolicy(this.#policy.where, 'verdict', 'a verdict of this limiter', verdict)
    const charge = Verdict.chargeOf(verdict)
    if (charge && charge.request.plan.policy !== this.#policy.name) {
      invalidPolicy(
        this.#policy.where,
        'verdict',
        'a verdict of this limiter',
        `one of policy ${charge.request.plan.policy}`,
      )
    }
    return charge
  }
}

/** What becomes of requests that have no key of their own. */
export interface AnonymousPolicy<Subject> {
  /** What they are counted by instead; undefined if they are not limited. */
  readonly key: KeyFunction<Subject> | undefined
}

/** What limit functions get: where subjects are texts, that of an identity by its kind. */
function subjectOf<Subject>(subjects: string, subject: Subject, { value }: GivenKeys): Subject {
  return subjects === 'texts' ? (value as Subject) : subject
}

/** The name of the queue of each limit: by the state that it is counted in. */
function queuesOf({ cells, cellOf }: ReadablePlan, identities: readonly string[]): string[] {
  return cellOf.map((c) => {
    const { id, identity } = cells[c] as Cell
    return `${id}\n${identities[identity]}`
  })
}

const NO_OPTIONS: DecisionOptions = Object.freeze({})
/** Key and limit functions written for HTTP say so themselves when there is no request. */
const NO_CONTEXT = undefined as never
const COST_OPTIONS = ['cost', 'bytes', 'priority', 'tier'] as const

/** What `knownOptions` would say, nearly free for the few options that are made anew for each decision. */
function isCostOptions(options: unknown): boolean {
  if (typeof options !== 'object' || options === null) return false
  for (const field in options) {
    if (field !== 'cost' && field !== 'bytes' && field !== 'priority' && field !== 'tier') return false
  }
  return !Array.isArray(options)
}
