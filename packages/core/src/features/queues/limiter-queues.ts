import type { Engine } from '../../limiter/engine.js'
import { type DecisionOptions, NO_OPTIONS } from '../../limiter/options.js'
import { type Cost, costsOf, isPeek, needsOf, reservedFor } from '../../policy/costs.js'
import type { ReadablePlan } from '../../policy/plan.js'
import type { Resolved } from '../../policy/policy.js'
import { wholeOf } from '../../policy/share.js'
import {
  type Cell,
  CONSUME,
  type Op,
  PEEK,
  type QuotaUnit,
  type Store,
  type StoreRequest,
  WAITERS,
} from '../../store/store.js'
import { arePermits } from '../../store/units.js'
import type { PartKey } from '../../util/parts.js'
import { propertyOf } from '../../util/property-of.js'
import { type MaybePromise, whenKnown } from '../../util/when-known.js'
import { DECISION, type Verdict } from '../../verdict/verdict.js'
import { BookedTurns, bookingOf } from './booked-turns.js'
import { queuesOn } from './queues-on-store.js'
import type { OnChange, WaitQueues } from './wait-queue.js'
import type { Waiter, WaitOptions } from './waiter.js'
import { Waiting } from './waiting.js'

/** Resolves the keys and limits in force of a waiting request, before each decision. `cost`: where they have another one. */
export type Resolver<Subject> = () => MaybePromise<Resolved<Subject> & { readonly cost?: Cost }>

/** The queues of a limiter: its requests and calls wait in those of all limiters of its policy on its store. */
export class LimiterQueues<Subject> {
  readonly queues: WaitQueues
  /** The turns that queueing limits have booked. */
  readonly booked: BookedTurns
  readonly #engine: Engine<Subject>

  constructor(engine: Engine<Subject>) {
    this.#engine = engine
    this.queues = queuesOn(engine.store, engine.policy.name, engine.timing)
    this.booked = new BookedTurns(engine.timing)
  }

  /** Waits in the queues of the resolved limits until admitted. The caller still waits for `delayMs` of a queueing limit. */
  async waitTurn(
    resolve: Resolver<Subject>,
    wait: WaitOptions,
    options: DecisionOptions = NO_OPTIONS,
  ): Promise<Verdict> {
    const { leave, changes } = this.queues.enter()
    try {
      const first = await resolve()
      const waiter = this.#waiterOf(first, resolve, wait, options)
      const headStartMs = wait.headStartMs ?? first.priority * (wait.ageEveryMs ?? 0)
      // By a change of the policies, or of its tier, other limits than those that refused it may be in force.
      const refusal = wait.refusal?.[DECISION].by.policy === first.policy ? wait.refusal : undefined
      const turn = { ...wait, headStartMs, refusal }
      return await new Waiting(this.queues, this.#engine.policy.where, waiter, turn, changes).admission()
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
    const engine = this.#engine
    const { store } = engine
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
      attempt: (turn, queue = 0) => {
        const before = needed
        return whenKnown(resolveNow(), (known) => {
          // A turn is one of a queue of the limits that were in force.
          const withTurn =
            turn && needed === before ? { ...fresh, turn: { ...turn, cell: cellOf(needed, queue) } } : fresh
          return engine.decide(known, needed.cost, withTurn, needed.op)
        })
      },
      peek: (queue = 0, units) =>
        whenKnown(resolveNow(), (known) => {
          const unit = needed.plan.units[cellOf(needed, queue)]
          const [own, measured] = units === undefined || unit === undefined ? [needed.cost, {}] : costIn(unit, units)
          return engine.decide(known, own, { ...fresh, ...measured }, PEEK)
        }),
      get reportOf() {
        return reportOf(store, needed)
      },
      get mayHavePermits() {
        return mayHavePermits(store, needed)
      },
      refund: (verdict) => engine.charges.refund(verdict[DECISION]),
      delayOf: (verdict, enoughMs) => {
        const booking = bookingOf(verdict)
        return booking ? this.booked.delayOf(booking, wait.client, enoughMs) : verdict.delayMs
      },
      waits: () => engine.emitter.waits(engine.policy.name),
      get isShared() {
        return engine.isStoreAsync
      },
    }
  }

  #neededBy({ plan, identities, priority }: Resolved<Subject>, cost: Cost, options: DecisionOptions): Needed {
    const reserved = plan.reserves && reservedFor(plan, plan.reserves, priority)
    const costs = costsOf(this.#engine.policy.where, plan, cost, options, undefined, reserved)
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

  /** Whether any request waits in this process. */
  get areAny(): boolean {
    return this.queues.size > 0
  }

  /** Whether other requests wait for one of these limits in this process. */
  hasWaitersFor(plan: ReadablePlan, identities: readonly string[]): boolean {
    const queues = queuesOf(plan, identities)
    return this.queues.hasAny(queues) || this.queues.areFollowing(queues)
  }

  /** Waiting requests follow these changes of the policies. */
  follow(changes: OnChange): void {
    this.queues.follow(changes)
  }

  /** Wakes the waiters of the limits of a request, as these may have room again; of none, all. */
  wake(request: StoreRequest | undefined): void {
    this.queues.wake(request && queuesOf(wholeOf(request.plan), request.identities))
  }
}

// biome-ignore lint/suspicious/noExplicitAny: of limiters for any subject
export const QUEUES: PartKey<LimiterQueues<any>> = { name: 'queues' }

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
function queuesOf({ cells, cellOf }: ReadablePlan, identities: readonly string[]): string[] {
  return cellOf.map((c) => {
    const { id, identity } = cells[c] as Cell
    return `${id}\n${identities[identity]}`
  })
}
