import { checkCost, costsOf, keptFor, needsOf, takesNothing } from './costs.js'
import { type Duration, durationMs } from './duration.js'
import { invalidPolicy, SluiceError } from './errors.js'
import type { HttpContext } from './http/context.js'
import { checkedKey, isMissing } from './key.js'
import { knownOptions } from './limits/checks.js'
import { memoryStore } from './memory/store.js'
import { pause } from './pause.js'
import {
  type Plain,
  POLICY_OPTIONS,
  Policy,
  type PolicyChoice,
  type PolicyOptions,
  type ReadablePlan,
} from './policy.js'
import { checkPriority } from './priority.js'
import { Resets } from './resets.js'
import { type Answer, type Ask, type Cell, type Op, PEEK, REFUND, RELEASE, RENEW, type Store } from './store.js'
import { choosePolicy } from './tiers.js'
import { isUnavailable, StandIn, UNAVAILABLE_OPTIONS, type UnavailableOptions } from './unavailable.js'
import { type Charge, checkActualCost, type DecidedBy, SETTLED_BYTES, SETTLED_COST, Verdict } from './verdict.js'
import { type AcquireOptions, type Asker, acquireOptions, type LineOptions, WaitingLines } from './waiting-lines.js'

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
export interface AskOptions extends Omit<CostOptions, 'cost'> {
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
export function createLimiter<Subject = string>(options: LimiterOptions<Subject>): Limiter<Subject> {
  knownOptions('limiter', options, [...POLICY_OPTIONS, ...UNAVAILABLE_OPTIONS, 'store'])
  const { store = memoryStore() } = options
  return new Limiter(choosePolicy(options), store, options)
}

/** Names of places taken: unique over processes and over restarts. */
let leases = 0
const holder = crypto.randomUUID().slice(-12)

export class Limiter<Subject = string> {
  readonly #policy: PolicyChoice<Subject>
  readonly #store: Store
  readonly #standIn: StandIn
  readonly #lines = new WaitingLines()
  readonly #ofRequests: boolean
  readonly #nobody: Nobody<Subject> | undefined
  readonly #plain: Plain<Subject> | undefined
  readonly #resets = new Resets()
  /** What nearly every verdict is told of its decision. */
  #from: DecidedBy

  /**
   * @internal Use `createLimiter`. `ofRequests`: its subjects are HTTP requests, so a string is a key.
   * `nobody`: who a request is from that has no key; without it, that is an error.
   */
  constructor(
    policy: PolicyChoice<Subject>,
    store: Store,
    unavailable: UnavailableOptions,
    ofRequests = false,
    nobody?: Nobody<Subject>,
  ) {
    if (typeof store?.decide !== 'function') {
      invalidPolicy(policy.where, 'store', 'memoryStore() or redisStore(client)', store)
    }
    this.#policy = policy
    this.#store = store
    this.#standIn = new StandIn(policy.where, store, unavailable)
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
    this.#ofRequests = ofRequests
    this.#nobody = nobody
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
    options: AskOptions = NO_OPTIONS,
  ): Verdict | Promise<Verdict> {
    const plain = this.#plain
    if (plain && cost === 1 && options.tier === undefined && options.priority === undefined) {
      return this.#decidePlainly(plain, subject, context, op, options)
    }
    const units = checkCost(this.#policy.where, 'cost', cost)
    const policy = this.#policyOf(subject, context, options.tier)
    const identities = this.#identities(policy, subject, context)
    return this.#ask(policy, identities, subject, context, units, op, options)
  }

  /** @internal `decide`, but undefined for a request that has no key and is not limited therefore. */
  decideRequest(
    request: Subject,
    context: HttpContext<Subject>,
    cost: number,
    options: AskOptions = NO_OPTIONS,
    op?: Op,
  ): Verdict | Promise<Verdict> | undefined {
    const plain = this.#plain
    if (plain && cost === 1 && !this.#nobody) return this.#decidePlainly(plain, request, context, op, options)
    const units = checkCost(this.#policy.where, 'cost', cost)
    const policy = this.#policy.of(request, context)
    const identities = this.#identitiesOfRequest(policy, request, context)
    return identities && this.#ask(policy, identities, request, context, units, op, options)
  }

  /** What `#ask` does where there is nothing to work out but the key: nearly every decision, so with as little as that takes. */
  #decidePlainly(
    { key, where, plan, consume }: Plain<Subject>,
    subject: Subject,
    context: HttpContext<Subject> | undefined,
    op: Op = consume,
    { fresh = false }: AskOptions,
  ): Verdict | Promise<Verdict> {
    // Key functions written for HTTP say so themselves when there is no request.
    const given = key && !this.#isKey(subject) ? key(subject, context as HttpContext<Subject>) : subject
    const identities = [checkedKey(where, given, context !== undefined)]
    return this.#decide({ op, plan, identities, costs: plan.ones, lease: '', fresh }, this.#from)
  }

  #ask(
    policy: Policy<Subject>,
    identities: string[],
    subject: Subject,
    context: HttpContext<Subject> | undefined,
    cost: number,
    op: Op | undefined,
    options: AskOptions,
  ): Verdict | Promise<Verdict> {
    // Key and limit functions written for HTTP say so themselves when there is no request.
    const plan = policy.plan(subject, context as HttpContext<Subject>)
    const priority =
      options.priority === undefined
        ? (policy.priority?.(subject, context as HttpContext<Subject>) ?? 0)
        : checkPriority(policy.where, options.priority)
    const costs = cost === 1 && !plan.countsBytes ? plan.ones : costsOf(policy.where, plan, cost, options.bytes, op)
    const kept = plan.reserves && keptFor(plan, plan.reserves, priority)
    const charge: Ask = {
      op: op ?? (costs !== plan.ones && takesNothing(costs) ? PEEK : policy.consume),
      plan,
      identities,
      costs,
      lease: plan.hasLeases ? `${holder}.${(leases++).toString(36)}` : '',
      fresh: options.fresh === true,
    }
    const ask = kept ? { ...charge, needs: needsOf(costs, kept) } : charge
    return this.#decide(ask, { ...this.#from, cost, tier: policy.tier, priority, kept })
  }

  #decide(ask: Ask, from: DecidedBy): Verdict | Promise<Verdict> {
    try {
      const answer = this.#store.decide(ask)
      return answer instanceof Promise ? this.#verdictLater(ask, answer, from) : Verdict.of(ask, answer, from)
    } catch (error) {
      return this.#decideWithout(ask, from, error)
    }
  }

