import { emitBlock, emitUnblock } from '../blocks/block-events.js'
import { LIST_OPTIONS } from '../lists/options.js'
import { memoryStore } from '../memory/store.js'
import { ADDED_BAN_OPTIONS } from '../policy/ban.js'
import { checkCost, costsOf, keptFor, needsOf, takesNothing } from '../policy/costs.js'
import { isPlainObject } from '../policy/given-identities.js'
import { checkedKey } from '../policy/key.js'
import type { LimitForm } from '../policy/limit-form.js'
import type { Limit } from '../policy/limits/limit.js'
import type { ReadablePlan } from '../policy/plan.js'
import { type Plain, POLICY_OPTIONS, type PolicyChoice, type Resolved } from '../policy/policy.js'
import { Subjects } from '../policy/subjects.js'
import { choosePolicy } from '../policy/tiers.js'
import type { IdentityByKind, KeyValue } from '../store/identity.js'
import { type Cell, CHARGE, type Op, PEEK, type Store, type StoreRequest } from '../store/store.js'
import { spanOrForEver } from '../util/duration.js'
import { invalidPolicy, SluiceError } from '../util/errors.js'
import { isWatched } from '../util/listeners.js'
import { LONGEST_TIMER_MS, pause } from '../util/pause.js'
import { isThenable } from '../util/thenable.js'
import { knownOptions, optionalFunction, refusePolluted } from '../util/validate.js'
import { warnOnRejection } from '../util/warn-on-rejection.js'
import { LIMITER_WARNINGS, Warnings } from '../util/warnings.js'
import { whenKnown } from '../util/when-known.js'
import { type BanReport, type DecidedBy, Verdict } from '../verdict/verdict.js'
import { BanKeeper } from './bans.js'
import { BookedTurns } from './booked-turns.js'
import { ChargeLedger } from './charge-ledger.js'
import type { LimiterEvents, ListenOptions } from './events.js'
import { isUnavailable, LocalFallback, UNAVAILABLE_OPTIONS, type UnavailableOptions } from './fallback.js'
import { LimiterEmitter } from './limiter-emitter.js'
import { ListedSubjects, type ListSources } from './listed-subjects.js'
import { listen } from './near-limit.js'
import {
  type BlockOptions,
  type CostOptions,
  checkCostOptions,
  checkReason,
  DECISION_OPTIONS,
  type DecisionOptions,
  type LimiterOptions,
  NO_OPTIONS,
  type StrikeOptions,
} from './options.js'
import { adviseOnSetUp } from './set-up-advice.js'
import { noteStoreInUse } from './stores-in-use.js'
import {
  type AcquireOptions,
  acquireOptions,
  WaitExceeded,
  type Waiter,
  type WaitOptions,
  WaitQueues,
} from './wait-queue.js'

export type { BlockOptions, CostOptions, DecisionOptions, LimiterOptions, StrikeOptions } from './options.js'

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
  const known = [...POLICY_OPTIONS, ...LIST_OPTIONS, ...UNAVAILABLE_OPTIONS, 'store', 'onVerdict', 'warnings']
  knownOptions('limiter', options, known)
  const { store = memoryStore() } = options
  const { ban } = options
  const policy = choosePolicy(options)
  for (const field of ADDED_BAN_OPTIONS) {
    if (ban?.[field as keyof typeof ban] !== undefined) {
      throw new SluiceError('INVALID_POLICY', `${policy.where}: ban: ${field}: expected none without HTTP`)
    }
  }
  const emitter = new LimiterEmitter(policy.where)
  const warnings = new Warnings(policy.where, LIMITER_WARNINGS, options.warnings, emitter.listeners)
  // Without key functions a subject is the key as text; with them it is whatever they take.
  const areTexts = policy.all.every(({ keys }) => keys.every((key) => key === undefined))
  const namesIdentity = areTexts ? isPlainObject : () => false
  const { onVerdict } = options
  optionalFunction(policy.where, 'onVerdict', onVerdict)
  const listener = `${policy.where}: onVerdict`
  const afterVerdict =
    onVerdict &&
    ((subject: Subject, verdict: Verdict) => warnOnRejection(listener, onVerdict(subject, verdict), warnings.emit))
  const listed = ListedSubjects.of(policy, store, options, warnings, areTexts ? TEXTS : OBJECTS)
  const limiter = new Limiter(
    new Subjects(policy, { namesIdentity, areTexts }),
    store,
    options,
    listed,
    emitter,
    afterVerdict,
  )
  // After the constructor, which has checked the store.
  adviseOnSetUp(policy, warnings, options)
  return limiter
}

