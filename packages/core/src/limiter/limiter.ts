import { KEEPER } from '../features/bans/ban-keeper.js'
import { ADDED_BAN_OPTIONS, BAN } from '../features/bans/ban-terms.js'
import { emitBlock, emitUnblock } from '../features/bans/block-events.js'
import { BY_ID, type KeptCharges } from '../features/charges/charges-by-id.js'
import { type AcquireOptions, acquireOptions } from '../features/queues/acquire-options.js'
import { type LimiterQueues, QUEUES, type Resolver } from '../features/queues/limiter-queues.js'
import { WaitExceeded } from '../features/queues/waiter.js'
import { checkedCost, type Units } from '../policy/costs.js'
import { isPlainObject } from '../policy/given-identities.js'
import type { LimitForm } from '../policy/limit-form.js'
import type { Limit } from '../policy/limits/limit.js'
import { Subjects } from '../policy/subjects.js'
import { choosePolicy } from '../policy/tiers.js'
import type { IdentityByKind, KeyValue } from '../store/identity.js'
import { type ChargeOutcome, type Op, PEEK } from '../store/store.js'
import { refuseOfOther } from '../util/copies.js'
import { spanOrForEver } from '../util/duration.js'
import { invalidPolicy, SluiceError, show, wrongPolicy } from '../util/errors.js'
import { isWatched } from '../util/listeners.js'
import { propertyOf } from '../util/property-of.js'
import { knownOptions, optionalFunction } from '../util/validate.js'
import { warnOnRejection } from '../util/warn-on-rejection.js'
import { LIMITER_WARNINGS, Warnings } from '../util/warnings.js'
import { type MaybePromise, whenKnown } from '../util/when-known.js'
import { type Decision, isCharged, isHeld } from '../verdict/decision.js'
import { type BanReport, DECISION, PARTS, Verdict } from '../verdict/verdict.js'
import type { EarlyDecisions } from './early-decisions.js'
import type { Composition } from './engine.js'
import { Engine } from './engine.js'
import type { LimiterEvents, ListenOptions } from './events.js'
import { LimiterEmitter } from './limiter-emitter.js'
import { listen } from './near-limit.js'
import {
  type BlockOptions,
  type CostOptions,
  checkCostOptions,
  checkedStrike,
  checkReason,
  decisionOptions,
  LIMITER_OPTIONS,
  type LimiterOptions,
  NO_OPTIONS,
  type StrikeOptions,
} from './options.js'
import { adviseOnSetUp } from './set-up-advice.js'
import { noteStoreInUse } from './stores-in-use.js'

export type { BlockOptions, CostOptions, LimiterOptions, StrikeOptions } from './options.js'

/** The limiter, and its engine. */
export function makeLimiterOf<Subject = string>(
  options: LimiterOptions<Subject> & LimitForm,
  composition: Composition,
): { readonly limiter: Limiter<Subject>; readonly engine: Engine<Subject> } {
  knownOptions('limiter', options, LIMITER_OPTIONS)
  const { store = composition.defaultStore() } = options
  const { ban } = options
  const policy = choosePolicy(options, composition.features)
  for (const field of ADDED_BAN_OPTIONS) {
    if (ban?.[field as keyof typeof ban] !== undefined) {
      throw new SluiceError('INVALID_POLICY', `${policy.where}: ban: ${field}: expected none without HTTP`)
    }
  }
  const emitter = new LimiterEmitter(policy.where, options.name)
  const warnings = new Warnings(policy.where, LIMITER_WARNINGS, options.warnings, emitter.listeners)
  // Without key functions the argument is the key as text; with them it is their argument.
  const areTexts = policy.all.every(({ keys }) => keys.every((key) => key === undefined))
  const namesIdentity = areTexts ? isPlainObject : () => false
  const { onVerdict } = options
  optionalFunction(policy.where, 'onVerdict', onVerdict)
  const listener = `${policy.where}: onVerdict`
  const afterVerdict =
    onVerdict &&
    ((subject: Subject, verdict: Verdict) => warnOnRejection(listener, onVerdict(subject, verdict), warnings.emit))
  const basis = { policy, store, warnings, areTexts }
  const [early] = composition.features.flatMap((feature) => feature.early?.(basis, options) ?? [])
  const engine = new Engine(policy, store, options, emitter, composition)
  const limiter = new Limiter(
    new Subjects(policy, { namesIdentity, areTexts, replacement: undefined }),
    engine,
    early,
    afterVerdict,
  )
  // After the constructor, which has checked the store.
  adviseOnSetUp(policy, warnings, options)
  return { limiter, engine }
}

