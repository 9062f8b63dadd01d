import type { Change, Layer } from '../../redis/layers/layer.js'
import {
  type Cell,
  CHARGE,
  CONSUME,
  isImpossible,
  PEEK,
  type Plan,
  REFUND,
  type RelaxedTerms,
  receiptsOf,
  resultOf,
  type StoreRequest,
  type StoreResult,
} from '../../store/store.js'
import { getOrInsert } from '../../util/get-or-insert.js'
import { StatesByIdentity } from '../../util/states-by-identity.js'
import { Count, CountTable, type PendingUnits } from './counts.js'
import { Exchanges, type ExchangesOptions } from './exchanges.js'

export interface RelaxedOptions extends Omit<ExchangesOptions, 'onIdle'> {
  /** Strikes for a refusal if the plan bans. */
  readonly strikeAfter: (request: StoreRequest, result: StoreResult) => Promise<StoreResult>
}

/** Maximum memory in numbers, about 32 MB. Redis decides for further identities, exactly. */
const MAX_NUMBERS = 4_000_000

/** Number of identities with remembered dropped counts, as many as the fallback remembers results of. */
const DROPPED = 10_000

/** Number of tables from which empty ones are dropped. */
const MAX_TABLES = 1000

/**
 * Decides for plans with relaxed counts. Redis makes the first decision on an identity, and a second one in the same
 * round, which fetches the count. From then on, this process counts by itself, without a promise. It sends its charges
 * to Redis in the background; the reply is the count of all processes. A count that is unused for a round is dropped,
 * and begins with Redis again. An outage continues from it.
 *
 * Redis's report replaces the local count, plus the charges that Redis cannot know yet. One process alone therefore
 * never exceeds a limit. Several processes exceed it by the units that they admit before they exchange counts.
 */
export class Relaxed implements Layer {
  readonly #options: RelaxedOptions
  readonly #next: Layer
  readonly #exchanges: Exchanges
  readonly #tables = new Map<string, CountTable>()
  /**
   * Counts that were dropped as nothing asked for them in a round, and still have an effect. An outage continues from
   * them, unless Redis has decided on the client since.
   */
  readonly #dropped = new StatesByIdentity<Count>(DROPPED)
  #byPlan = new WeakMap<Plan, readonly CountTable[]>()
  #numbers = 0
  #isClosed = false

  constructor(options: RelaxedOptions, next: Layer) {
    this.#options = options
    this.#next = next
    this.#exchanges = new Exchanges({ ...options, onIdle: (count) => this.#drop(count) })
  }

  decide(request: StoreRequest): StoreResult | Promise<StoreResult> {
    const { op, plan, identities } = request
    if (plan.relaxed === undefined) return this.#next.decide(request)
    if (op === REFUND) return this.#refund(request)
    if (op !== CONSUME && op !== PEEK && op !== CHARGE) return this.#next.decide(request)
    const tables = this.#tablesOf(plan)
    const counts = new Array<Count | undefined>(tables.length)
    let isOpen = true
    for (let c = 0; c < tables.length; c++) {
      const count = (tables[c] as CountTable).counts.get(identityOf(plan, c, identities))
      counts[c] = count
      if (count?.isOpen !== true) isOpen = false
      else if (isOpen) {
        const cause = this.#options.breaker.causeFor(count.slot)
        if (cause) throw cause
      }
    }
    if (isOpen) return this.#countHere(request, counts as Count[])
    return this.#newerThanDropped(request, this.#passOn(request, counts))
  }

