import type { Engine } from '../../limiter/engine.js'
import type { DecisionOptions } from '../../limiter/options.js'
import { type Cost, costsOf, isPeek, needsOf, reservedFor } from '../../policy/costs.js'
import type { ReadablePlan } from '../../policy/plan.js'
import type { Resolved } from '../../policy/policy.js'
import { type Cell, CONSUME, type Op, PEEK, type QuotaUnit, type Store, WAITERS } from '../../store/store.js'
import { arePermits } from '../../store/units.js'
import { propertyOf } from '../../util/property-of.js'
import { type MaybePromise, whenKnown } from '../../util/when-known.js'
import { DECISION, type Verdict } from '../../verdict/verdict.js'
import { type BookedTurns, bookingOf } from './booked-turns.js'
import type { Waiter, WaitOptions } from './waiter.js'

/** Resolves the keys and limits in force of a waiting request, before each decision. `cost`: where they have another one. */
export type Resolver<Subject> = () => MaybePromise<Resolved<Subject> & { readonly cost?: Cost }>

/** A waiting request of a limiter. A class, as thousands may wait: an object with functions of its own takes kilobytes. */
export class RequestWaiter<Subject> implements Waiter {
  readonly #engine: Engine<Subject>
  readonly #booked: BookedTurns
  readonly #resolve: Resolver<Subject>
  readonly #wait: WaitOptions
  readonly #options: DecisionOptions
  #needed: Needed

  constructor(
    engine: Engine<Subject>,
    booked: BookedTurns,
    first: Resolved<Subject> & { readonly cost?: Cost },
    resolve: Resolver<Subject>,
    wait: WaitOptions,
    options: DecisionOptions,
  ) {
    this.#engine = engine
    this.#booked = booked
    this.#resolve = resolve
    this.#wait = wait
    this.#options = options
    this.#needed = this.#neededBy(first)
  }

  get queues(): readonly string[] {
    return this.#needed.queues
  }

  get units(): readonly number[] {
    return this.#needed.units
  }

  get isPeek(): boolean {
    return this.#needed.op === PEEK
  }

  get isShared(): boolean {
    return this.#engine.isStoreAsync
  }

  get reportOf(): Waiter['reportOf'] {
    return reportOf(this.#engine.store, this.#needed)
  }

  get mayHavePermits(): Waiter['mayHavePermits'] {
    return mayHavePermits(this.#engine.store, this.#needed)
  }

  /** Another process may have refunded, which a cached refusal does not show. A waiting request is not refused yet. */
  get #fresh(): DecisionOptions {
    return { ...this.#options, fresh: true, strikes: false }
  }

  resolve(): MaybePromise<Resolved<Subject>> {
    return whenKnown(this.#resolve(), (known) => {
      const isSame = known.plan === this.#needed.plan && known.identities === this.#needed.identities
      if (!isSame) this.#needed = this.#neededBy(known)
      return known
    })
  }

  attempt(...[turn, queue = 0]: Parameters<Waiter['attempt']>): Verdict | Promise<Verdict> {
    const before = this.#needed
    return whenKnown(this.resolve(), (known) => {
      // A turn is one of a queue of the limits that were in force.
      const withTurn =
        turn && this.#needed === before
          ? { ...this.#fresh, turn: { ...turn, cell: cellOf(this.#needed, queue) } }
          : this.#fresh
      return this.#engine.decide(known, this.#needed.cost, withTurn, this.#needed.op)
    })
  }

  peek(queue = 0, units?: number): Verdict | Promise<Verdict> {
    return whenKnown(this.resolve(), (known) => {
      const unit = this.#needed.plan.units[cellOf(this.#needed, queue)]
      const [own, measured] = units === undefined || unit === undefined ? [this.#needed.cost, {}] : costIn(unit, units)
      return this.#engine.decide(known, own, { ...this.#fresh, ...measured }, PEEK)
    })
  }

  refund(verdict: Verdict): Promise<unknown> {
    return this.#engine.charges.refund(verdict[DECISION])
  }

  delayOf(verdict: Verdict, enoughMs: number): number {
    const booking = bookingOf(verdict)
    return booking ? this.#booked.delayOf(booking, this.#wait.client, enoughMs) : verdict.delayMs
  }

  waits(): ReturnType<NonNullable<Waiter['waits']>> {
    const { onStart } = this.#wait
    if (!onStart) return this.#engine.emitter.waits(this.#engine.policy.name)
    onStart()
    return undefined
  }

  #neededBy({ plan, identities, priority, cost: own }: Resolved<Subject> & { readonly cost?: Cost }): Needed {
    const cost = own ?? this.#wait.cost
    const reserved = plan.reserves && reservedFor(plan, plan.reserves, priority)
    const costs = costsOf(this.#engine.policy.where, plan, cost, this.#options, undefined, reserved)
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
  const waiters = store[WAITERS]
  if (!sharesTurns || !waiters || !propertyOf(waiters, 'report')) return undefined
  return (queue) => ({
    ttlMs: sharesTurns.ttlMs,
    send: async (process, classes) =>
      waiters.report?.(plan, identities, { process, cell: cellOf(needed, queue) }, classes),
  })
}

function mayHavePermits(store: Store, { plan, identities, permits }: Needed): Waiter['mayHavePermits'] {
  const waiters = store[WAITERS]
  if (plan.sharesTurns || !waiters || !propertyOf(waiters, 'mayHavePermits')) return undefined
  return async () => (await waiters.mayHavePermits?.(plan, identities, permits)) !== false
}

/** The cell of a queue, by its number. */
function cellOf({ plan }: Needed, queue: number): number {
  return plan.cellOf[queue] as number
}

/** The names of the queues of each limit, by the state that counts it. */
export function queuesOf({ cells, cellOf }: ReadablePlan, identities: readonly string[]): string[] {
  return cellOf.map((c) => {
    const { id, identity } = cells[c] as Cell
    return `${id}\n${identities[identity]}`
  })
}
