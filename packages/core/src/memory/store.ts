import { invalidPolicy } from '../errors.js'
import { knownOptions, optionalFunction, wholeNumber } from '../limits/checks.js'
import {
  type Answer,
  type Ask,
  type BlockReport,
  type Cell,
  CHARGE,
  CONSUME,
  PEEK,
  type Plan,
  REFUND,
  RENEW,
  receiptsOf,
  STRIDE,
  type Store,
} from '../store.js'
import { BucketTable } from './bucket-table.js'
import { monotonicClock } from './clock.js'
import { ConcurrencyTable } from './concurrency-table.js'
import { CounterTable } from './counter-table.js'
import { LogTable } from './log-table.js'
import { SegmentsTable } from './segments-table.js'
import type { Table } from './table.js'

export interface MemoryStoreOptions {
  /** The time in whole ms; for tests, and for those who keep their own. @default a monotonic clock aligned with UTC */
  readonly clock?: () => number
  /**
   * Most states kept, over all limits. One more, and the least consumed of a sample is forgotten, so
   * that a flood of new identities cannot wash out one that is limited. Up to 60 million. @default 100_000
   */
  readonly maxKeys?: number
}

/** Below 2^26, which a table can number; with room for what one decision adds before others go. */
const MOST_KEYS = 60_000_000
/** States looked at for expiry with each new one, so that memory follows traffic without waiting for the timer. */
const SWEPT_PER_INSERT = 2
/** A clock of the user's may step back; like in Redis, states then outlive their end for this long. */
const STRANGE_CLOCK_GRACE_MS = 3_600_000
/** How often, and how many, while nothing new comes. */
const SWEEP_EVERY_MS = 1000
const SWEPT_PER_TICK = 20_000

