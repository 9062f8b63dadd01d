import { checkedCost, type Units } from '../policy/costs.js'
import { isPlainObject } from '../policy/given-identities.js'
import type { LimitForm } from '../policy/limit-form.js'
import type { Limit } from '../policy/limits/limit.js'
import { Subjects } from '../policy/subjects.js'
import { choosePolicy } from '../policy/tiers.js'
import type { IdentityByKind } from '../store/identity.js'
import type { Store } from '../store/store.js'
import { type Op, PEEK } from '../store/store.js'
import { refuseOfOther } from '../util/copies.js'
import { invalidPolicy, SluiceError, show, wrongPolicy } from '../util/errors.js'
import { isWatched } from '../util/listeners.js'
import { propertiesOf, propertyOf } from '../util/property-of.js'
import { knownOptions } from '../util/validate.js'
import { optionalListener } from '../util/warn-on-rejection.js'
import { LIMITER_WARNINGS, Warnings } from '../util/warnings.js'
import { type MaybePromise, whenKnown } from '../util/when-known.js'
import { type Decision, isCharged, isHeld } from '../verdict/decision.js'
import { DECISION, PARTS, Verdict } from '../verdict/verdict.js'
import type { EarlyDecisions } from './early-decisions.js'
import { Engine, type EngineComposition } from './engine.js'
import type { LimiterEvents, ListenOptions } from './events.js'
import { LimiterEmitter } from './limiter-emitter.js'
import { listen } from './near-limit.js'
import {
  BASIC_LIMITER_OPTIONS,
  type BasicLimiterOptions,
  type CostOptions,
  checkCostOptions,
  decisionOptions,
  NO_OPTIONS,
} from './options.js'
import { adviseOnSetUp } from './set-up-advice.js'
import { noteStoreInUse } from './stores-in-use.js'

/** The surroundings of limiters, which an entry of the package composes: they know no feature by name. */
export interface Composition extends EngineComposition {
  /** Makes the store of a limiter that names none. */
  readonly defaultStore: () => Store
  /** The class of limiters, with the methods of features. */
  readonly Limiter: typeof BasicLimiter
}

/** The limiter, and its engine. */
export function makeLimiterOf<Subject>(
  options: BasicLimiterOptions<Subject> & LimitForm,
  composition: Composition,
): { readonly limiter: BasicLimiter<Subject>; readonly engine: Engine<Subject> } {
  const { features } = composition
  const names = [...propertiesOf(features, 'policyOptions'), ...propertiesOf(features, 'limiterOptions')].flat()
  knownOptions('limiter', options, [...BASIC_LIMITER_OPTIONS, ...names], propertyOf(composition, 'absent'))
  const { store = composition.defaultStore() } = options
  const policy = choosePolicy(options, features)
  const emitter = new LimiterEmitter(policy.where, options.name)
  const warnings = new Warnings(policy.where, LIMITER_WARNINGS, options.warnings, emitter.listeners)
  // Without key functions the argument is the key as text; with them it is their argument.
  const areTexts = policy.all.every(({ keys }) => keys.every((key) => key === undefined))
  const namesIdentity = areTexts ? isPlainObject : () => false
  const onVerdict = optionalListener(policy.where, 'onVerdict', options.onVerdict, warnings.emit)
  const basis = { policy, store, warnings, areTexts }
  const [early] = propertiesOf(features, 'limiter').flatMap((add) => add(basis, options) ?? [])
  const engine = new Engine(policy, store, options, emitter, composition)
  const subjects = new Subjects(policy, { namesIdentity, areTexts, replacement: undefined })
  const limiter = new composition.Limiter(subjects, engine, early, onVerdict)
  // After the constructor, which has checked the store.
  adviseOnSetUp(policy, warnings, options)
  return { limiter, engine }
}

/** The inside of a limiter, for the methods of features. */
export interface LimiterInside<Subject> {
  readonly subjects: Subjects<Subject>
  readonly engine: Engine<Subject>
  readonly early: EarlyDecisions<Subject> | undefined
  /** The verdict of what decides before the limits. Undefined if nothing does. */
  readonly decideEarly: (subject: Subject) => Verdict | undefined
  /** Passes a final verdict to listeners and `onVerdict`. */
  readonly announce: (subject: Subject, verdict: Verdict) => void
}

export const INSIDE = Symbol('inside')

/** A limiter without the methods of features. */
export class BasicLimiter<Subject> {
  readonly #subjects: Subjects<Subject>
  readonly #engine: Engine<Subject>
  readonly #where: string
  readonly #early: EarlyDecisions<Subject> | undefined
  /** Called with verdicts before they are returned. */
  readonly #onVerdict: ((subject: Subject, verdict: Verdict) => void) | undefined
  /** Whether each verdict is announced, even where nothing watches. */
  readonly #isAnnounced: boolean

  /** @internal Use `createLimiter`. */
  constructor(
    subjects: Subjects<Subject>,
    engine: Engine<Subject>,
    early: EarlyDecisions<Subject> | undefined,
    onVerdict?: (subject: Subject, verdict: Verdict) => void,
  ) {
    this.#subjects = subjects
    this.#engine = engine
    this.#where = engine.policy.where
    this.#early = early
    this.#onVerdict = onVerdict
    this.#isAnnounced = onVerdict !== undefined || engine.isConcluding
    noteStoreInUse(engine.store)
  }