  change(what: Change): undefined {
    switch (what.kind) {
      case 'reset':
        // The state after a reset does not contain these counts, so they must not be sent.
        if (!what.plan.relaxed) return
        for (const count of this.#countsOf(what)) if (count) this.#delete(count)
        this.#forgetDropped(what)
        return
      case 'forget':
        this.#dropped.deleteAll(what.identity)
        for (const { counts, requestedOnce } of this.#tables.values()) {
          requestedOnce.delete(what.identity)
          const count = counts.get(what.identity)
          if (count) this.#delete(count)
        }
        return
      case 'ban':
      case 'block':
      case 'unblock':
        for (const { counts } of this.#tables.values()) {
          const count = counts.get(what.identity)
          if (count) count.isOpen = false // From now on, Redis decides.
        }
    }
  }

  /** The counts at the start of an outage, as a peek. */
  lastKnown(request: StoreRequest): StoreResult | undefined {
    if (!request.plan.relaxed) return undefined
    const counts = this.#tablesOf(request.plan).map((table, c) => {
      const identity = identityOf(request.plan, c, request.identities)
      const count = table.counts.get(identity)
      return count?.observed ? count : this.#dropped.find(table.policy, table.cell.id, identity)
    })
    if (counts.some((count) => !count)) return undefined
    return this.#countHere({ ...request, op: PEEK }, counts as Count[]) as StoreResult
  }

  /** Sends unsent charges to Redis. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#exchanges.close()
    for (const { counts } of this.#tables.values()) counts.clear()
    this.#dropped.clear()
    this.#numbers = 0
  }

  #countHere(request: StoreRequest, counts: readonly Count[]): StoreResult | Promise<StoreResult> {
    const { op, costs, needs = costs } = request
    const at = performance.now()
    let allowed = true
    let isPossible = true
    for (let c = 0; c < counts.length; c++) {
      const count = counts[c] as Count
      const wait = count.local.wait(needs[c] as number, count.nowAt(at))
      if (wait !== 0) allowed = false
      if (wait < 0) isPossible = false
    }
    const values: number[] = []
    for (let c = 0; c < counts.length; c++) {
      const count = counts[c] as Count
      const cost = costs[c] as number
      const now = count.nowAt(at)
      count.isUsed = true
      if (op !== PEEK && cost > 0 && (allowed || (op === CHARGE && isPossible))) count.charge(cost, now)
      count.local.report(values, now, allowed ? undefined : (needs[c] as number))
    }
    const now = (counts[0] as Count).nowAt(at)
    const result = resultOf(now, allowed, values, 0)
    result.source = 'relaxed'
    if (allowed || request.strike === undefined || !isPossible || op === PEEK) return result
    return this.#options.strikeAfter(request, result)
  }

  /** Lets Redis decide, after it has received the charges made here. */
  #passOn(request: StoreRequest, known: readonly (Count | undefined)[]): StoreResult | Promise<StoreResult> {
    const { op, plan, identities, costs } = request
    if (op === PEEK) {
      for (const count of known) if (count?.local.hasUnsent) this.#exchanges.now(count)
      return this.#next.decide(request)
    }
    const tables = this.#tablesOf(plan)
    const counts = known.map(
      (count, c) =>
        count ?? this.#countOfRepeatedRequest(tables[c] as CountTable, identityOf(plan, c, identities), plan),
    )
    // A refusal that must be charged is charged here and sent later, where Redis's count is known.
    const sentOp = op === CHARGE && counts.every((count) => count?.observed) ? CONSUME : op
    // Decisions on local counts bypass the deny cache.
    const result = Promise.resolve(this.#next.decide({ ...request, op: sentOp, fresh: true }))
    const entries = counts.map((count, c): PendingUnits | undefined => {
      if (!count) {
        const table = tables[c] as CountTable
        this.#exchanges.noteRequest(table, identityOf(plan, c, identities), (plan.relaxed as RelaxedTerms).syncEveryMs)
        return undefined
      }
      const cost = costs[c] as number
      // Before the request is counted: the exchange goes to Redis first and must not include it.
      if (count.local.hasUnsent || (!count.isOpen && count.underWay.length === 0)) this.#exchanges.now(count)
      count.isUsed = true
      if (count.isOpen) count.local.assume(cost, count.now())
      const entry = { units: cost, order: this.#options.outbox.orderOfDue, isOpen: true }
      count.pending.push(entry)
      return entry
    })
    return entries.some((entry) => entry) ? this.#afterReply(request, sentOp, counts, entries, result) : result
  }

  async #afterReply(
    request: StoreRequest,
    sentOp: StoreRequest['op'],
    counts: readonly (Count | undefined)[],
    entries: readonly (PendingUnits | undefined)[],
    reply: Promise<StoreResult>,
  ): Promise<StoreResult> {
    const { op, costs, needs = costs } = request
    let result: StoreResult
    try {
      result = await reply
    } finally {
      // A failed request may have been charged. The next exchange shows whether it was.
      for (const entry of entries) if (entry) entry.isOpen = false
    }
    const receipts = result.allowed ? receiptsOf(request.plan, result) : []
    const isCharged = op === CHARGE && !result.allowed && !result.block && !isImpossible(request)
    // If Redis has charged the refusal, the next exchange shows how much of it had room.
    if (isCharged && sentOp === CHARGE) return result
    counts.forEach((count, c) => {
      if (!count) return
      const cost = costs[c] as number
      if (result.block) count.isOpen = false
      if (result.allowed) {
        if (cost > 0) count.local.observeReceipt?.(receipts[c] as number)
        return
      }
      // Unless an exchange has already accounted for it.
      const i = count.pending.indexOf(entries[c] as PendingUnits)
      if (i >= 0) count.pending.splice(i, 1)
      if (!count.observed) return
      const now = count.now()
      if (i >= 0) count.local.assume(-cost, now)
      if (isCharged && cost > 0) count.charge(cost, now)
    })
    if (!isCharged || !counts.every((count) => count?.isOpen)) return result
    // The report after the refusal was charged.
    const values: number[] = []
    counts.forEach((count, c) => {
      ;(count as Count).local.report(values, (count as Count).now(), needs[c] as number)
    })
    return resultOf((counts[0] as Count).now(), false, values, 0)
  }

  /** Refunds the units of each count here if there is one, otherwise in Redis. */
  #refund(request: StoreRequest): StoreResult | Promise<StoreResult> {
    const { plan, costs } = request
    const charge = request.charge as StoreResult
    const counts = this.#countsOf(request)
    const receipts = receiptsOf(plan, charge)
    const costsInRedis = costs.map((cost, c) => {
      const count = counts[c]
      if (!count) return cost
      const receipt = receipts[c] as number
      if (cost === 0) return 0
      // Sent with the next exchange, which comes before the next decision by Redis.
      if (!count.isOpen) count.local.refundLater(cost, receipt)
      else {
        count.local.refund(cost, receipt, count.now())
        count.isUsed = true
      }
      return 0
    })
    return costsInRedis.some((cost) => cost > 0) ? this.#next.decide({ ...request, costs: costsInRedis }) : charge
  }

  #countsOf({ plan, identities }: Pick<StoreRequest, 'plan' | 'identities'>): (Count | undefined)[] {
    return this.#tablesOf(plan).map(({ counts }, c) => counts.get(identityOf(plan, c, identities)))
  }

  #tablesOf(plan: Plan): readonly CountTable[] {
    let tables = this.#byPlan.get(plan)
    if (!tables) {
      if (this.#tables.size >= MAX_TABLES) this.#dropEmptyTables()
      tables = plan.cells.map((cell) => {
        // Limits that several plans share are one count.
        const name = `${plan.policy}\n${cell.id}`
        return getOrInsert(this.#tables, name, () => new CountTable(plan, cell))
      })
      this.#byPlan.set(plan, tables)
    }
    return tables
  }

  /** Makes a new count; undefined on the first request in this round, as most identities have no second one soon. */
  #countOfRepeatedRequest(table: CountTable, identity: string, { relaxed }: Plan): Count | undefined {
    if (!this.#exchanges.wasRequested(table, identity)) return undefined
    if (this.#isClosed || this.#numbers + table.numbers > MAX_NUMBERS) return undefined
    const { slots, clock } = this.#options
    const count = new Count(table, identity, slots.of(identity), relaxed?.syncEveryMs ?? 0, clock)
    table.counts.set(identity, count)
    this.#numbers += table.numbers
    this.#exchanges.add(count)
    return count
  }

  #drop(count: Count): void {
    if (count.isInEffect) this.#dropped.set(count.identity, count)
    this.#delete(count)
  }

  /** A result of Redis, after which dropped counts are out of date. */
  #newerThanDropped(request: StoreRequest, result: StoreResult | Promise<StoreResult>) {
    if (!(result instanceof Promise) || !this.#isAnyDropped(request)) return result
    return result.then((late) => {
      this.#forgetDropped(request)
      return late
    })
  }

  #isAnyDropped({ plan, identities }: StoreRequest): boolean {
    if (this.#dropped.isEmpty) return false
    return plan.cells.some(({ id, identity }) => this.#dropped.find(plan.policy, id, identities[identity] as string))
  }

  #forgetDropped({ plan, identities }: Pick<StoreRequest, 'plan' | 'identities'>): void {
    for (const { id, identity } of plan.cells) this.#dropped.delete(plan.policy, id, identities[identity] as string)
  }

  #delete(count: Count): void {
    const { table, identity } = count
    if (table.counts.get(identity) !== count) return
    table.counts.delete(identity)
    this.#numbers -= table.numbers
    count.isOpen = false
    count.isGone = true
  }

  /** Requests may determine the numbers of limits, so the number of tables over time is unbounded. */
  #dropEmptyTables(): void {
    for (const [name, { counts }] of this.#tables) if (counts.size === 0) this.#tables.delete(name)
    // Plans look up their tables again.
    this.#byPlan = new WeakMap()
  }
}

/**
 * The identity that a cell is charged on. The plan of the request determines it: another plan with the same count may
 * have other keys before it.
 */
function identityOf({ cells }: Plan, c: number, identities: readonly string[]): string {
  return identities[(cells[c] as Cell).identity] as string
}
