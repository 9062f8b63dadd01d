import { randomUUID } from 'node:crypto'
import {
  type Cost,
  type Counting,
  costsOf,
  isPeek,
  needsOf,
  reservedFor,
  takesNothing,
  withReserved,
} from '../policy/costs.js'
import type { ReadablePlan } from '../policy/plan.js'
import { planNow } from '../policy/plan-now.js'
import type { Policy, PolicyChoice, Resolved } from '../policy/policy.js'
import type { PolicyFeature } from '../policy/policy-feature.js'
import { wholeOf } from '../policy/share.js'
import type { HttpContext } from '../request/context.js'
import { refuseOldMembers } from '../store/old-members.js'
import {
  CHARGE,
  CONSUME,
  type Op,
  PEEK,
  requestOf,
  type Store,
  type StoreRequest,
  type StoreResult,
  type Writable,
} from '../store/store.js'
import { noteUse, refuseOfOther } from '../util/copies.js'
import { invalidPolicy, wrongPolicy } from '../util/errors.js'
import { isWatched } from '../util/listeners.js'
import { FORMS } from '../util/option-hints.js'
import { Parts } from '../util/parts.js'
import { propertiesOf } from '../util/property-of.js'
import { Resets } from '../util/resets.js'
import { PROCESS_TIMING, type Timing } from '../util/timing.js'
import { refusePolluted } from '../util/validate.js'
import { type MaybePromise, whenKnown } from '../util/when-known.js'
import { type DecidedBy, type Decision, decisionOn } from '../verdict/decision.js'
import { DECISION, type Verdict, verdictOf } from '../verdict/verdict.js'
import { ChargeLedger, type MakeMeter } from './charge-ledger.js'
import type { EarlyBasis, EarlyDecisions } from './early-decisions.js'
import { isUnavailable, LocalFallback, type MakeStore, type UnavailableOptions } from './fallback.js'
import type { LimiterEmitter } from './limiter-emitter.js'
import { DECISION_OPTIONS, type DecisionOptions } from './options.js'

/** A feature, as limiters see it: with or without HTTP. */
export interface LimiterFeature extends PolicyFeature {
  /**
   * Adds itself to an engine, at the end of its construction: it may keep the engine, and not call it yet. Undefined if it has
   * nothing to do with the decisions and changes of this one.
   *
   * @throws SluiceError `INVALID_POLICY` for a store that lacks what it needs
   */
  readonly engine?: (engine: Engine<never>, fallback: LocalFallback) => EnginePart | undefined
  /** The names of its options of a limiter without HTTP, beside those of a policy. */
  readonly limiterOptions?: readonly string[]
  /**
   * Adds itself to a limiter without HTTP. Returns what decides before its limits; undefined if nothing does.
   *
   * @throws SluiceError `INVALID_POLICY`
   */
  readonly limiter?: <Subject>(basis: EarlyBasis<Subject>, options: object) => EarlyDecisions<Subject> | undefined
}

/** The part of a feature in an engine. */
export interface EnginePart {
  /** Adds its terms to the request of a decision that is no peek. */
  readonly complete?: (request: Writable<StoreRequest>, policy: Policy<never>, options: DecisionOptions) => void
  /** Called with each final verdict. `isRefused`: whether the request does not proceed. */
  readonly concluded?: (verdict: Verdict, isRefused: boolean) => void
  /** Makes the meters of verdicts. The first feature's counts. */
  readonly meter?: MakeMeter
  /** The forms in which a user may give a charge, in words, where a verdict is not the only one. The first feature's counts. */
  readonly chargeForm?: string
  /** Called when the limits of a request may have room again; of `undefined`, any limits. */
  readonly room?: (request: StoreRequest | undefined) => void
}

/** The surroundings of engines, which an entry of the package composes. */
export interface EngineComposition {
  readonly features: readonly LimiterFeature[]
  /** Makes the store of this process that decides during outages. */
  readonly localStore: MakeStore
  /** The remedy for each option of a feature that is not there. @default none are missing */
  readonly absent?: Readonly<Record<string, string>>
}

/** A counter. Permit ids are unique over processes and restarts: the id of this process, and a number. */
let permits = 0
const holder = randomUUID().slice(-12)

/**
 * Decides by one policy on one store, beneath the limiter that users call and the guard of requests. It takes the resolved
 * policy, and knows neither requests nor lists.
 */
