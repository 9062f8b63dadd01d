import { randomUUID } from 'node:crypto'
import { BanKeeper } from '../features/bans/ban-keeper.js'
import { BAN } from '../features/bans/ban-terms.js'
import { KEPT } from '../features/charges/charge-terms.js'
import { KeptCharges } from '../features/charges/charges-by-id.js'
import { BookedTurns, bookingOf } from '../features/queues/booked-turns.js'
import { queuesOn } from '../features/queues/queues-on-store.js'
import type { OnChange, WaitQueues } from '../features/queues/wait-queue.js'
import type { Waiter, WaitOptions } from '../features/queues/waiter.js'
import { Waiting } from '../features/queues/waiting.js'
import { planNow } from '../policy/calendar/plan-now.js'
import { type Cost, type Counting, costsOf, needsOf, reservedFor, takesNothing, withReserved } from '../policy/costs.js'
import type { ReadablePlan } from '../policy/plan.js'
import type { Policy, PolicyChoice, Resolved } from '../policy/policy.js'
import { wholeOf } from '../policy/share.js'
import { NEW_CHARGE } from '../store/kept-charge.js'
import {
  type Cell,
  CHARGE,
  CONSUME,
  type Op,
  PEEK,
  type QuotaUnit,
  requestOf,
  type Store,
  type StoreRequest,
  type StoreResult,
} from '../store/store.js'
import { arePermits } from '../store/units.js'
import { noteUse, refuseOfOther } from '../util/copies.js'
import { invalidPolicy } from '../util/errors.js'
import { isWatched } from '../util/listeners.js'
import { FORMS } from '../util/option-hints.js'
import { isPropertyOf, propertyOf } from '../util/property-of.js'
import { Resets } from '../util/resets.js'
import { PROCESS_TIMING, type Timing } from '../util/timing.js'
import { refusePolluted } from '../util/validate.js'
import { type MaybePromise, whenKnown } from '../util/when-known.js'
import { type DecidedBy, type Decision, decisionOn, refusedBy } from '../verdict/decision.js'
import { DECISION, served, type Verdict, verdictOf } from '../verdict/verdict.js'
import { ChargeLedger } from './charge-ledger.js'
import type { Composition } from './composition.js'
import { isUnavailable, LocalFallback, type UnavailableOptions } from './fallback.js'
import type { LimiterEmitter, RequestPath } from './limiter-emitter.js'
import { DECISION_OPTIONS, type DecisionOptions, NO_OPTIONS } from './options.js'

/** A counter. Permit ids are unique over processes and restarts: the id of this process, and a number. */
let permits = 0
const holder = randomUUID().slice(-12)

/** Resolves the keys and limits in force of a waiting request, before each decision. `cost`: where they have another one. */
export type Resolver<Subject> = () => MaybePromise<Resolved<Subject> & { readonly cost?: Cost }>

/**
 * Decides by one policy on one store, beneath the limiter that users call and the guard of requests. It takes the resolved
 * policy, and knows neither requests nor lists.
 */
export class Engine<Subject> {
  readonly policy: PolicyChoice<Subject>
  readonly store: Store
  readonly emitter: LimiterEmitter
  readonly charges: ChargeLedger
  /** Undefined where the policy keeps no charges. */
  readonly kept: KeptCharges | undefined
  /** Undefined where the policy has no `ban`. */
  readonly bans: BanKeeper<Subject> | undefined
  /** The turns that queueing limits have booked. */
  readonly booked: BookedTurns
  /** The time of its waits. */
  readonly timing: Timing
  readonly #fallback: LocalFallback
  readonly #queues: WaitQueues
  #isStoreAsync = false
  /** The last decision's, as the next one is nearly always the same. */
  #by: DecidedBy | undefined