export class Limiter<Subject = string> {
  readonly #subjects: Subjects<Subject>
  readonly #engine: Engine<Subject>
  readonly #where: string
  readonly #early: EarlyDecisions<Subject> | undefined
  /** Called with verdicts before they are returned. */
  readonly #afterVerdict: ((subject: Subject, verdict: Verdict) => void) | undefined
  /** Whether each verdict is announced, even where nothing watches. */
  readonly #isAnnounced: boolean

  /** @internal Use `createLimiter`. */
  constructor(
    subjects: Subjects<Subject>,
    engine: Engine<Subject>,
    early: EarlyDecisions<Subject> | undefined,
    afterVerdict?: (subject: Subject, verdict: Verdict) => void,
  ) {
    this.#subjects = subjects
    this.#engine = engine
    this.#where = engine.policy.where
    this.#early = early
    this.#afterVerdict = afterVerdict
    this.#isAnnounced = afterVerdict !== undefined || propertyOf(engine.store, 'noteRefusal') !== undefined
    noteStoreInUse(engine.store)
  }

  get name(): string {
    return this.#engine.policy.name
  }

  /** The limits as they were made. Shows the algorithm that a plain `{ limit, window }` selects. */
  get limits(): readonly Limit<Subject>[] {
    return this.#engine.policy.limits
  }

  /** The kinds of identities that it counts, in any tier, such as `ip`: `peek`, `reset` and `block` take identities by these. */
  get kinds(): readonly string[] {
    return this.#subjects.kinds
  }