export class Engine<Subject> {
  readonly policy: PolicyChoice<Subject>
  readonly store: Store
  readonly emitter: LimiterEmitter
  readonly charges: ChargeLedger
  /** The parts that features have added. */
  readonly parts = new Parts()
  /** The time of its waits. */
  readonly timing: Timing
  readonly #fallback: LocalFallback
  /** The forms in which users may give a charge, where features add to that. */
  readonly chargeForm: string | undefined
  /** The functions of features: of most policies, none. */
  readonly #completing: readonly NonNullable<EnginePart['complete']>[]
  readonly #concluding: readonly NonNullable<EnginePart['concluded']>[]
  readonly #rooms: readonly NonNullable<EnginePart['room']>[]
  readonly #meter: MakeMeter | undefined
  #isStoreAsync = false
  /** The last decision's, as the next one is nearly always the same. */
  #by: DecidedBy | undefined

  /**
   * @param timing another time than that of the process
   * @param resets those of the keys of several engines
   * @param document all policies of the document that the policy is of
   * @throws SluiceError `INVALID_POLICY`
   */
  constructor(
    policy: PolicyChoice<Subject>,
    store: Store,
    unavailable: UnavailableOptions,
    emitter: LimiterEmitter,
    { features, localStore }: EngineComposition,
    timing = PROCESS_TIMING,
    resets = new Resets(),
    document?: Counting,
  ) {
    const { where } = policy
    refusePolluted(where, DECISION_OPTIONS)
    if (typeof store?.decide !== 'function') {
      invalidPolicy(where, 'store', FORMS.store, store)
    }
    refuseOfOther(`${where}: store`, store)
    refuseOldMembers(where, store)
    noteUse(where)
    this.policy = policy
    this.store = store
    this.emitter = emitter
    this.timing = timing
    this.#fallback = new LocalFallback(where, store, unavailable, localStore)
    this.charges = new ChargeLedger(
      policy,
      (request) => this.#wake(request),
      (by, request, result) => {
        if (by === store) this.#fallback.record(request, result)
      },
      (...args) => this.#makeMeter(...args),
      resets,
      document,
    )
    const parts = propertiesOf(features, 'engine').flatMap((add) => add(this as Engine<never>, this.#fallback) ?? [])
    this.#completing = propertiesOf(parts, 'complete')
    this.#concluding = propertiesOf(parts, 'concluded')
    this.#rooms = propertiesOf(parts, 'room')
    this.#meter = propertiesOf(parts, 'meter')[0]
    this.chargeForm = propertiesOf(parts, 'chargeForm')[0]
  }

  /** Decides, and charges every limit if all have room. `op` replaces the policy's own, for a peek. */
  decide(resolved: Resolved<Subject>, cost: Cost, options: DecisionOptions, op?: Op): Verdict | Promise<Verdict> {
    const { policy, identities, priority } = resolved
    const plan = resolved.plan.calendars ? planNow(resolved.plan, this.store) : resolved.plan
    const reserved = plan.reserves && reservedFor(plan, plan.reserves, priority)
    const costs = cost === 1 && plan.takesOnes ? plan.ones : costsOf(policy.where, plan, cost, options, op, reserved)
    const needs = reserved || !plan.takesOnes ? needsOf(plan, cost, costs, reserved) : undefined
    const usedOp = op ?? (costs !== plan.ones && isPeek(cost, needs ?? costs) ? PEEK : policy.consume)
    // Not by spreading, which costs a microsecond.
    const request = requestOf(usedOp, plan, identities, costs)
    request.needs = needs
    request.permitId = plan.hasPermits ? `${holder}.${(permits++).toString(36)}` : ''
    request.fresh = options.fresh === true
    request.turn = options.turn
    if (usedOp !== PEEK) for (const complete of this.#completing) complete(request, policy, options)
    const verdict = this.#run(request, this.#basisOf(policy, priority, reserved))
    const isStrike = request.strike !== undefined && this.emitter.hasStrikeListeners
    return isStrike ? this.#emitStrike(request, verdict) : verdict
  }

  #run(request: StoreRequest, by: DecidedBy): MaybePromise<Verdict> {
    return isWatched() && this.emitter.isMeasured ? this.#measure(request, by) : this.#runOnStore(request, by)
  }

  /** A separate method, because it makes a closure: V8 would allocate for that in each call of `decide`. */
  #emitStrike(request: StoreRequest, verdict: MaybePromise<Verdict>): MaybePromise<Verdict> {
    return whenKnown(verdict, (known) => {
      this.emitter.struckByRefusal(request, known)
      return known
    })
  }

  /** The properties of a decision beside its request and result. */
  #basisOf(policy: Policy<never> | undefined, priority: number, reserved: readonly number[] | undefined): DecidedBy {
    const { charges, store } = this
    const by = this.#by
    // Another engine of the limiter may have counted a reset.
    const isSame = by && by.policy === policy && by.priority === priority && by.reserved === reserved
    if (isSame && by.resets === charges.resets.count) return by
    const decidedBy: DecidedBy = {
      charges,
      kind: 'decided',
      store,
      policy,
      priority,
      reserved,
      resets: charges.resets.count,
      list: undefined,
      took: undefined,
      tryAgainMs: undefined,
      isOfResponse: undefined,
    }
    this.#by = decidedBy
    return decidedBy
  }