  /**
   * @param queues those of several engines with another time than that of the process
   * @param resets those of their keys
   * @param document all policies of the document that the policy is of
   * @throws SluiceError `INVALID_POLICY`
   */
  constructor(
    policy: PolicyChoice<Subject>,
    store: Store,
    unavailable: UnavailableOptions,
    emitter: LimiterEmitter,
    { localStore }: Composition,
    timing = PROCESS_TIMING,
    queues?: WaitQueues,
    resets = new Resets(),
    document?: Counting,
  ) {
    const { where } = policy
    refusePolluted(where, DECISION_OPTIONS)
    if (typeof store?.decide !== 'function') {
      invalidPolicy(where, 'store', FORMS.store, store)
    }
    const keeps = policy.parts.get(KEPT)
    if (keeps && !isPropertyOf(store, 'keptCharge')) {
      invalidPolicy(where, 'charges', 'none on this store, which keeps no charges', keeps)
    }
    refuseOfOther(`${where}: store`, store)
    noteUse(where)
    this.policy = policy
    this.store = store
    this.emitter = emitter
    this.timing = timing
    this.booked = new BookedTurns(timing)
    this.#queues = queues ?? queuesOn(store, policy.name)
    this.#fallback = new LocalFallback(where, store, unavailable, localStore)
    this.charges = new ChargeLedger(
      policy,
      ({ plan, identities }) => this.#queues.wake(queuesOf(wholeOf(plan), identities)),
      (by, request, result) => {
        if (by === store) this.#fallback.record(request, result)
      },
      (decision, costs, op) => this.chargeMore(decision, costs, op),
      (refusal, isCut) => this.conclude(isCut ? refusal : served(refusal), isCut),
      resets,
      document,
    )
    this.kept = keeps && new KeptCharges(policy, [() => this.#fallback.local, () => store], this.charges)
    this.bans = policy.parts.get(BAN) && new BanKeeper(policy, store, this.#fallback, emitter)
  }

  /** Decides, and charges every limit if all have room. `op` replaces the policy's own, for a peek. */
  decide(resolved: Resolved<Subject>, cost: Cost, options: DecisionOptions, op?: Op): Verdict | Promise<Verdict> {
    const { policy, identities, priority } = resolved
    const plan = resolved.plan.calendars ? planNow(resolved.plan, this.store) : resolved.plan
    const reserved = plan.reserves && reservedFor(plan, plan.reserves, priority)
    const costs = cost === 1 && plan.takesOnes ? plan.ones : costsOf(policy.where, plan, cost, options, op, reserved)
    const needs = reserved || !plan.takesOnes ? needsOf(plan, cost, costs, reserved) : undefined
    const own = op ?? (costs !== plan.ones && isPeek(cost, needs ?? costs) ? PEEK : policy.consume)
    const strike =
      plan.ban && options.strikes !== false && own !== PEEK
        ? this.bans?.strikeOf(policy.tier, plan.ban, identities)
        : undefined
    // Not by spreading, which costs a microsecond.
    const request = requestOf(own, plan, identities, costs)
    request.needs = needs
    request.permitId = plan.hasPermits ? `${holder}.${(permits++).toString(36)}` : ''
    request.fresh = options.fresh === true
    request.strike = strike
    request.turn = options.turn
    if (plan.keeps && own !== PEEK) request.keep = { ...NEW_CHARGE, forMs: plan.keeps.forMs }
    const verdict = this.#decideOn(request, this.#decidedBy(policy, priority, reserved))
    return strike === undefined || !this.emitter.hasStrikeListeners ? verdict : this.#emitStrike(request, verdict)
  }

  #decideOn(request: StoreRequest, by: DecidedBy): MaybePromise<Verdict> {
    return isWatched() && this.emitter.isMeasured ? this.#measure(request, by) : this.#decideByStore(request, by)
  }

  /** A separate method, because it makes a closure: V8 would allocate for that in each call of `decide`. */
  #emitStrike(request: StoreRequest, verdict: MaybePromise<Verdict>): MaybePromise<Verdict> {
    return whenKnown(verdict, (known) => {
      this.emitter.struckByRefusal(request, known)
      return known
    })
  }

  /** The properties of a decision beside its request and result. */
  #decidedBy(policy: Policy<never> | undefined, priority: number, reserved: readonly number[] | undefined): DecidedBy {
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
    const by = { ...this.#decidedBy(policy, priority, reserved), isOfResponse: true as const }
    // Not measured: most of these decisions send no event.
    if (!reserved) return this.#decideByStore({ ...requestOf(op, plan, identities, costs), fresh: true }, by)
    const consume = (units: readonly number[]) => {
      const needs = withReserved(units, units, reserved)
      return this.#decideByStore({ ...requestOf(CONSUME, plan, identities, units), needs, fresh: true }, by)
    }
    return whenKnown(consume(costs), (verdict) => {
      if (verdict.allowed || op === CONSUME) return verdict
      // `CHARGE` knows no reserves: what is left of the others is charged instead.
      const left = costs.map((units, c) => Math.min(units, ...leftInCell(verdict, c)))
      return takesNothing(left) ? verdict : whenKnown(consume(left), () => verdict)
    })
  }

  /** Waits in the queues of the resolved limits until admitted. The caller still waits for `delayMs` of a queueing limit. */
  async waitTurn(
    resolve: Resolver<Subject>,
    wait: WaitOptions,
    options: DecisionOptions = NO_OPTIONS,
  ): Promise<Verdict> {
    const { leave, changes } = this.#queues.enter()
    try {
      const first = await resolve()
      const waiter = this.#waiterOf(first, resolve, wait, options)
      const headStartMs = wait.headStartMs ?? first.priority * (wait.ageEveryMs ?? 0)
      // By a change of the policies, or of its tier, other limits than those that refused it may be in force.
      const refusal = wait.refusal?.[DECISION].by.policy === first.policy ? wait.refusal : undefined
      const own = { ...wait, headStartMs, refusal }
      return await new Waiting(this.#queues, this.policy.where, waiter, own, changes).admission()
    } finally {
      leave()
    }
  }

  #waiterOf(
    first: Resolved<Subject> & { readonly cost?: Cost },
    resolve: Resolver<Subject>,
    wait: WaitOptions,
    options: DecisionOptions,
  ): Waiter {
    // Another process may have refunded, which a cached refusal does not show. A waiting request is not refused yet.
    const fresh: DecisionOptions = { ...options, fresh: true, strikes: false }
    const engine = this
    const { store } = this
    let needed = this.#neededBy(first, first.cost ?? wait.cost, options)
    const resolveNow: Resolver<Subject> = () =>
      whenKnown(resolve(), (known) => {
        const isSame = known.plan === needed.plan && known.identities === needed.identities
        if (!isSame) needed = this.#neededBy(known, known.cost ?? wait.cost, options)
        return known
      })
    return {
      get queues() {
        return needed.queues
      },
      get units() {
        return needed.units
      },
      get isPeek() {
        return needed.op === PEEK
      },
      resolve: resolveNow,
      decide: (turn, queue = 0) => {
        const before = needed
        return whenKnown(resolveNow(), (known) => {
          // A turn is one of a queue of the limits that were in force.
          const withTurn =
            turn && needed === before ? { ...fresh, turn: { ...turn, cell: cellOf(needed, queue) } } : fresh
          return this.decide(known, needed.cost, withTurn, needed.op)
        })
      },
      peek: (queue = 0, units) =>
        whenKnown(resolveNow(), (known) => {
          const unit = needed.plan.units[cellOf(needed, queue)]
          const [own, measured] = units === undefined || unit === undefined ? [needed.cost, {}] : costIn(unit, units)
          return this.decide(known, own, { ...fresh, ...measured }, PEEK)
        }),
      get reportOf() {
        return reportOf(store, needed)
      },
      get mayHavePermits() {
        return mayHavePermits(store, needed)
      },
      refund: (verdict) => this.charges.refund(verdict[DECISION]),
      delayOf: (verdict, enoughMs) => {
        const booking = bookingOf(verdict)
        return booking ? this.booked.delayOf(booking, wait.client, enoughMs) : verdict.delayMs
      },
      waits: () => this.emitter.waits(this.policy.name),
      get isShared() {
        return engine.isStoreAsync
      },
    }
  }

  #neededBy({ plan, identities, priority }: Resolved<Subject>, cost: Cost, options: DecisionOptions): Needed {
    const reserved = plan.reserves && reservedFor(plan, plan.reserves, priority)
    const costs = costsOf(this.policy.where, plan, cost, options, undefined, reserved)
    const needs = needsOf(plan, cost, costs, undefined) ?? costs
    return {
      plan,
      identities,
      cost,
      queues: queuesOf(plan, identities),
      units: plan.cellOf.map((c) => needs[c] as number),
      op: isPeek(cost, needs) ? PEEK : CONSUME,
      permits: costs.find((_, c) => arePermits(plan.units[c] as QuotaUnit)) ?? 0,
    }
  }