const TEXTS: ListSources<unknown> = {
  addressOf: () => undefined,
  moreKeys: () => undefined,
  moreKinds: [],
  denyOptions: [],
}
/** Subjects that are objects, without HTTP: their address is `ip`. */
const OBJECTS: ListSources<unknown> = {
  ...TEXTS,
  addressOf: (subject) => (subject as { ip?: unknown } | null | undefined)?.ip,
  moreKinds: ['ip'],
}

/** How much later than its last moment a wait ends by itself. */
const SLACK_MS = 5

/** Permit ids are unique over processes and restarts: the id of this process, and a number. */
let permits = 0
const holder = crypto.randomUUID().slice(-12)

export class Limiter<Subject = string> {
  readonly #subjects: Subjects<Subject>
  readonly #policy: PolicyChoice<Subject>
  readonly #plain: Plain<Subject> | undefined
  readonly #store: Store
  readonly #fallback: LocalFallback
  /** Undefined where there are no lists. */
  readonly #listed: ListedSubjects<Subject> | undefined
  readonly #queues = new WaitQueues()
  readonly #booked = new BookedTurns()
  /** Called with verdicts before they are returned. */
  readonly #afterVerdict: ((subject: Subject, verdict: Verdict) => void) | undefined
  readonly #emitter: LimiterEmitter
  readonly #charges: ChargeLedger
  /** Undefined where the policy has no `ban`. */
  readonly #bans: BanKeeper<Subject> | undefined
  #storeAnswersLater = false
  /** What nearly all verdicts have in common. */
  #from: DecidedBy