  /** @internal */
  get [INSIDE](): LimiterInside<Subject> {
    return {
      subjects: this.#subjects,
      engine: this.#engine,
      early: this.#early,
      decideEarly: (subject) => this.#verdictBeforeLimits(subject),
      announce: (subject, verdict) => this.#announce(subject, verdict),
    }
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
  get forIdentities(): BasicLimiter<IdentityByKind> {
    const Own = this.constructor as typeof BasicLimiter
    const takesThem = this.#subjects.namesIdentity({})
    const own = takesThem ? this : new Own(this.#subjects.forIdentities(), this.#engine, undefined)
    return own as unknown as BasicLimiter<IdentityByKind>
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
  async refund(subject: Subject, verdict: Verdict): Promise<boolean> {
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
  async settle(verdict: Verdict, actual: number | Units): Promise<boolean> {
    this.#decisionsOf(verdict)
    return verdict.settle(actual)
  }

  /**
   * Releases the permits that a verdict took in `concurrency` limits; its other charges stay. A second
   * call releases nothing more. Without a verdict, as for a skipped request, it does nothing.
   */
  async release(verdict: Verdict | undefined): Promise<void> {
    const decisions = verdict ? this.#decisionsOf(verdict) : []
    await Promise.all(decisions.map((each) => this.#engine.charges.release(each)))
  }

  /** Holds the permits of a verdict for another `ttl`. Permits already released or expired are not taken again. */
  async renew(verdict: Verdict): Promise<void> {
    await Promise.all(this.#decisionsOf(verdict).map((each) => this.#engine.charges.renew(each)))
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
   * The decisions of a verdict.
   *
   * @throws SluiceError `INVALID_POLICY` for a value that is no verdict of this limiter
   */
  #decisionsOf(verdict: Verdict, canBeId = true): readonly Decision[] {
    const expected = (canBeId && this.#engine.chargeForm) || 'a verdict of this limiter'
    if (!(verdict instanceof Verdict)) {
      refuseOfOther(`${this.#where}: verdict`, verdict)
      invalidPolicy(this.#where, 'verdict', expected, verdict)
    }
    const decisions = verdict[PARTS].map((part) => part[DECISION])
    const other = decisions.find((each) => isCharged(each) && each.request.plan.policy !== this.name)
    if (other) invalidPolicy(this.#where, 'verdict', expected, `one of policy ${other.request.plan.policy}`)
    return decisions
  }

  #verdictBeforeLimits(subject: Subject): Verdict | undefined {
    const early = this.#early
    if (!early) return undefined
    return this.#subjects.namesIdentity(subject)
      ? early.matchGiven(this.#subjects.given(subject))
      : early.match(subject, undefined as never)
  }

  /** Passes a verdict to listeners and `onVerdict`. */
  #announced(subject: Subject, verdict: MaybePromise<Verdict>): Promise<Verdict> {
    if (verdict instanceof Promise) {
      return verdict.then((known) => {
        this.#announce(subject, known)
        return known
      })
    }
    this.#announce(subject, verdict)
    return Promise.resolve(verdict)
  }

  #announce(subject: Subject, verdict: Verdict): void {
    this.#engine.conclude(verdict, !verdict.allowed)
    this.#onVerdict?.(subject, verdict)
  }

  #decide(subject: Subject, options: CostOptions, op: Op | undefined): Verdict | Promise<Verdict> {
    const { cost = 1, tier, priority } = options
    const units = cost === 1 ? cost : checkedCost(this.#engine.policy, cost)
    const early = this.#early && this.#beforeLimits(this.#early, subject, options, op)
    if (early) return early
    // Read at once: the caller may change them while a key is awaited.
    const own = decisionOptions(options)
    return whenKnown(this.#subjects.resolve(subject, tier, priority), (resolved) =>
      this.#engine.decide(resolved, units, own, op),
    )
  }

  /** The verdict of what decides before the limits, or undefined if nothing does. */
  #beforeLimits(
    { pending }: EarlyDecisions<Subject>,
    subject: Subject,
    options: CostOptions,
    op: Op | undefined,
  ): MaybePromise<Verdict> | undefined {
    return pending ? pending.then(() => this.#decide(subject, options, op)) : this.#verdictBeforeLimits(subject)
  }
}

/** The names of the lists of a limiter, those of its store included. For our own packages. Of limiters of policies, none. */
export function listsOfLimiter(limiter: BasicLimiter<never>): Record<'allow' | 'deny', readonly string[]> {
  const { early } = (limiter as Partial<Pick<BasicLimiter<never>, typeof INSIDE>>)[INSIDE] ?? {}
  return { allow: early?.allowing ?? [], deny: early?.denying ?? [] }
}

/** See `forIdentities`. For our own packages: declarations of the limiter do not show it. */
export function limiterOfIdentities(limiter: BasicLimiter<never>): BasicLimiter<IdentityByKind> {
  return limiter.forIdentities
}