  /** Whether the store has returned promises, as stores shared by processes do. */
  get isStoreAsync(): boolean {
    return this.#isStoreAsync
  }

  /** Whether any request waits in this process. */
  get hasQueues(): boolean {
    return this.#queues.size > 0
  }

  /** Whether other requests wait for one of these limits in this process. */
  hasWaitersFor(plan: ReadablePlan, identities: readonly string[]): boolean {
    const queues = queuesOf(plan, identities)
    return this.#queues.hasAny(queues) || this.#queues.areFollowing(queues)
  }

  /** Waiting requests follow these changes of the policies. */
  follow(changes: OnChange): void {
    this.#queues.follow(changes)
  }

  /** Wakes all waiters, as there may be room. */
  wake(): void {
    this.#queues.wake()
  }

  /** Forgets the charges on these identities in one tier. */
  async reset(tier: string | undefined, plan: ReadablePlan, identities: readonly string[]): Promise<void> {
    // Stores process requests in order: earlier charges are forgotten, later ones stay.
    this.charges.resets.note(tier, identities)
    this.#fallback.reset(plan, identities)
    await this.store.reset(plan, identities)
  }

  /** Notifies the listeners of a final verdict. `isRefused`: whether the request does not proceed. `context`: of HTTP. */
  conclude(verdict: Verdict, isRefused: boolean, context?: RequestPath): void {
    const noteRefusal = isRefused && verdict.kind === 'decided' ? propertyOf(this.store, 'noteRefusal') : undefined
    if (noteRefusal) {
      for (const [policy, identities] of refusedBy(verdict[DECISION])) noteRefusal(policy, [...identities])
    }
    if (isWatched()) this.emitter.decided(verdict, isRefused, context)
  }