  /**
   * @internal The same limiter for identities by their kinds: a limiter with key functions takes an object as their argument.
   */
  get forIdentities(): Limiter<IdentityByKind> {
    const takesThem = this.#subjects.namesIdentity({})
    const own = takesThem ? this : new Limiter(this.#subjects.forIdentities(), this.#engine, undefined)
    return own as unknown as Limiter<IdentityByKind>
  }

  /** @internal The names of the lists that deny, those of the store included. */
  get denyLists(): readonly string[] {
    return this.#early?.denying ?? []
  }

  /** The names of its tiers; empty without tiers. */
  get tiers(): readonly string[] {
    return this.#engine.policy.all.flatMap(({ tier }) => tier ?? [])
  }

  /**
   * Decides, and charges every limit if all have room. Never rejects for a refusal, nor because the
   * store is away: `unavailable` decides then.
   *
   * @throws SluiceError `INVALID_KEY`, `INVALID_COST`, `INVALID_POLICY` (options, or a limit function's result)
   */
  // Not `async`: that would resolve three microtasks later, and allocate two more promises.
  consume(subject: Subject, options: CostOptions = NO_OPTIONS): Promise<Verdict> {
    try {
      checkCostOptions(this.#where, 'consume', options)
      const verdict = this.#decide(subject, options, undefined)
      if (this.#isAnnounced || isWatched()) return this.#announced(subject, verdict)
      return verdict instanceof Promise ? verdict : Promise.resolve(verdict)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** The verdict that `consume` would return now. Changes nothing. */
  async peek(subject: Subject, options: CostOptions = NO_OPTIONS): Promise<Verdict> {
    checkCostOptions(this.#where, 'peek', options)
    return this.#decide(subject, options, PEEK)
  }

  /**
   * Refunds the charge of an allowed verdict, once, less the units that time has already restored. Releases its permits too.
   * Resolves to whether this call refunded anything. During an outage, charges of the store are not
   * refunded, then or later.
   */
  refund(subject: Subject, verdict: Verdict): Promise<boolean>
  /**
   * Refunds a charge by its `id`, in any process, as far as it is neither settled nor refunded. Releases its permits too. Safe to
   * repeat: after an error, call it again. See docs/charges.md.
   *
   * @throws SluiceError `STORE_UNAVAILABLE`, after which it may be done in part; `INVALID_POLICY` without `charges`
   */
  refund(id: string): Promise<ChargeOutcome>
  async refund(subject: Subject | string, verdict?: Verdict): Promise<boolean | ChargeOutcome> {
    if (verdict === undefined && typeof subject === 'string') return this.#kept.refund(subject)
    return this.#refundVerdict(subject as Subject, verdict as Verdict)
  }

  async #refundVerdict(subject: Subject, verdict: Verdict): Promise<boolean> {
    if (verdict === undefined && (subject as unknown) instanceof Verdict) {
      throw new SluiceError('INVALID_KEY', `${this.#where}: refund: expected refund(key, verdict): the key is missing`)
    }
    if (verdict === undefined) {
      wrongPolicy(`${this.#where}: refund: expected refund(key, verdict) or refund(id), got ${show(subject)} alone`)
    }
    const held = this.#decisionsOf(verdict, false).filter(isHeld)
    if (held.length === 0) return false
    // The verdict knows its policies, which the argument may not determine, and which may have changed since.
    const areCounted = held.map(({ request, by }) =>
      by.policy ? this.#subjects.isCountedOn(subject, by.policy, request.identities) : false,
    )
    // Called synchronously: a later reset must not overtake it.
    const known = areCounted.some((each) => each instanceof Promise) ? await Promise.all(areCounted) : areCounted
    if (!known.includes(true)) {
      throw new SluiceError('INVALID_KEY', `${this.#where}: key: expected the key the verdict was given for`)
    }
    const refunds = held.map((decision) => this.#engine.charges.refund(decision))
    return (await Promise.all(refunds)).includes(true)
  }

  /** Equals `verdict.settle(actual)`. */
  settle(verdict: Verdict, actual: number | Units): Promise<boolean>
  /**
   * Replaces the estimated cost of a charge with the actual one, by its `id`, in any process: each unit once. Safe to repeat.
   *
   * @throws SluiceError `INVALID_COST`; `STORE_UNAVAILABLE`, after which it may be done in part; `INVALID_POLICY` without `charges`
   */
  settle(id: string, actual: number | Units): Promise<ChargeOutcome>
  async settle(verdict: Verdict | string, actual: number | Units): Promise<boolean | ChargeOutcome> {
    if (typeof verdict === 'string') return this.#kept.settle(verdict, actual)
    this.#decisionsOf(verdict)
    return verdict.settle(actual)
  }

  /**
   * Releases the permits that a verdict took in `concurrency` limits; its other charges stay. A second
   * call releases nothing more. Without a verdict, as for a skipped request, it does nothing.
   */
  release(verdict: Verdict | undefined): Promise<void>
  /**
   * Releases the permits of a charge by its `id`, in any process. Safe to repeat.
   *
   * @throws SluiceError `STORE_UNAVAILABLE`; `INVALID_POLICY` without `charges`
   */
  release(id: string): Promise<ChargeOutcome>
  async release(verdict: Verdict | string | undefined): Promise<unknown> {
    if (typeof verdict === 'string') return this.#kept.release(verdict)
    const decisions = verdict ? this.#decisionsOf(verdict) : []
    await Promise.all(decisions.map((each) => this.#engine.charges.release(each)))
    return undefined
  }

  /** Holds the permits of a verdict for another `ttl`. Permits already released or expired are not taken again. */
  renew(verdict: Verdict): Promise<void>
  /**
   * Holds the permits of a charge for another `ttl` by its `id`, in any process, and its id for another `keep`. `unknown` where
   * permits have expired, too.
   *
   * @throws SluiceError `STORE_UNAVAILABLE`; `INVALID_POLICY` without `charges`
   */
  renew(id: string): Promise<ChargeOutcome>
  async renew(verdict: Verdict | string): Promise<unknown> {
    if (typeof verdict === 'string') return this.#kept.renew(verdict)
    await Promise.all(this.#decisionsOf(verdict).map((each) => this.#engine.charges.renew(each)))
    return undefined
  }

  /**
   * Waits its turn and resolves when admitted. Among calls for one key, the higher `priority` is first, then clients in turn by
   * `fairBy`, then first in, first out. The order holds within this process, or with `sharedTurns` by priority across processes.
   *
   * @throws SluiceError `WAIT_EXCEEDED` at once when the wait would exceed `maxWait`, when it can never succeed, or when `size`
   * calls wait. The signal's reason when aborted; a charge is refunded then.
   */
  // `async`, so that an invalid key rejects as in the other methods.
  async acquire(subject: Subject, options: AcquireOptions = {}): Promise<Verdict> {
    const began = performance.now()
    const wait = acquireOptions(this.#where, options)
    const cost = checkedCost(this.#engine.policy, wait.cost)
    const pending = this.#early?.pending
    if (pending) await pending
    const early = this.#earlyTurn(subject)
    const resolver = early ? undefined : this.#subjects.resolver(subject, wait.tier, wait.priority)
    const resolve = resolver instanceof Promise ? await resolver : resolver
    const { charges } = this.#engine
    const queues = this.#engine.parts.get(QUEUES) as LimiterQueues<Subject>
    const turn = early ?? queues.waitTurn(resolve as Resolver<Subject>, { ...wait, cost, waitsForStore: true })
    const verdict = await this.#announced(subject, turn.catch(refusalOf))
    if (verdict.delayMs > 0) {
      try {
        const maxWaitMs = wait.maxWaitMs - (performance.now() - began)
        await queues.booked.waitWithin(this.#where, verdict, { ...wait, maxWaitMs })
      } catch (error) {
        await charges.refund(verdict[DECISION])
        throw error
      }
    }
    return verdict
  }

  /**
   * Calls back with each event of this limiter. docs/events.md lists them, and `events.on()` has those of all limiters.
   * The call is synchronous, so be brief. A listener that throws or rejects causes a warning of the process
   * (`SLUICE_LISTENER_FAILED`) and changes no decision. Returns a function that stops listening.
   *
   * @example const stop = limiter.on('refused', ({ limit, verdict }) => audit(limit, verdict.keys))
   * @throws SluiceError `INVALID_POLICY`
   */
  on<Name extends keyof LimiterEvents>(
    event: Name,
    listener: (event: LimiterEvents[Name]) => unknown,
    options?: ListenOptions,
  ): () => void {
    return listen(this.#engine.emitter.listeners, this.#where, event, listener, options)
  }

  /**
   * Forgets the charges on an identity, in every tier if it is given as text or by its kind. Blocks stay. Strikes are
   * forgotten with the charges; a ban in force, and its rung, stay.
   *
   * `refund`, `settle` and `count` of this limiter do not refund earlier charges after that. Other limiters and other processes do
   * not see the reset, and may still refund theirs, unless the policy has `charges`: earlier ids are unknown then, everywhere.
   *
   * @throws SluiceError `INVALID_KEY`, `STORE_UNAVAILABLE`
   */
  async reset(subject: Subject): Promise<void> {
    const all = this.#subjects.resolveAll(subject)
    const resolved = all instanceof Promise ? await all : all
    // At once: without the store, this process still forgets its own counts of every tier.
    await Promise.all(resolved.map(({ tier, plan, identities }) => this.#engine.reset(tier, plan, identities)))
    this.#engine.wake()
  }

  /** @deprecated Write `reset(key)`. @throws SluiceError `INVALID_POLICY` */
  resetKey(_use: 'use reset(key)'): never {
    wrongPolicy(`${this.#where}: resetKey: write limiter.reset(key)`)
  }

  /**
   * Refuses an identity, in every process that shares the store, until `for` from now. A second block replaces the first.
   * Where a policy groups addresses in several ways, the smallest group of an address is refused. A network of addresses is
   * refused as a whole; other processes refuse it within a second.
   *
   * @param identity by its kind, such as `{ ip: '192.0.2.7' }` or `{ ip: '192.0.2.0/24' }`; or its text, where the limiter counts one kind only
   * @throws SluiceError `INVALID_KEY`, which lists the kinds; `STORE_FULL` where a memory store has no room for
   * the block, or 100,000 networks are blocked on Redis;
   * `STORE_UNAVAILABLE`, after which the block may hold or not
   */
  async block(identity: KeyValue | IdentityByKind, options: BlockOptions): Promise<void> {
    knownOptions(`${this.#where}: block`, options, ['for', 'reason'])
    const reason = checkReason(this.#where, options.reason === undefined ? '' : options.reason)
    const forMs = spanOrForEver(`${this.#where}: block`, 'for', options.for)
    const texts = this.#subjects.toBlock(identity)
    // No advice for networks: a list may allow only some of their addresses.
    if (this.#subjects.rangeIn(identity) === undefined) this.#early?.adviseOnBlock(this.#subjects.given(identity))
    const { policy, store, emitter } = this.#engine
    const { name } = policy
    await Promise.all(texts.map((text) => store.block(name, text, forMs, reason)))
    for (const text of texts) emitBlock(emitter.listeners, { policy: name, identity: text }, forMs, reason)
  }

  /**
   * Ends a block or ban before its time, also one by another policy where bans apply to the whole store. Forgets the strikes
   * and the rung, so the next ban is of the first rung.
   *
   * @throws SluiceError `INVALID_KEY`, `STORE_UNAVAILABLE`
   */
  async unblock(identity: KeyValue | IdentityByKind): Promise<void> {
    const texts = this.#subjects.toBlock(identity)
    const { policy, store, parts, emitter } = this.#engine
    const keeper = parts.get(KEEPER)
    const { name } = policy
    const scopes = policy.all.flatMap(({ parts }) => parts.get(BAN)?.terms.scope ?? [])
    const policies = [...new Set([name, ...scopes])]
    await Promise.all(texts.flatMap((text) => policies.map((policy) => store.unblock(policy, text))))
    for (const text of texts) {
      keeper?.end(text)
      emitUnblock(emitter.listeners, { policy: name, identity: text })
    }
    this.#engine.wake()
  }

  /**
   * Strikes an identity for an offence that no limit sees, such as a request for a path that only probes request. The last
   * required strike starts the ban. While the identity is banned or blocked, strikes do not count. During an outage of
   * the store strikes stay in this process.
   *
   * @param identity of the kind that the policy bans, such as `{ ip: '192.0.2.7' }`; or its text, where it counts one kind only
   * @returns the ban that holds now, or undefined. Also undefined for an identity that is never banned, such as a private address
   * @throws SluiceError `INVALID_POLICY` where the policy has no `ban`, `INVALID_KEY` for another kind
   */
  async strike(identity: KeyValue | IdentityByKind, options: StrikeOptions = {}): Promise<BanReport | undefined> {
    const keeper = this.#engine.parts.get(KEEPER)
    if (!keeper) throw new SluiceError('INVALID_POLICY', `${this.#where}: strike: expected a policy with ban`)
    const strike = checkedStrike(this.#where, options)
    return keeper.strike(this.#subjects.toStrike(identity), strike)
  }

  get #kept(): KeptCharges {
    const kept = this.#engine.parts.get(BY_ID)
    return kept ?? invalidPolicy(this.#where, 'id', 'none without charges', 'an id', 'add charges: { keep }')
  }

  /**
   * The decisions of a verdict.
   *
   * @throws SluiceError `INVALID_POLICY` for a value that is no verdict of this limiter
   */
  #decisionsOf(verdict: Verdict, canBeId = true): readonly Decision[] {
    const expected = canBeId && this.#engine.parts.get(BY_ID) ? OR_ID : 'a verdict of this limiter'
    if (!(verdict instanceof Verdict)) {
      refuseOfOther(`${this.#where}: verdict`, verdict)
      invalidPolicy(this.#where, 'verdict', expected, verdict)
    }
    const decisions = verdict[PARTS].map((part) => part[DECISION])
    const other = decisions.find((each) => isCharged(each) && each.request.plan.policy !== this.name)
    if (other) invalidPolicy(this.#where, 'verdict', expected, `one of policy ${other.request.plan.policy}`)
    return decisions
  }

  #decideEarly(subject: Subject): Verdict | undefined {
    const early = this.#early
    if (!early) return undefined
    return this.#subjects.namesIdentity(subject)
      ? early.decideGiven(this.#subjects.given(subject))
      : early.decide(subject, undefined as never)
  }

  /** A listed argument is admitted or refused at once. Undefined where no list matches. */
  #earlyTurn(subject: Subject): Promise<Verdict> | undefined {
    const verdict = this.#decideEarly(subject)
    if (!verdict || verdict.allowed) return verdict && Promise.resolve(verdict)
    return Promise.reject(new WaitExceeded(`${this.#where}: acquire: a list denies it`, undefined, verdict))
  }

  /** Passes a verdict, or the refusal with which a wait ended, to listeners and `onVerdict`. */
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
    this.#engine.conclude(verdict, !verdict.allowed)
    this.#afterVerdict?.(subject, verdict)
  }

  #decide(subject: Subject, options: CostOptions, op: Op | undefined): Verdict | Promise<Verdict> {
    const { cost = 1, tier, priority } = options
    const units = cost === 1 ? cost : checkedCost(this.#engine.policy, cost)
    const early = this.#early && this.#decideFirst(this.#early, subject, options, op)
    if (early) return early
    // Read at once: the caller may change them while a key is awaited.
    const own = decisionOptions(options)
    return whenKnown(this.#subjects.resolve(subject, tier, priority), (resolved) =>
      this.#engine.decide(resolved, units, own, op),
    )
  }

  /** The verdict of what decides before the limits, or undefined where nothing does. */
  #decideFirst(
    { pending }: EarlyDecisions<Subject>,
    subject: Subject,
    options: CostOptions,
    op: Op | undefined,
  ): MaybePromise<Verdict> | undefined {
    return pending ? pending.then(() => this.#decide(subject, options, op)) : this.#decideEarly(subject)
  }
}

const OR_ID = 'a verdict of this limiter, or the id of a charge'

function refusalOf(error: unknown): WaitExceeded {
  if (error instanceof WaitExceeded) return error
  throw error
}

/** See `denyLists`. For our own packages, as `limiterOfIdentities`. Of limiters of policies, none. */
export function denyListsOf(limiter: Limiter<never>): readonly string[] {
  const { denyLists = [] }: Partial<Pick<Limiter<never>, 'denyLists'>> = limiter
  return denyLists
}

/** See `forIdentities`. For our own packages: declarations of the limiter do not show it. */
export function limiterOfIdentities(limiter: Limiter<never>): Limiter<IdentityByKind> {
  return limiter.forIdentities
}