/**
 * A store in this process: exact, synchronous, bounded. Nothing to set up; state ends with the process.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  return new MemoryStore(options)
}

class MemoryStore implements Store {
  readonly #clock: () => number
  readonly #maxKeys: number
  readonly #graceMs: number
  /** Tables by policy and cell; and found quickly by plan, that of the last decision first. */
  readonly #tables = new Map<string, Table>()
  #byPlan = new WeakMap<Plan, readonly Table[]>()
  #lastPlan: Plan | undefined
  #lastTables: readonly Table[] = []
  readonly #blocks = new Map<string, { until: number; reason: string }>()
  #keys = 0
  #timer: NodeJS.Timeout | undefined

  constructor(options: MemoryStoreOptions) {
    knownOptions('memoryStore', options, ['clock', 'maxKeys'])
    optionalFunction('memoryStore', 'clock', options.clock)
    this.#clock = options.clock ?? monotonicClock()
    this.#graceMs = options.clock ? STRANGE_CLOCK_GRACE_MS : 0
    const { maxKeys = 100_000 } = options
    this.#maxKeys = wholeNumber('memoryStore', 'maxKeys', maxKeys, 1)
    if (this.#maxKeys > MOST_KEYS) invalidPolicy('memoryStore', 'maxKeys', `at most ${MOST_KEYS}`, this.#maxKeys)
  }

  decide(ask: Ask): Answer {
    const now = this.#clock()
    const { op, plan } = ask
    const tables = plan === this.#lastPlan ? this.#lastTables : this.#tablesFor(plan)
    if (op !== CONSUME && op !== PEEK && op !== CHARGE) return this.#settle(ask, tables, now)
    const block = this.#blocks.size > 0 ? this.#blocked(ask, now) : undefined
    if (block) return { now, allowed: false, values: [], offset: 0, block }
    return tables.length === 1 ? this.#decideOne(ask, tables[0] as Table, now) : this.#decideAll(ask, tables, now)
  }

  /** `#decideAll` where that is one: nearly every decision, so with as little as it takes. */
  #decideOne({ op, plan, identities, costs, needs = costs, lease }: Ask, table: Table, now: number): Answer {
    const cost = costs[0] as number
    const wait = table.look(identities[0] as string, now, needs[0] as number)
    const allowed = wait === 0
    const { isKept } = table
    if (allowed && op !== PEEK) {
      if (cost !== 0) table.charge(cost, lease)
    } else if (op === CHARGE && wait > 0) chargeRefused(plan.cells[0] as Cell, table, cost, lease)
    else if (op === CONSUME) table.heal()
    const values = plan.reports === 1 ? [0, 0, 0, 0] : new Array<number>(STRIDE * plan.reports)
    table.report(values, 0, allowed)
    const { given } = table
    if (table.isKept !== isKept) this.#resized(table, now)
    if (this.#keys > this.#maxKeys) this.#makeRoom(now)
    return given === 0 ? { now, allowed, values, offset: 0 } : { now, allowed, values, offset: 0, given: [given] }
  }

  #decideAll(
    { op, plan, identities, costs, needs = costs, lease }: Ask,
    tables: readonly Table[],
    now: number,
  ): Answer {
    const { cells } = plan
    let allowed = true
    let possible = true
    for (let i = 0; i < tables.length; i++) {
      const identity = identities[(cells[i] as Cell).identity] as string
      const wait = (tables[i] as Table).look(identity, now, needs[i] as number)
      if (wait !== 0) allowed = false
      if (wait < 0) possible = false
    }

    const values = new Array<number>(STRIDE * plan.reports)
    let given: number[] | undefined
    for (let i = 0, at = 0; i < tables.length; i++) {
      const table = tables[i] as Table
      const cost = costs[i] as number
      const { isKept } = table
      if (allowed && op !== PEEK) {
        if (cost !== 0) table.charge(cost, lease)
      } else if (op === CHARGE && possible) chargeRefused(cells[i] as Cell, table, cost, lease)
      else if (op === CONSUME) table.heal()
      at = table.report(values, at, allowed)
      if (table.given !== 0) {
        given ??= tables.map(() => 0)
        given[i] = table.given
      }
      if (table.isKept !== isKept) this.#resized(table, now)
    }
    // Not before every table has written: a state that another one has in hand must not go.
    if (this.#keys > this.#maxKeys) this.#makeRoom(now)
    return given ? { now, allowed, values, offset: 0, given } : { now, allowed, values, offset: 0 }
  }

  reset(plan: Plan, identities: readonly string[]): void {
    for (const [i, table] of this.#tablesFor(plan).entries()) {
      const before = table.size
      table.forget(identities[(plan.cells[i] as Cell).identity] as string)
      this.#keys += table.size - before
    }
  }

  block(policy: string, identity: string, forMs: number, reason: string): void {
    this.#blocks.set(`${policy}:${identity}`, { until: this.#clock() + forMs, reason })
    this.#sweepLater()
  }

  unblock(policy: string, identity: string): void {
    this.#blocks.delete(`${policy}:${identity}`)
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#blocks.clear()
    this.#tables.clear()
    this.#forgetPlans()
    this.#keys = 0
  }

  #settle(ask: Ask, tables: readonly Table[], now: number): Answer {
    const charge = ask.charge as Answer
    const receipts = receiptsOf(ask.plan, charge)
    const values = new Array<number>(STRIDE * ask.plan.reports)
    for (let i = 0, at = 0; i < tables.length; i++) {
      const table = tables[i] as Table
      const cell = ask.plan.cells[i] as Cell
      const cost = ask.costs[i] as number
      const before = table.size
      table.look(ask.identities[cell.identity] as string, now, 0)
      if (ask.op === RENEW) {
        if (table instanceof ConcurrencyTable) table.renew(cost, ask.lease)
      } else if (ask.op === REFUND || cell.kernel === 'concurrency') {
        table.refund(cost, receipts[i] as number, charge.now, ask.lease, charge.given?.[i] ?? 0)
      }
      this.#keys += table.size - before
      at = table.report(values, at, true)
    }
    return { now, allowed: true, values, offset: 0 }
  }

  #blocked(ask: Ask, now: number): BlockReport | undefined {
    for (const identity of ask.identities) {
      const block = this.#blocks.get(`${ask.plan.policy}:${identity}`)
      if (block && block.until > now) return { reason: block.reason, remainingMs: block.until - now }
    }
    return undefined
  }

  #tablesFor(plan: Plan): readonly Table[] {
    let tables = this.#byPlan.get(plan)
    if (!tables) {
      tables = plan.cells.map((cell) => this.#tableOf(`${plan.policy}:${cell.id}`, cell))
      this.#byPlan.set(plan, tables)
    }
    this.#lastPlan = plan
    this.#lastTables = tables
    return tables
  }

  #tableOf(id: string, cell: Cell): Table {
    let table = this.#tables.get(id)
    if (!table) {
      table = makeTable(cell, this.#graceMs)
      this.#tables.set(id, table)
    }
    return table
  }

  /** Plans find their tables again, one and the same. */
  #forgetPlans(): void {
    this.#byPlan = new WeakMap()
    this.#lastPlan = undefined
    this.#lastTables = []
  }

  /** A decision has made or dropped a state of a table. */
  #resized(table: Table, now: number): void {
    this.#keys += table.isKept ? 1 : -1
    this.#keys -= table.sweep(now, SWEPT_PER_INSERT)
    this.#sweepLater()
  }

  /** From the table with the most states: one that has just begun would lose every new state at once, and limit nobody. */
  #makeRoom(now: number): void {
    let fullest: Table | undefined
    for (const table of this.#tables.values()) if (!fullest || table.size > fullest.size) fullest = table
    if (!fullest) return
    const before = fullest.size
    // Several, where one decision made states for several limits.
    for (let n = this.#keys - this.#maxKeys; n > 0; n--) fullest.evict(now)
    this.#keys -= before - fullest.size
  }

  /** One timer for everything, only while there is something, and never a reason for the process to stay. */
  #sweepLater(): void {
    this.#timer ??= setInterval(() => this.#sweep(), SWEEP_EVERY_MS).unref()
  }

  #sweep(): void {
    const now = this.#clock()
    let isAnyEmpty = false
    for (const [id, table] of this.#tables) {
      this.#keys -= table.sweep(now, SWEPT_PER_TICK)
      if (table.size > 0) continue
      this.#tables.delete(id)
      isAnyEmpty = true
    }
    // Limits that are functions of the request make tables without end.
    if (isAnyEmpty) this.#forgetPlans()
    for (const [id, { until }] of this.#blocks) if (until + this.#graceMs <= now) this.#blocks.delete(id)
    if (this.#keys === 0 && this.#blocks.size === 0) {
      clearInterval(this.#timer)
      this.#timer = undefined
    }
  }
}

/** A refused request is not in flight: nobody would free the place it took. */
function chargeRefused({ kernel }: Cell, table: Table, cost: number, lease: string): void {
  if (cost !== 0 && kernel !== 'concurrency') table.charge(cost, lease)
}

function makeTable({ kernel, params }: Cell, graceMs: number): Table {
  switch (kernel) {
    case 'bucket':
      return new BucketTable(params, graceMs)
    case 'log':
      return new LogTable(params, graceMs)
    case 'window':
      return params[2] === 0 ? new CounterTable(params, graceMs) : new SegmentsTable(params, graceMs)
    case 'concurrency':
      return new ConcurrencyTable(params, graceMs)
    default:
      return invalidPolicy('memoryStore', 'kernel', 'a kernel it knows', kernel)
  }
}