  /** Measures the duration of `#decideByStore`. */
  #measure(request: StoreRequest, by: DecidedBy): Verdict | Promise<Verdict> {
    const took = { ms: 0 }
    const began = performance.now()
    return whenKnown(this.#decideByStore(request, { ...by, took }), (verdict) => {
      took.ms = performance.now() - began
      return verdict
    })
  }

  #decideByStore(request: StoreRequest, by: DecidedBy): Verdict | Promise<Verdict> {
    let result: StoreResult | Promise<StoreResult>
    try {
      result = this.store.decide(request)
    } catch (error) {
      return this.#decideWithout(request, by, error)
    }
    if (!(result instanceof Promise)) return verdictOf(decisionOn(request, result, by))
    return this.#decideLater(request, result, by)
  }

  #decideLater(request: StoreRequest, result: Promise<StoreResult>, by: DecidedBy): Promise<Verdict> {
    this.#isStoreAsync = true
    return result.then(
      (late) => {
        this.#fallback.record(request, late)
        return verdictOf(decisionOn(request, late, by))
      },
      (error) => this.#decideWithout(request, by, error),
    )
  }

  /** The verdict when the store could not decide. */
  #decideWithout(request: StoreRequest, by: DecidedBy, error: unknown): Verdict {
    if (isUnavailable(error)) return this.#fallback.decide(request, by)
    throw error
  }
}

/** The units that the limits of a cell have left, without those that are reserved. */
function leftInCell({ limits, [DECISION]: { request } }: Verdict, c: number): number[] {
  const { cellOf } = request.plan as ReadablePlan
  return limits.flatMap(({ remaining }, i) => (cellOf[i] === c ? [remaining] : []))
}

/** Whether a request takes nothing. Units that are named as 0 may be settled above that. */
function isPeek(cost: Cost, needs: readonly number[]): boolean {
  return typeof cost === 'number' && takesNothing(needs)
}

/** A cost of so many units of one kind, with the sizes of bodies. */
function costIn(unit: QuotaUnit, units: number): [Cost, Partial<DecisionOptions>] {
  if (unit === 'content-bytes') return [1, { bytes: units }]
  return [unit === 'requests' ? units : { named: new Map([[unit, units]]), ofLimits: undefined }, {}]
}

/** What a waiting request takes of the limits in force. */
interface Needed extends Pick<Waiter, 'queues' | 'units'> {
  readonly plan: ReadablePlan
  readonly identities: readonly string[]
  readonly cost: Cost
  readonly op: Op
  readonly permits: number
}

function reportOf(store: Store, needed: Needed): Waiter['reportOf'] {
  const { plan, identities } = needed
  const { sharesTurns } = plan
  if (!sharesTurns || !isPropertyOf(store, 'reportWaiting')) return undefined
  return (queue) => ({
    ttlMs: sharesTurns.ttlMs,
    send: async (process, classes) =>
      store.reportWaiting?.(plan, identities, { process, cell: cellOf(needed, queue) }, classes),
  })
}

function mayHavePermits(store: Store, { plan, identities, permits }: Needed): Waiter['mayHavePermits'] {
  if (!isPropertyOf(store, 'mayHavePermits') || plan.sharesTurns) return undefined
  return async () => (await store.mayHavePermits?.(plan, identities, permits)) !== false
}

/** The cell of a queue, by its number. */
function cellOf({ plan }: Needed, queue: number): number {
  return plan.cellOf[queue] as number
}

/** The names of the queues of each limit, by the state that counts it. */
function queuesOf({ cells, cellOf }: ReadablePlan, identities: readonly string[]): string[] {
  return cellOf.map((c) => {
    const { id, identity } = cells[c] as Cell
    return `${id}\n${identities[identity]}`
  })
}
