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
  type StoreRequest,
  type StoreResult,
} from '../../../store/store.js'
import type { Change, Layer } from '../layer.js'
import { type Asked, Count, CountTable, type Heard } from './counts.js'
import { Exchanges, type ExchangesOptions } from './exchanges.js'

export interface RelaxedOptions extends Omit<ExchangesOptions, 'onIdle' | 'now'> {
  /** Strikes for a refusal, where the plan bans. */
  readonly strikeAfter: (request: StoreRequest, result: StoreResult) => Promise<StoreResult>
}

/** Most numbers kept, which are about 32 MB: what comes beyond is decided by Redis, exactly. */
const MOST_NUMBERS = 4_000_000

/** Tables are looked through for empty ones from here on. */
const MOST_TABLES = 1000

/**
 * Decides for plans whose counts are relaxed. The first decision on an identity is Redis's, and so is a second one in the same round,
 * which fetches what is counted. From then on this process counts by itself, without a promise, and sends Redis in the
 * background what it has charged; the reply is what all have. A count that is not used for as long is dropped, and begins
 * with Redis again.
 *
 * Whatever Redis says replaces what was counted here, with what Redis cannot know yet added to it: so one process alone
 * never exceeds a limit. Several exceed it by what they admit before they have exchanged.
 */
export class Relaxed implements Layer {
  readonly #options: RelaxedOptions
  readonly #next: Layer
  readonly #exchanges: Exchanges
  readonly #tables = new Map<string, CountTable>()
  readonly #byPlan = new WeakMap<Plan, readonly CountTable[]>()
  #lastPlan: Plan | undefined
  #lastTables: readonly CountTable[] = []
  #numbers = 0
  #isClosed = false