  /**
   * Charges units per cell that were produced after the request was decided on, such as the bytes of its response. The verdict says
   * whether they had room. If not, `CHARGE` charges them up to the capacity of each limit, and `CONSUME` none. Neither takes units
   * that are reserved for higher priorities.
   */
  chargeMore(
    { request, by: decided }: Decision,
    costs: readonly number[],
    op: typeof CHARGE | typeof CONSUME = CHARGE,
  ): Verdict | Promise<Verdict> {
    const { identities } = request
    const plan = planNow(wholeOf(request.plan), this.store)
    const { policy, priority } = decided
    const reserved = plan.reserves && reservedFor(plan, plan.reserves, priority)
    const by = { ...this.#basisOf(policy, priority, reserved), isOfResponse: true as const }
    // Not measured: most of these decisions send no event.
    if (!reserved) return this.#runOnStore({ ...requestOf(op, plan, identities, costs), fresh: true }, by)
    const consume = (units: readonly number[]) => {
      const needs = withReserved(units, units, reserved)
      return this.#runOnStore({ ...requestOf(CONSUME, plan, identities, units), needs, fresh: true }, by)
    }
    return whenKnown(consume(costs), (verdict) => {
      if (verdict.allowed || op === CONSUME) return verdict
      // `CHARGE` knows no reserves: what is left of the others is charged instead.
      const left = costs.map((units, c) => Math.min(units, ...leftInCell(verdict, c)))
      return takesNothing(left) ? verdict : whenKnown(consume(left), () => verdict)
    })
  }

  /** Whether the store has returned promises, as stores shared by processes do. */
  get isStoreAsync(): boolean {
    return this.#isStoreAsync
  }

  readonly #makeMeter: MakeMeter = (decision, ...args) => {
    const make = this.#meter
    return make ? make(decision, ...args) : wrongPolicy(`${this.policy.where}: meter: expected a limiter with meters`)
  }

  /** Any limits may have room again. */
  wake(): void {
    this.#wake(undefined)
  }

  #wake(request: StoreRequest | undefined): void {
    for (const room of this.#rooms) room(request)
  }

  /** Forgets the charges on these identities in one tier. */
  async reset(tier: string | undefined, plan: ReadablePlan, identities: readonly string[]): Promise<void> {
    // Stores process requests in order: earlier charges are forgotten, later ones stay.
    this.charges.resets.note(tier, identities)
    this.#fallback.reset(plan, identities)
    await this.store.reset(plan, identities)
  }

  /** Whether features take every final verdict, also where nothing watches. */
  get isConcluding(): boolean {
    return this.#concluding.length > 0
  }

  /** Notifies features and listeners of a final verdict. `isRefused`: whether the request does not proceed. `context`: of HTTP. */
  conclude(verdict: Verdict, isRefused: boolean, context?: HttpContext): void {
    for (const concluded of this.#concluding) concluded(verdict, isRefused)
    if (isWatched()) this.emitter.decided(verdict, isRefused, context)
  }

  /** Measures the duration of `#runOnStore`. */
  #measure(request: StoreRequest, by: DecidedBy): Verdict | Promise<Verdict> {
    const took = { ms: 0 }
    const began = performance.now()
    return whenKnown(this.#runOnStore(request, { ...by, took }), (verdict) => {
      took.ms = performance.now() - began
      return verdict
    })
  }

  #runOnStore(request: StoreRequest, by: DecidedBy): Verdict | Promise<Verdict> {
    let result: StoreResult | Promise<StoreResult>
    try {
      result = this.store.decide(request)
    } catch (error) {
      return this.#runWithoutStore(request, by, error)
    }
    if (!(result instanceof Promise)) return verdictOf(decisionOn(request, result, by))
    return this.#whenReplied(request, result, by)
  }

  #whenReplied(request: StoreRequest, result: Promise<StoreResult>, by: DecidedBy): Promise<Verdict> {
    this.#isStoreAsync = true
    return result.then(
      (late) => {
        this.#fallback.record(request, late)
        return verdictOf(decisionOn(request, late, by))
      },
      (error) => this.#runWithoutStore(request, by, error),
    )
  }

  /** The verdict when the store could not decide. */
  #runWithoutStore(request: StoreRequest, by: DecidedBy, error: unknown): Verdict {
    if (isUnavailable(error)) return this.#fallback.decide(request, by)
    throw error
  }
}

/** The units that the limits of a cell have left, without those that are reserved. */
function leftInCell({ limits, [DECISION]: { request } }: Verdict, c: number): number[] {
  const { cellOf } = request.plan as ReadablePlan
  return limits.flatMap(({ remaining }, i) => (cellOf[i] === c ? [remaining] : []))
}