  // Apart from `#decide`, which would else make room on the heap for what a closure sees, in every decision.
  #verdictLater(ask: Ask, answer: Promise<Answer>, from: DecidedBy): Promise<Verdict> {
    return answer.then(
      (late) => Verdict.of(ask, late, from),
      (error) => this.#decideWithout(ask, from, error),
    )
  }

  /** What happens where the store could not decide. */
  #decideWithout(ask: Ask, from: DecidedBy, error: unknown): Verdict {
    if (isUnavailable(error)) return this.#standIn.decide(ask, from)
    throw error
  }

  /**
   * Gives back what an allowed verdict charged, once, and never more than time has not given back
   * already. Frees its places, too. Resolves to whether this call gave anything back; while the store that
   * was charged is away, nothing is, now or later.
   */
  async refund(subject: Subject, verdict: Verdict): Promise<boolean> {
    const charge = this.#chargeOf(verdict)
    if (!charge || charge.refunded) return false
    const { identities } = charge.ask
    const given = this.#isKey(subject)
      ? identities.map(() => checkedKey(this.#policy.where, subject))
      : this.#identities(this.#policyOf(subject, undefined, verdict.tier), subject, undefined)
    if (given.some((identity, i) => identity !== identities[i])) {
      throw new SluiceError('INVALID_KEY', `${this.#policy.where}: key: expected the key the verdict was given for`)
    }
    return this.giveBack(verdict)
  }

  /** @internal `refund` by a verdict alone. */
  async giveBack(verdict: Verdict): Promise<boolean> {
    const charge = this.#chargeOf(verdict)
    if (!charge || charge.refunded) return false
    // What was settled still holds its places.
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
    const { ask } = charge
    const { countsBytes } = ask.plan as ReadablePlan
    const costs = ask.costs.map((charged, c) => {
      if ((open & (countsBytes?.[c] ? SETTLED_BYTES : SETTLED_COST)) === 0) return 0
      const { kernel, identity } = ask.plan.cells[c] as Cell
      // A place is known by its name, whatever was reset.
      const isGone =
        kernel !== 'concurrency' && this.#resets.isSince(charge.resets, charge.tier, ask.identities[identity] as string)
      return isGone ? 0 : charged - actual(charged)
    })
    if (takesNothing(costs)) return false
    if (!(await this.#tell(charge, { ...ask, op: REFUND, costs }))) return false
    this.#lines.wake()
    return true
  }

  /**
   * Tells the store that charged, and resolves to whether it heard. Not told again if it did not: it may have
   * heard all the same. What is charged lapses by itself.
   */
  async #tell({ store, answer }: Charge, ask: Ask): Promise<boolean> {
    try {
      await store.decide({ ...ask, charge: answer })
      return true
    } catch (error) {
      if (isUnavailable(error)) return false
      throw error
    }
  }

  /** Frees the places that a verdict took in `concurrency` limits; what it charged elsewhere stays charged. */
  async release(verdict: Verdict): Promise<void> {
    const charge = this.#chargeOf(verdict)
    if (!charge?.ask.lease || charge.refunded) return
    if (await this.#tell(charge, { ...charge.ask, op: RELEASE })) this.#lines.wake()
  }

  /** Holds the places of a verdict for another `ttl`; places already freed or lapsed are not taken again. */
  async renew(verdict: Verdict): Promise<void> {
    const charge = this.#chargeOf(verdict)
    if (!charge?.ask.lease || charge.refunded) return
    await this.#tell(charge, { ...charge.ask, op: RENEW })
  }

  /**
   * Waits its turn and resolves when admitted: first in, first out per key within this process.
   *
   * @throws SluiceError `WAIT_EXCEEDED` at once when the wait would exceed `maxWait`, or when it can never succeed;
   * the signal's reason when aborted (a charge already made is given back then).
   */
  // `async`, so that a bad key rejects like everywhere else.
  async acquire(subject: Subject, options: AcquireOptions = {}): Promise<Verdict> {
    const line = acquireOptions(this.#policy.where, options)
    const cost = checkCost(this.#policy.where, 'cost', line.cost)
    const verdict = await this.lineUp(subject, undefined, { ...line, cost, waitsForStore: true })
    if (verdict.delayMs > 0) {
      try {
        await pause(verdict.delayMs, line.signal)
      } catch (error) {
        await this.giveBack(verdict)
        throw error
      }
    }
    return verdict
  }

  /** @internal Waits in the line of its key until admitted. A turn in a queueing limit (`delayMs`) is still to come then. */
  async lineUp(
    subject: Subject,
    context: HttpContext<Subject> | undefined,
    line: LineOptions,
    options: AskOptions = NO_OPTIONS,
  ): Promise<Verdict> {
    const policy = this.#policyOf(subject, context)
    const identities = this.#identitiesOfRequest(policy, subject, context) ?? []
    const asker: Asker = {
      lines: linesOf(policy.plan(subject, context as HttpContext<Subject>), identities),
      // Somebody else may have made room a moment ago: whoever waits must not wait beyond that.
      decide: (cost, op) => this.#ask(policy, identities, subject, context, cost, op, { ...options, fresh: true }),
      giveBack: (verdict) => this.giveBack(verdict),
    }
    return this.#lines.admission(this.#policy.where, asker, line)
  }

  /** @internal Whether others wait in line for one of the limits of this subject, in this process. */
  hasLine(subject: Subject, context: HttpContext<Subject> | undefined): boolean {
    if (this.#lines.size === 0) return false
    const policy = this.#policyOf(subject, context)
    const identities = this.#identitiesOfRequest(policy, subject, context)
    if (!identities) return false
    return this.#lines.hasAny(linesOf(policy.plan(subject, context as HttpContext<Subject>), identities))
  }

  /**
   * Forgets what was charged on a key, in every tier if it is given as text. Blocks stay. What was charged before is
   * not given back any more by `refund`, `settle` or `count` of this limiter; others, also of other processes, do not hear
   * of it.
   *
   * @throws SluiceError `STORE_UNAVAILABLE`
   */
  async reset(subject: Subject): Promise<void> {
    // A key as text may have been of any tier.
    const policies = typeof subject === 'string' ? this.#policy.all : [this.#policyOf(subject, undefined)]
    for (const policy of policies) {
      const plan = policy.plan(subject, undefined as never)
      const identities = this.#identities(policy, subject, undefined)
      // Stores take what is asked in the order in which it is: what was before this is forgotten, what comes after stays.
      this.#resets.note(policy.tier, identities)
      this.#from = { ...this.#from, resets: this.#resets.count }
      this.#standIn.reset(plan, identities)
      await this.#store.reset(plan, identities)
    }
    this.#lines.wake()
  }

  /**
   * Refuses a key, in every process that shares the store, until `for` from now. A second block replaces the first.
   *
   * @throws SluiceError `STORE_UNAVAILABLE`: nobody can be sure of the block then
   */
  async block(key: string, options: BlockOptions): Promise<void> {
    knownOptions(`${this.#policy.where}: block`, options, ['for', 'reason'])
    const { reason = '' } = options
    if (typeof reason !== 'string' || reason.length > 200) {
      invalidPolicy(this.#policy.where, 'reason', 'up to 200 characters', reason)
    }
    const forMs = durationMs(this.#policy.where, 'for', options.for)
    await this.#store.block(this.#policy.name, checkedKey(this.#policy.where, key), forMs, reason)
  }

  /**
   * Ends a block before its time.
   *
   * @throws SluiceError `STORE_UNAVAILABLE`
   */
  async unblock(key: string): Promise<void> {
    await this.#store.unblock(this.#policy.name, checkedKey(this.#policy.where, key))
    this.#lines.wake()
  }

  /** Whether a subject stands for itself, so that `reset('1.2.3.4')` works on a limiter whose key is `byIp()`. */
  #isKey(subject: Subject): boolean {
    return this.#ofRequests && typeof subject === 'string'
  }

  #policyOf(subject: Subject, context: HttpContext<Subject> | undefined, tier?: string): Policy<Subject> {
    // What a key as text cannot tell has to be named, or there is but one policy.
    const named = this.#isKey(subject) && this.#policy.all.length > 1 ? String(tier) : tier
    return this.#policy.of(subject, context as HttpContext<Subject>, named)
  }

  #identities({ keys, where }: Policy<Subject>, subject: Subject, context: HttpContext<Subject> | undefined): string[] {
    const named = this.#isKey(subject)
    const identities = new Array<string>(keys.length)
    for (let i = 0; i < keys.length; i++) {
      const key = named ? undefined : keys[i]
      const given = key ? key(subject, context as HttpContext<Subject>) : subject
      identities[i] = checkedKey(where, given, context !== undefined)
    }
    return identities
  }

  /** Undefined for a request that has no key and is not limited therefore. */
  #identitiesOfRequest(
    policy: Policy<Subject>,
    request: Subject,
    context: HttpContext<Subject> | undefined,
  ): string[] | undefined {
    return context && this.#nobody
      ? this.#identitiesOrNone(policy, request, context)
      : this.#identities(policy, request, context)
  }

  /** `#identities`, where a request without a key is somebody else, or is not limited. */
  #identitiesOrNone(policy: Policy<Subject>, request: Subject, context: HttpContext<Subject>): string[] | undefined {
    const identities: string[] = []
    for (const key of policy.keys) {
      const given = key ? key(request, context) : request
      const isNobodys = isMissing(given)
      const identity = isNobodys ? this.#nobody?.identify(request, context) : given
      if (identity === undefined) return undefined
      const checked = checkedKey(policy.where, identity)
      if (!isNobodys && this.#nobody?.isTheirs(checked)) {
        throw new SluiceError('INVALID_KEY', `${policy.where}: key: expected none that reads as an anonymous client's`)
      }
      identities.push(checked)
    }
    return identities
  }

  #chargeOf(verdict: Verdict): Charge | undefined {
    if (!(verdict instanceof Verdict))
      invalidPolicy(this.#policy.where, 'verdict', 'a verdict of this limiter', verdict)
    const charge = Verdict.chargeOf(verdict)
    if (charge && charge.ask.plan.policy !== this.#policy.name) {
      invalidPolicy(
        this.#policy.where,
        'verdict',
        'a verdict of this limiter',
        `one of policy ${charge.ask.plan.policy}`,
      )
    }
    return charge
  }
}

/** Who a request is from that has no key of its own. */
export interface Nobody<Subject> {
  /** The key instead; undefined if such requests are not limited. */
  identify(request: Subject, context: HttpContext<Subject>): string | undefined
  /** Whether a key reads like one of those, so that nobody can pass for them. */
  isTheirs(key: string): boolean
}

/** A name for what each limit is counted in: that is what is waited for. */
function linesOf({ cells, cellOf }: ReadablePlan, identities: readonly string[]): string[] {
  return cellOf.map((c) => {
    const { id, identity } = cells[c] as Cell
    return `${id}\n${identities[identity]}`
  })
}

const NO_OPTIONS: AskOptions = Object.freeze({})
const COST_OPTIONS = ['cost', 'bytes', 'priority', 'tier'] as const

/** What `knownOptions` would say, nearly free for the few options that are made anew for each decision. */
function isCostOptions(options: unknown): boolean {
  if (typeof options !== 'object' || options === null) return false
  for (const field in options) {
    if (field !== 'cost' && field !== 'bytes' && field !== 'priority' && field !== 'tier') return false
  }
  return !Array.isArray(options)
}