  constructor(options: RelaxedOptions, next: Layer) {
    this.#options = options
    this.#next = next
    this.#exchanges = new Exchanges({
      ...options,
      onIdle: (count) => this.#delete(count),
      now: (count) => this.#instant(count.heard as Heard, performance.now()),
    })
  }

  decide(request: StoreRequest): StoreResult | Promise<StoreResult> {
    const { op, plan, identities } = request
    if (plan.relaxed === undefined) return this.#next.decide(request)
    if (op === REFUND) return this.#refund(request)
    if (op !== CONSUME && op !== PEEK && op !== CHARGE) return this.#next.decide(request)
    const tables = plan === this.#lastPlan ? this.#lastTables : this.#tablesOf(plan)
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
    return isOpen ? this.#decideHere(request, counts as Count[]) : this.#ask(request, tables, counts)
  }

  change(what: Change): undefined {
    if (what.kind === 'reset') this.#forget(what.plan, what.identities)
    else if (what.kind === 'forget') this.#erase(what.identity)
    else if (what.kind === 'block' || what.kind === 'unblock') this.#askFor(what.identity)
  }

  /** What was counted when Redis went away. */
  lastKnown(request: StoreRequest): StoreResult | undefined {
    if (!request.plan.relaxed) return undefined
    const counts = this.#countsOf(request)
    if (counts.some((count) => !count?.heard)) return undefined
    return this.#decideHere({ ...request, op: PEEK }, counts as Count[]) as StoreResult
  }

  /** Sends Redis what was counted. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#exchanges.close()
    for (const { counts } of this.#tables.values()) counts.clear()
    this.#numbers = 0
  }

  /** What was counted is not in the state that comes after, and must not be sent any more. */
  #forget(plan: Plan, identities: readonly string[]): void {
    if (!plan.relaxed) return
    for (const [c, { counts }] of this.#tablesOf(plan).entries()) {
      const count = counts.get(identityOf(plan, c, identities))
      if (count) this.#delete(count)
    }
  }

  /** From now on Redis is asked for an identity. */
  #askFor(identity: string): void {
    for (const { counts } of this.#tables.values()) {
      const count = counts.get(identity)
      if (count) count.isOpen = false
    }
  }

  #erase(identity: string): void {
    for (const { counts, askedOnce } of this.#tables.values()) {
      askedOnce.delete(identity)
      const count = counts.get(identity)
      if (count) this.#delete(count)
    }
  }

  #decideHere(request: StoreRequest, counts: readonly Count[]): StoreResult | Promise<StoreResult> {
    const { op, costs, needs = costs } = request
    const at = performance.now()
    let allowed = true
    let isPossible = true
    for (let c = 0; c < counts.length; c++) {
      const { local, heard } = counts[c] as Count
      const wait = local.wait(needs[c] as number, this.#instant(heard as Heard, at))
      if (wait !== 0) allowed = false
      if (wait < 0) isPossible = false
    }
    const values: number[] = []
    for (let c = 0; c < counts.length; c++) {
      const count = counts[c] as Count
      const { local, heard } = count
      const now = this.#instant(heard as Heard, at)
      const cost = costs[c] as number
      count.isUsed = true
      if (op !== PEEK && cost > 0 && (allowed || (op === CHARGE && isPossible))) {
        const latest = now + (heard as Heard).spreadMs
        local.charge(cost, now, latest)
      }
      local.report(values, now, allowed ? undefined : (needs[c] as number))
    }
    const now = this.#instant((counts[0] as Count).heard as Heard, at)
    const result = new DecidedHere(now, allowed, values)
    if (allowed || request.strike === undefined || !isPossible || op === PEEK) return result
    return this.#options.strikeAfter(request, result)
  }

  /** The report of a refusal that was charged after it. */
  #reportOf({ costs, needs = costs }: StoreRequest, counts: readonly Count[]): StoreResult {
    const values: number[] = []
    counts.forEach((count, c) => {
      count.local.report(values, this.#nowOf(count), needs[c] as number)
    })
    return { now: this.#nowOf(counts[0] as Count), allowed: false, values, offset: 0 }
  }

  /** By Redis's clock. Milliseconds are rounded down: what has not surely come, has not. */
  #instant({ now, at }: Heard, performanceNow: number): number {
    const { clock } = this.#options
    return clock ? clock() : now + Math.floor(performanceNow - at)
  }

  /** Asks Redis, once it has been sent what was counted here. */
  #ask(
    request: StoreRequest,
    tables: readonly CountTable[],
    known: readonly (Count | undefined)[],
  ): StoreResult | Promise<StoreResult> {
    const { op, plan, identities, costs } = request
    if (op === PEEK) {
      for (const count of known) if (count?.local.hasUnsent) this.#exchanges.now(count)
      return this.#next.decide(request)
    }
    const counts = known.map(
      (count, c) => count ?? this.#countAskedBefore(tables[c] as CountTable, identityOf(plan, c, identities), plan),
    )
    // What is counted here stays out of the deny cache.
    let asked: StoreRequest = { ...request, fresh: true }
    // A refusal that is to be charged is charged here, and sent.
    if (op === CHARGE && counts.every((count) => count !== undefined)) asked = { ...asked, op: CONSUME }
    let result: StoreResult | Promise<StoreResult>
    try {
      result = this.#next.decide(asked)
    } catch (error) {
      this.#deleteUnheard(counts)
      throw error
    }
    if (!(result instanceof Promise)) {
      this.#deleteUnheard(counts)
      return result
    }
    let isCountedHere = false
    const entries = counts.map((count, c): Asked | undefined => {
      if (!count) {
        const table = tables[c] as CountTable
        this.#exchanges.noteAsked(table, identityOf(plan, c, identities), (plan.relaxed as RelaxedTerms).syncEveryMs)
        return undefined
      }
      isCountedHere = true
      const cost = costs[c] as number
      // Before it is asked for: what goes to Redis first must not have it.
      if (count.local.hasUnsent || (!count.isOpen && count.underWay.length === 0)) this.#exchanges.now(count)
      count.isUsed = true
      if (count.isOpen) count.local.assume(cost, this.#nowOf(count))
      const entry = { units: cost, order: this.#options.outbox.orderOfDue, isOpen: true }
      count.asked.push(entry)
      return entry
    })
    return isCountedHere ? this.#answered(request, asked.op, counts, entries, result) : result
  }

  async #answered(
    request: StoreRequest,
    askedOp: StoreRequest['op'],
    counts: readonly (Count | undefined)[],
    entries: readonly (Asked | undefined)[],
    asked: Promise<StoreResult>,
  ): Promise<StoreResult> {
    const { op, costs } = request
    let result: StoreResult
    try {
      result = await asked
    } finally {
      // Where it failed it may have been charged. The next exchange says whether it was.
      for (const entry of entries) if (entry) entry.isOpen = false
    }
    const receipts = result.allowed ? receiptsOf(request.plan, result) : []
    const isCharged = op === CHARGE && !result.allowed && !result.block && !isImpossible(request)
    // Where Redis has charged the refusal, the next exchange says how much of it the limits have held.
    if (isCharged && askedOp === CHARGE) return result
    counts.forEach((count, c) => {
      if (!count) return
      const cost = costs[c] as number
      if (result.block) count.isOpen = false
      if (result.allowed) {
        if (cost > 0) count.local.hearReceipt?.(receipts[c] as number)
        return
      }
      // Unless an exchange has said so already.
      const i = count.asked.indexOf(entries[c] as Asked)
      if (i >= 0) count.asked.splice(i, 1)
      if (!count.heard) return
      const now = this.#nowOf(count)
      if (i >= 0) count.local.assume(-cost, now)
      if (isCharged && cost > 0) count.local.charge(cost, now, now + count.heard.spreadMs)
    })
    return isCharged && counts.every((count) => count?.isOpen) ? this.#reportOf(request, counts as Count[]) : result
  }

  /** What a verdict refunds: here while it is counted here, and else to Redis. */
  #refund(request: StoreRequest): StoreResult | Promise<StoreResult> {
    const { plan, costs } = request
    const charge = request.charge as StoreResult
    const counts = this.#countsOf(request)
    if (!counts.every((count) => count?.isOpen)) {
      for (const count of counts) if (count?.local.hasUnsent) this.#exchanges.now(count)
      return this.#next.decide(request)
    }
    const receipts = receiptsOf(plan, charge)
    counts.forEach((count, c) => {
      const cost = costs[c] as number
      if (cost === 0) return
      ;(count as Count).local.refund(cost, receipts[c] as number, this.#nowOf(count as Count))
      ;(count as Count).isUsed = true
    })
    return charge
  }

  #nowOf({ heard }: Count): number {
    return this.#instant(heard as Heard, performance.now())
  }

  #countsOf({ plan, identities }: StoreRequest): (Count | undefined)[] {
    return this.#tablesOf(plan).map(({ counts }, c) => counts.get(identityOf(plan, c, identities)))
  }

  #tablesOf(plan: Plan): readonly CountTable[] {
    let tables = this.#byPlan.get(plan)
    if (!tables || tables.some(({ isGone }) => isGone)) {
      if (this.#tables.size >= MOST_TABLES) this.#dropEmptyTables()
      tables = plan.cells.map((cell) => {
        // Limits that plans have in common are one count.
        const name = nameOf(plan, cell)
        const known = this.#tables.get(name) ?? new CountTable(plan, cell, name)
        this.#tables.set(name, known)
        return known
      })
      this.#byPlan.set(plan, tables)
    }
    this.#lastPlan = plan
    this.#lastTables = tables
    return tables
  }

  /** A new count; undefined where it is asked for the first time in this round: mostly there is no second time soon. */
  #countAskedBefore(table: CountTable, identity: string, { relaxed }: Plan): Count | undefined {
    if (!this.#exchanges.wasAsked(table, identity)) return undefined
    if (this.#isClosed || this.#numbers + table.numbers > MOST_NUMBERS) return undefined
    const count = new Count(table, identity, this.#options.slots.of(identity), relaxed?.syncEveryMs ?? 0)
    table.counts.set(identity, count)
    this.#numbers += table.numbers
    this.#exchanges.add(count)
    return count
  }

  /** Of decisions that were not asked of Redis. */
  #deleteUnheard(counts: readonly (Count | undefined)[]): void {
    for (const count of counts) {
      if (count && !count.heard && count.asked.length === 0 && count.underWay.length === 0) this.#delete(count)
    }
  }

  #delete(count: Count): void {
    const { table, identity } = count
    if (table.counts.get(identity) !== count) return
    table.counts.delete(identity)
    this.#numbers -= table.numbers
    count.isOpen = false
    count.isGone = true
    this.#exchanges.delete(count)
  }

  /** Numbers of limits may be a request's to choose, so there may be any number of tables over time. */
  #dropEmptyTables(): void {
    for (const table of this.#tables.values()) {
      if (table.counts.size > 0) continue
      table.isGone = true
      this.#tables.delete(table.name)
    }
    this.#lastPlan = undefined
  }
}

/** What a cell is charged on. By the plan that is decided: another one with the same count may have other keys before it. */
function identityOf({ cells }: Plan, c: number, identities: readonly string[]): string {
  return identities[(cells[c] as Cell).identity] as string
}

function nameOf({ policy }: Plan, { id }: Cell): string {
  return `${policy}\n${id}`
}

/** The result of a decision that was made here. */
class DecidedHere implements StoreResult {
  readonly now: number
  readonly allowed: boolean
  readonly values: readonly number[]
  readonly offset = 0

  constructor(now: number, allowed: boolean, values: readonly number[]) {
    this.now = now
    this.allowed = allowed
    this.values = values
  }

  // Of the class, so that it takes no room in each result.
  get source(): StoreResult['source'] {
    return 'relaxed'
  }
}