  /** @internal Use `createLimiter`. */
  constructor(
    subjects: Subjects<Subject>,
    store: Store,
    unavailable: UnavailableOptions,
    listed: ListedSubjects<Subject> | undefined,
    emitter: LimiterEmitter,
    afterVerdict?: (subject: Subject, verdict: Verdict) => void,
  ) {
    const { policy } = subjects
    refusePolluted(policy.where, DECISION_OPTIONS)
    if (typeof store?.decide !== 'function') {
      invalidPolicy(policy.where, 'store', 'memoryStore() or redisStore(client)', store)
    }
    this.#subjects = subjects
    this.#afterVerdict = afterVerdict
    this.#emitter = emitter
    this.#policy = policy
    this.#plain = policy.plain
    this.#store = store
    this.#listed = listed
    this.#fallback = new LocalFallback(policy.where, store, unavailable)
    this.#charges = new ChargeLedger(
      policy.where,
      policy.name,
      ({ plan, identities }) => this.#queues.wake(queuesOf(plan as ReadablePlan, identities)),
      (by, request, result) => {
        if (by === store) this.#fallback.hear(request, result)
      },
    )
    this.#bans = policy.ban && new BanKeeper(subjects, store, this.#fallback, emitter)
    this.#from = {
      charges: this.#charges,
      kind: 'decided',
      store,
      cost: 1,
      tier: undefined,
      priority: 0,
      kept: undefined,
      resets: 0,
      list: undefined,
      took: undefined,
    }
    noteStoreInUse(store)
  }

  get name(): string {
    return this.#policy.name
  }

  /** The limits as they were made; a plain `{ limit, window }` shows here which algorithm it became. */
  get limits(): readonly Limit<Subject>[] {
    return this.#policy.limits
  }

  /**
   * Decides, and charges every limit if all have room. Never rejects for a refusal, nor because the
   * store is away: then `onUnavailable` decides.
   *
   * @throws SluiceError `INVALID_KEY`, `INVALID_COST`, `INVALID_POLICY` (options, or a limit function's result)
   */
  // Not `async`: that would resolve three microtasks later, and allocate two more promises.
  consume(subject: Subject, options: CostOptions = NO_OPTIONS): Promise<Verdict> {
    try {
      checkCostOptions(this.#policy.where, 'consume', options)
      const verdict = this.#decide(subject, options, undefined)
      if (this.#afterVerdict || this.#store.noteRefusal || isWatched()) return this.#announced(subject, verdict)
      return verdict instanceof Promise ? verdict : Promise.resolve(verdict)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** The verdict that `consume` would return now. Changes nothing. */
  async peek(subject: Subject, options: CostOptions = NO_OPTIONS): Promise<Verdict> {
    checkCostOptions(this.#policy.where, 'peek', options)
    return this.#decide(subject, options, PEEK)
  }

  /**
   * Refunds what an allowed verdict charged, once, less what time has restored already. Releases its permits, too.
   * Resolves to whether this call refunded anything. During an outage nothing that the store charged is
   * refunded, then or later.
   */
  async refund(subject: Subject, verdict: Verdict): Promise<boolean> {
    if (verdict === undefined && (subject as unknown) instanceof Verdict) {
      throw new SluiceError(
        'INVALID_KEY',
        `${this.#policy.where}: refund: expected refund(key, verdict): the key is missing`,
      )
    }
    const charge = this.#charges.open(verdict)
    if (!charge) return false
    const isCounted = this.#subjects.isCountedOn(subject, verdict.tier, charge.request.identities)
    // Called synchronously: a later reset must not overtake it.
    if (!(isCounted instanceof Promise ? await isCounted : isCounted)) {
      throw new SluiceError('INVALID_KEY', `${this.#policy.where}: key: expected the key the verdict was given for`)
    }
    return this.#charges.refund(verdict)
  }

  /** @internal `refund` by a verdict alone. */
  async refundVerdict(verdict: Verdict): Promise<boolean> {
    return this.#charges.refund(verdict)
  }

  /** The same as `verdict.settle(actualCost)`. */
  async settle(verdict: Verdict, actualCost: number): Promise<boolean> {
    return this.#charges.settle(verdict, actualCost)
  }

  /** @internal Settles limits of bytes by what was received. */
  async settleBytes(verdict: Verdict, received: number): Promise<boolean> {
    return this.#charges.settleBytes(verdict, received)
  }

  /**
   * Releases the permits that a verdict took in `concurrency` limits; what it charged elsewhere stays charged. A second
   * call releases nothing more. Without a verdict, as for a skipped request, it does nothing.
   */
  async release(verdict: Verdict | undefined): Promise<void> {
    if (verdict) await this.#charges.release(verdict)
  }

  /** Holds the permits of a verdict for another `ttl`; permits already released or expired are not taken again. */
  async renew(verdict: Verdict): Promise<void> {
    await this.#charges.renew(verdict)
  }

  /**
   * Waits its turn and resolves when admitted: of the calls for one key the higher `priority` first, then in turn by `fairBy`, and
   * first in, first out; within this process, or with `sharedTurns` by priority across processes.
   *
   * @throws SluiceError `WAIT_EXCEEDED` at once when the wait would exceed `maxWait`, when it can never succeed, or when `size` calls wait;
   * the signal's reason when aborted (a charge already made is refunded then).
   */
  // `async`, so that a bad key rejects as in the other methods.
  async acquire(subject: Subject, options: AcquireOptions = {}): Promise<Verdict> {
    const began = performance.now()
    const wait = acquireOptions(this.#policy.where, options)
    const cost = checkCost(this.#policy.where, 'cost', wait.cost)
    const pending = this.#listed?.pending
    if (pending) await pending
    const listed = this.#turnByList(subject)
    const resolver = listed ? undefined : this.#subjects.resolver(subject, wait.priority)
    const resolve = resolver instanceof Promise ? await resolver : resolver
    const turn = listed ?? this.waitTurnOf(resolve as Resolver<Subject>, { ...wait, cost, waitsForStore: true })
    const verdict = await this.#announced(subject, turn.catch(refusalOf))
    if (verdict.delayMs > 0) {
      try {
        await this.waitBookedWithin(verdict, { ...wait, maxWaitMs: wait.maxWaitMs - (performance.now() - began) })
      } catch (error) {
        await this.#charges.refund(verdict)
        throw error
      }
    }
    return verdict
  }

  /**
   * @internal Waits for a turn that was given and that is due within `maxWaitMs`. Rejects with `WaitExceeded` once that has passed, as
   * others may come before it meanwhile, and with the signal's reason.
   */
  async waitBookedWithin(verdict: Verdict, { client, maxWaitMs, signal }: BookedWait): Promise<void> {
    const overtaken = new AbortController()
    const late = () => {
      const message = `${this.#policy.where}: acquire: others came before it, and the wait would exceed what it may take`
      overtaken.abort(new WaitExceeded(message, undefined, undefined))
    }
    // A turn that comes in time comes before this.
    const lateMs = Math.ceil(maxWaitMs) + SLACK_MS
    const timer = lateMs < LONGEST_TIMER_MS ? setTimeout(late, lateMs) : undefined
    try {
      await this.waitBooked(verdict, client, signal ? AbortSignal.any([signal, overtaken.signal]) : overtaken.signal)
    } finally {
      clearTimeout(timer)
    }
  }

  /** @internal Waits for the turn that a queueing limit has given, or for another that this process exchanges it for. Rejects with the signal's reason. */
  async waitBooked(verdict: Verdict, client: string | undefined, signal: AbortSignal | undefined): Promise<void> {
    const booking = Verdict.bookingOf(verdict)
    await (booking ? this.#booked.wait(booking, client, signal) : pause(verdict.delayMs, signal))
  }

  /**
   * Calls back with each event of this limiter: see docs/events.md for what there is, and `events.on()` for those of all limiters.
   * Synchronously, so be brief. What a listener throws, or rejects with, becomes a warning of the process
   * (`SLUICE_LISTENER_FAILED`) and changes no decision. Returns what ends it.
   *
   * @example const stop = limiter.on('refused', ({ limit, verdict }) => audit(limit, verdict.keys))
   * @throws SluiceError `INVALID_POLICY`
   */
  on<Name extends keyof LimiterEvents>(
    event: Name,
    listener: (event: LimiterEvents[Name]) => unknown,
    options?: ListenOptions,
  ): () => void {
    return listen(this.#emitter.listeners, this.#policy.where, event, listener, options)
  }

  /**
   * Forgets what was charged on an identity, in every tier if it is given as text or by its kind. Blocks stay. Charges
   * from before are not refunded any more by `refund`, `settle` or `count` of this limiter; other limiters and other
   * processes do not see the reset, and may still refund theirs. Strikes are forgotten with the charges; a ban that holds,
   * and its rung, stay.
   *
   * @throws SluiceError `INVALID_KEY`, `STORE_UNAVAILABLE`
   */
  async reset(subject: Subject): Promise<void> {
    const all = this.#subjects.resolveAll(subject)
    for (const { tier, plan, identities } of all instanceof Promise ? await all : all) {
      // Stores take requests in the order in which they come: charges from before are forgotten, later ones stay.
      this.#charges.forget(tier, identities)
      this.#from = { ...this.#from, resets: this.#charges.resets }
      this.#fallback.reset(plan, identities)
      await this.#store.reset(plan, identities)
    }
    this.#queues.wake()
  }

  /**
   * Refuses an identity, in every process that shares the store, until `for` from now. A second block replaces the first.
   * Where a policy groups addresses in several ways, the smallest group of an address is refused. A network of addresses is
   * refused as a whole: elsewhere within a second.
   *
   * @param identity by its kind, such as `{ ip: '192.0.2.7' }` or `{ ip: '192.0.2.0/24' }`; or its text, where the limiter counts one kind only
   * @throws SluiceError `INVALID_KEY`, which lists the kinds; `STORE_FULL`, a memory store without room for
   * the block, or 100,000 networks blocked on Redis;
   * `STORE_UNAVAILABLE`, after which the block may hold or not
   */
  async block(identity: KeyValue | IdentityByKind, options: BlockOptions): Promise<void> {
    knownOptions(`${this.#policy.where}: block`, options, ['for', 'reason'])
    const reason = checkReason(this.#policy.where, options.reason === undefined ? '' : options.reason)
    const forMs = spanOrForEver(`${this.#policy.where}: block`, 'for', options.for)
    const texts = this.#subjects.toBlock(identity)
    // No advice for networks: a list may allow only some of their addresses.
    if (this.#subjects.rangeIn(identity) === undefined) this.#listed?.adviseOnBlock(this.#subjects.given(identity))
    const policy = this.#policy.name
    await Promise.all(texts.map((text) => this.#store.block(policy, text, forMs, reason)))
    for (const text of texts) emitBlock(this.#emitter.listeners, { policy, identity: text }, forMs, reason)
  }

  /**
   * Ends a block or ban before its time, also one by another policy where bans are of the store. Forgets the strikes and
   * the rung, so the next ban is of the first rung.
   *
   * @throws SluiceError `INVALID_KEY`, `STORE_UNAVAILABLE`
   */
  async unblock(identity: KeyValue | IdentityByKind): Promise<void> {
    const texts = this.#subjects.toBlock(identity)
    const scopes = this.#policy.all.flatMap(({ ban }) => (ban ? [ban.terms.scope] : []))
    const policies = [...new Set([this.#policy.name, ...scopes])]
    await Promise.all(texts.flatMap((text) => policies.map((policy) => this.#store.unblock(policy, text))))
    for (const text of texts) {
      this.#bans?.end(text)
      emitUnblock(this.#emitter.listeners, { policy: this.#policy.name, identity: text })
    }
    this.#queues.wake()
  }

  /**
   * Strikes an identity for what no limit sees, such as a request for a path that only probes ask for. With the strike
   * that is the last but none, its ban starts. While it is banned or blocked, strikes do not count. During an outage of
   * the store strikes stay in this process.
   *
   * @param identity of the kind that the policy bans, such as `{ ip: '192.0.2.7' }`; or its text, where it counts one kind only
   * @returns the ban that holds now, or undefined. Also undefined for an identity that is never banned, such as a private address
   * @throws SluiceError `INVALID_POLICY` where the policy has no `ban`, `INVALID_KEY` for another kind
   */
  async strike(identity: KeyValue | IdentityByKind, options: StrikeOptions = {}): Promise<BanReport | undefined> {
    if (!this.#bans)
      throw new SluiceError('INVALID_POLICY', `${this.#policy.where}: strike: expected a policy with ban`)
    return this.#bans.strike(identity, options)
  }

  /** @internal Strikes for a refusal that is final. Resolves to the verdict: the same, or that of the ban that holds now. */
  async strikeRefusal(verdict: Verdict): Promise<Verdict> {
    return this.#bans ? this.#bans.strikeRefusal(verdict) : verdict
  }

  /** @internal Strikes for a request that a trap caught. Resolves to the verdict: the same, or that of the ban that holds now. */
  async strikeCaught(verdict: Verdict, strike: StrikeOptions): Promise<Verdict> {
    return this.#bans ? this.#bans.strikeCaught(verdict, strike) : verdict
  }

  /** @internal Strikes for the outcome of a request that was admitted. */
  async strikeOutcome(verdict: Verdict): Promise<void> {
    await this.#bans?.strikeOutcome(verdict)
  }

  /** @internal Counts a refusal that is final, for `store.offenders`. */
  noteRefusal(verdict: Verdict): void {
    const { noteRefusal } = this.#store
    if (!noteRefusal || verdict.kind !== 'decided') return
    for (const [policy, identities] of Verdict.refusedBy(verdict)) noteRefusal(policy, [...identities])
  }

  #decideByList(subject: Subject): Verdict | undefined {
    const listed = this.#listed
    if (!listed) return undefined
    return this.#subjects.namesIdentity(subject)
      ? listed.decideGiven(this.#subjects.given(subject))
      : listed.decide(subject, undefined as never)
  }

  /** What a list allows is admitted at once; what it denies is refused at once. */
  #turnByList(subject: Subject): Promise<Verdict> | undefined {
    const listed = this.#decideByList(subject)
    if (!listed || listed.allowed) return listed && Promise.resolve(listed)
    return Promise.reject(new WaitExceeded(`${this.#policy.where}: acquire: a list denies it`, undefined, listed))
  }

  /** Announces a verdict, or the refusal with which a wait ended. */
  #announced(subject: Subject, verdict: Verdict | Promise<Verdict | WaitExceeded>): Promise<Verdict> {
    if (!(verdict instanceof Promise)) {
      this.#announce(subject, verdict)
      return Promise.resolve(verdict)
    }
    return verdict.then((known) => {
      const final = known instanceof WaitExceeded ? known.refusal : known
      if (final) this.#announce(subject, final)
      if (known instanceof WaitExceeded) throw known
      return known
    })
  }

  #announce(subject: Subject, verdict: Verdict): void {
    if (!verdict.allowed) this.noteRefusal(verdict)
    this.noteDecision(verdict, !verdict.allowed)
    this.#afterVerdict?.(subject, verdict)
  }

  /** @internal Emits the events of a verdict that is final. `isRefused`: whether what was asked for does not happen. */
  noteDecision(verdict: Verdict, isRefused: boolean): void {
    if (isWatched()) this.#emitter.decided(verdict, isRefused)
  }

  #decide(subject: Subject, options: CostOptions, op: Op | undefined): Verdict | Promise<Verdict> {
    const plain = this.#plain
    const { cost = 1, tier, priority } = options
    if (this.#listed) {
      checkCost(this.#policy.where, 'cost', cost)
      const { pending } = this.#listed
      if (pending) return pending.then(() => this.#decide(subject, options, op))
      const listed = this.#decideByList(subject)
      if (listed) return listed
    }
    if (plain && cost === 1 && tier === undefined && priority === undefined && !this.#subjects.namesIdentity(subject)) {
      // Key functions written for HTTP report by themselves that there is no request.
      const key: unknown = plain.key ? plain.key(subject, undefined as never) : subject
      // A subject that is itself a promise was not waited for by mistake.
      if (typeof key !== 'string' && plain.key && isThenable(key)) {
        return Promise.resolve(key).then((late) => this.decidePlain(plain, checkedKey(plain.where, late), op))
      }
      return this.decidePlain(plain, checkedKey(plain.where, key), op)
    }
    const units = checkCost(this.#policy.where, 'cost', cost)
    return whenKnown(this.#subjects.resolve(subject, tier, priority), (resolved) =>
      this.decideResolved(resolved, units, options, op),
    )
  }

  /** @internal Decides where an identity is all that requests differ in: nearly every decision, so with as little as it takes. */
  decidePlain(
    { plan, start, consume }: Plain<Subject>,
    value: string,
    op: Op = consume,
    fresh = false,
    strikes = true,
  ): Verdict | Promise<Verdict> {
    if (plan.ban && strikes && op !== PEEK) {
      const identities = [start + value]
      const strike = this.#bans?.strikeOf(undefined, plan.ban, identities)
      if (strike !== undefined) {
        return this.#askStriking(
          { op, plan, identities, values: [value], costs: plan.ones, permitId: '', fresh, strike },
          this.#from,
        )
      }
    }
    return this.#ask(
      { op, plan, identities: [start + value], values: [value], costs: plan.ones, permitId: '', fresh },
      this.#from,
    )
  }

  /** @internal Decides on a subject that its policy has resolved. */
  decideResolved(
    { policy, plan, identities, priority }: Resolved<Subject>,
    cost: number,
    options: DecisionOptions,
    op?: Op,
  ): Verdict | Promise<Verdict> {
    const costs = cost === 1 && !plan.byteUnits ? plan.ones : costsOf(policy.where, plan, cost, options, op)
    const kept = plan.reserves && keptFor(plan, plan.reserves, priority)
    const needs = kept || plan.byteUnits ? needsOf(plan, costs, kept) : undefined
    const charge: StoreRequest = {
      op: op ?? (costs !== plan.ones && takesNothing(needs ?? costs) ? PEEK : policy.consume),
      plan,
      identities,
      costs,
      permitId: plan.hasPermits ? `${holder}.${(permits++).toString(36)}` : '',
      fresh: options.fresh === true,
    }
    const own = options.turn ? { ...charge, turn: options.turn } : charge
    const needing = needs ? { ...own, needs } : own
    const strike =
      plan.ban && options.strikes !== false && charge.op !== PEEK
        ? this.#bans?.strikeOf(policy.tier, plan.ban, identities)
        : undefined
    const from = { ...this.#from, cost, tier: policy.tier, priority, kept }
    return strike === undefined ? this.#ask(needing, from) : this.#askStriking({ ...needing, strike }, from)
  }

  /**
   * @internal Charges bytes of a response that have been sent since its request was decided on, as far as each limit can hold
   * them. The verdict says whether they had room.
   */
  chargeSent(verdict: Verdict, bytes: number): Verdict | Promise<Verdict> {
    const { plan: decided, identities } = Verdict.decisionOf(verdict)
    const plan = this.#fallback.wholeOf(decided)
    const costs = plan.cells.map((_, c) => (plan.byteUnits?.[c] === 'response-bytes' ? bytes : 0))
    const { tier, priority } = verdict
    const from = { ...this.#from, cost: 0, tier, priority, isOfResponse: true as const }
    // Not measured: most of them send no event.
    return this.#askStore({ op: CHARGE, plan, identities, costs, permitId: '', fresh: true }, from)
  }

  /** @internal Waits in the queues of a subject until admitted. The caller still waits for `delayMs` of a queueing limit. */
  async waitTurnOf(
    resolve: Resolver<Subject>,
    wait: WaitOptions,
    options: DecisionOptions = NO_OPTIONS,
  ): Promise<Verdict> {
    const first = resolve()
    const { plan, identities, priority } = first instanceof Promise ? await first : first
    const headStartMs = wait.headStartMs ?? priority * (wait.ageEveryMs ?? 0)
    // Another process may have refunded, which a cached refusal does not show. What waits is not refused yet.
    const fresh: DecisionOptions = { ...options, fresh: true, strikes: false }
    const store = this.#store
    const turns = plan.sharesTurns
    const cellOf = (queue: number) => plan.cellOf[queue] as number
    const waiter: Waiter = {
      queues: queuesOf(plan, identities),
      decide: (cost, op, turn, queue = 0) => {
        const asking = turn ? { ...fresh, turn: { ...turn, cell: cellOf(queue) } } : fresh
        return whenKnown(resolve(), (known) => this.decideResolved(known, cost, asking, op))
      },
      reportOf:
        turns &&
        store.reportWaiting &&
        ((queue) => ({
          ttlMs: turns.ttlMs,
          send: async (process, classes) =>
            store.reportWaiting?.(plan, identities, { process, cell: cellOf(queue) }, classes),
        })),
      mayHavePermits:
        store.mayHavePermits && !turns
          ? async (cost) => (await store.mayHavePermits?.(plan, identities, cost)) !== false
          : undefined,
      refund: (verdict: Verdict) => this.#charges.refund(verdict),
      delayOf: (verdict, enoughMs) => {
        const booking = Verdict.bookingOf(verdict)
        return booking ? this.#booked.delayOf(booking, wait.client, enoughMs) : verdict.delayMs
      },
      waits: () => this.#emitter.waits(this.#policy.name),
    }
    return this.#queues.admission(this.#policy.where, waiter, { ...wait, headStartMs })
  }

  /** @internal Whether the store has returned promises, as those do that processes share. */
  get storeAnswersLater(): boolean {
    return this.#storeAnswersLater
  }

  /** @internal Whether any request waits, in this process. */
  get hasQueues(): boolean {
    return this.#queues.size > 0
  }

  /** @internal Whether others wait for one of these limits, in this process. */
  hasWaitersFor(plan: ReadablePlan, identities: readonly string[]): boolean {
    return this.#queues.hasAny(queuesOf(plan, identities))
  }

  #ask(request: StoreRequest, from: DecidedBy): Verdict | Promise<Verdict> {
    return isWatched() && this.#emitter.isMeasured ? this.#askMeasured(request, from) : this.#askStore(request, from)
  }

  /** As `#askStore`, and notes how long it takes. */
  #askMeasured(request: StoreRequest, from: DecidedBy): Verdict | Promise<Verdict> {
    const took = { ms: 0 }
    const began = performance.now()
    const noted = (verdict: Verdict) => {
      took.ms = performance.now() - began
      return verdict
    }
    return whenKnown(this.#askStore(request, { ...from, took }), noted)
  }

  /** As `#ask`, for a request whose refusal is a strike. */
  #askStriking(request: StoreRequest, from: DecidedBy): Verdict | Promise<Verdict> {
    const emitter = this.#emitter
    if (!emitter.hearsStrikes) return this.#ask(request, from)
    return whenKnown(this.#ask(request, from), (verdict) => {
      emitter.struckByRefusal(request, verdict)
      return verdict
    })
  }

  #askStore(request: StoreRequest, from: DecidedBy): Verdict | Promise<Verdict> {
    try {
      const result = this.#store.decide(request)
      if (!(result instanceof Promise)) return Verdict.of(request, result, from)
      this.#storeAnswersLater = true
      return result.then(
        (late) => {
          this.#fallback.hear(request, late)
          return Verdict.of(request, late, from)
        },
        (error) => this.#decideWithout(request, from, error),
      )
    } catch (error) {
      return this.#decideWithout(request, from, error)
    }
  }

  /** The verdict where the store could not decide. */
  #decideWithout(request: StoreRequest, from: DecidedBy, error: unknown): Verdict {
    if (isUnavailable(error)) return this.#fallback.decide(request, from)
    throw error
  }
}

/** How long a request waits for a turn that it has been given. */
export type BookedWait = Pick<WaitOptions, 'client' | 'maxWaitMs' | 'signal'>

type Resolver<Subject> = () => Resolved<Subject> | Promise<Resolved<Subject>>

function refusalOf(error: unknown): WaitExceeded {
  if (error instanceof WaitExceeded) return error
  throw error
}

/** The name of the queue of each limit: by the state that it is counted in. */
function queuesOf({ cells, cellOf }: ReadablePlan, identities: readonly string[]): string[] {
  return cellOf.map((c) => {
    const { id, identity } = cells[c] as Cell
    return `${id}\n${identities[identity]}`
  })
}
