import { setImmediate } from 'node:timers/promises'
import { emitBanEvicted } from '../blocks/block-events.js'
import { identityText } from '../blocks/given-blocks.js'
import { checkedListName } from '../blocks/given-list-entries.js'
import { storeLists } from '../blocks/given-lists.js'
import { KeptList } from '../blocks/kept-list.js'
import { offendersOf, type RefusalLog, refusalLog } from '../offenders/refusal-log.js'
import type { StoreBlocks } from '../store/blocks.js'
import { CELL_KINDS } from '../store/cell-kinds.js'
import { STORE_EVENTS, type StoreEvents } from '../store/events.js'
import type { StoreHealth, StoreStats } from '../store/health.js'
import { afterKind, type IdentityByKind, startOf } from '../store/identity.js'
import type { StoreListOptions, StoreLists } from '../store/list.js'
import type { OffendersQuery, OffendersReport } from '../store/offenders.js'
import {
  type Banning,
  type BanTerms,
  type BlockReport,
  type Cell,
  CHARGE,
  CONSUME,
  EVERY_POLICY,
  PEEK,
  type Plan,
  REFUND,
  RENEW,
  receiptsOf,
  STRIDE,
  type Store,
  type StoreRequest,
  type StoreResult,
  type Strike,
  type StrikeResult,
} from '../store/store.js'
import type { StoreList } from '../store/store-list.js'
import { invalidPolicy, SluiceError } from '../util/errors.js'
import { givenClock } from '../util/given-clock.js'
import { Listeners } from '../util/listeners.js'
import { knownOptions, wholeNumber } from '../util/validate.js'
import { STORE_WARNINGS, type StoreWarning, type StoreWarningsOption, Warnings } from '../util/warnings.js'
import { type Block, type BlockOf, Blocks, keyOf } from './blocks.js'
import { monotonicClock } from './clock.js'
import { MemoryBlocks } from './memory-blocks.js'
import { MemoryLists } from './memory-lists.js'
import { MemoryRefusals } from './memory-refusals.js'
import { PersistedBlocks } from './persisted-blocks.js'
import { StrikeRecords } from './strikes.js'
import type { Table } from './table.js'
import { Tables } from './tables.js'
import { Usage } from './usage.js'

export interface MemoryStoreOptions extends StoreListOptions {
  /**
   * The time in whole ms; for tests, and for programs with a clock of their own. One in seconds is rejected.
   * @default a monotonic clock aligned with UTC
   */
  readonly clock?: () => number
  /**
   * Most states kept, over all limits. One more, and a state is forgotten: of a sample of those that have not been
   * refused the least consumed one; where these are less than an eighth of all, of a sample of the others the one
   * that was refused least often. 1 to 60 million. @default 100_000
   */
  readonly maxKeys?: number
  /**
   * Most memory that states and blocks take, in bytes, as estimated from the length of keys and the size of states.
   * Beyond it states are forgotten as beyond `maxKeys`. Blocks made by hand may take half of it; one more is an error. Bans take
   * what these leave of that half, at least a sixteenth of all; for one more, the ban of the lowest rung that ends soonest goes.
   * At least 1,000,000. @default 268_435_456 (256 MiB)
   */
  readonly maxBytes?: number
  /**
   * The path of a file that blocks, bans and lists are kept in, so that they hold in the next process: read at once, written a second
   * after a change and on `close()`. A process needs a file of its own. @default none: they end with the process
   */
  readonly persist?: string
  /**
   * Whether refusals are counted by identity, for `offenders()`: each process keeps up to a megabyte for each policy that
   * refuses, and the store up to ten; beside `maxBytes`. @default false
   */
  readonly offenders?: boolean
  /** Silences warnings of this store, one by one: `{ SLUICE_PERSIST_FAILED: false }`. Takes the codes of every store. */
  readonly warnings?: StoreWarningsOption
}

const OPTIONS = ['clock', 'maxKeys', 'maxBytes', 'persist', 'offenders', 'allow', 'deny', 'warnings']
const NO_SERVER = 'it is for redisStore, as a memory store asks no server; leave it out here'
/** Options of the other store, as stores are exchanged for each other. */
const OF_REDIS = {
  prefix:
    'it is for redisStore, as a memory store shares its keys with nobody and names of policies keep them apart; leave it out here',
  timeoutMs: NO_SERVER,
  connectTimeoutMs: NO_SERVER,
  batch: NO_SERVER,
  denyCache: NO_SERVER,
  undeclaredKeys: NO_SERVER,
  onStateChange: NO_SERVER,
}

/** Where the states of a request are: the table of each cell, and each identity's key in it. */
interface Places {
  readonly tables: readonly Table[]
  readonly values: readonly string[]
}

/** Below 2^26 - 1, which a table can number; with room for what one decision adds before others go. */
const MOST_KEYS = 60_000_000
const LEAST_BYTES = 1_000_000
/** The part of `maxBytes` that blocks may take: a list of blocks that grows must not end all limiting. */
const BLOCKS_SHARE = 1 / 2
/** The part that bans may take at least: what blocks leave of their half, or this. */
const LEAST_BANS_SHARE = 1 / 16
/** The part that strikes and rungs may take: a flood of addresses that are refused must not end all limiting either. */
const STRIKES_SHARE = 1 / 4
/** States, or blocks, looked at for expiry with each new one, so that memory follows traffic without waiting for the timer. */
const SWEPT_PER_INSERT = 2
/** Keys looked at without a pause, where all are. */
const LOOKED_AT_ONCE = 2000
/** Blocks looked at before one more is refused. */
const SWEPT_WHEN_FULL = 64
/** A clock of the user's may step back; like in Redis, states then outlive their end for this long. */
const STRANGE_CLOCK_GRACE_MS = 3_600_000
/** How many the timer looks at each time, and when it comes again: sooner where many have ended. */
const SWEPT_PER_TICK = 2000
const SWEEP_EVERY_MS = 100
const SWEEP_SOON_MS = 10

/**
 * A store in this process: exact, synchronous, bounded. Nothing to set up; state ends with the process.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function memoryStore(
  options: MemoryStoreOptions = {},
): Store & { readonly blocks: StoreBlocks } & Required<Pick<Store, 'list' | 'forget' | 'offenders' | 'health' | 'on'>> {
  return new MemoryStore(options)
}

let decided = false

/** Whether any memory store of this process has decided: requests are served by then. */
export function hasDecided(): boolean {
  return decided
}

class MemoryStore implements Store {
  readonly #listeners = new Listeners<StoreEvents>('memoryStore', STORE_EVENTS)
  readonly #since = Date.now()
  readonly lists: StoreLists | undefined
  /** The blocks and bans. */
  readonly blocks: StoreBlocks = new MemoryBlocks({
    now: () => this.#clock(),
    size: () => this.#blocks.size,
    at: (index) => this.#blocks.at(index),
    find: (policy, identity) => this.#blocks.find(policy, identity),
    block: (policy, identity, forMs, reason) => this.block(policy, identity, forMs, reason),
    unblock: (policy, identity) => this.unblock(policy, identity),
    keep: ({ policy, identity, block }) => {
      this.#addBlock(policy, identity, block, this.#clock())
      this.#keepRung(policy, identity, block)
    },
    clear: () => this.#clearBlocks(),
    listeners: this.#listeners,
  })
  readonly #lists = new MemoryLists(
    () => this.#clock(),
    () => this.#persisted?.changed(),
  )
  readonly #refusalSlices = new MemoryRefusals(() => this.#clock())
  readonly #refusals: RefusalLog | undefined
  readonly noteRefusal: Store['noteRefusal']
  readonly #clock: () => number
  readonly #persisted: PersistedBlocks | undefined
  readonly #warnings: Warnings<StoreWarning>
  #isWarnedOfBans = false
  readonly #maxKeys: number
  readonly #maxBytes: number
  readonly #graceMs: number
  /** Of all states and blocks. */
  #usage = new Usage()
  #tables: Tables
  #blocks: Blocks
  #strikes: StrikeRecords
  /** Whether bans of every policy are looked for: only once there was one. */
  #bansEveryPolicy = false
  /** Tables are found quickly by plan, those of the last decision first. */
  #byPlan = new WeakMap<Plan, readonly Table[]>()
  #lastPlan: Plan | undefined
  #lastTables: readonly Table[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(options: MemoryStoreOptions) {
    knownOptions('memoryStore', options, OPTIONS, OF_REDIS)
    this.lists = storeLists('memoryStore', options)
    this.#clock = givenClock('memoryStore', options.clock) ?? monotonicClock()
    this.#refusals = refusalLog('memoryStore', options.offenders, this.#refusalSlices)
    this.noteRefusal = this.#refusals?.note
    this.#graceMs = options.clock ? STRANGE_CLOCK_GRACE_MS : 0
    const { maxKeys = 100_000, maxBytes = 268_435_456 } = options
    this.#maxKeys = wholeNumber('memoryStore', 'maxKeys', maxKeys, 1)
    if (this.#maxKeys > MOST_KEYS) invalidPolicy('memoryStore', 'maxKeys', `at most ${MOST_KEYS}`, this.#maxKeys)
    this.#maxBytes = wholeNumber('memoryStore', 'maxBytes', maxBytes, LEAST_BYTES)
    this.#tables = this.#makeTables()
    this.#blocks = this.#makeBlocks()
    this.#strikes = new StrikeRecords(new Usage(this.#usage), this.#graceMs)
    this.#warnings = new Warnings('memoryStore', STORE_WARNINGS, options.warnings, this.#listeners)
    if (options.persist !== undefined) this.#persisted = this.#persistedIn(options.persist)
  }

  /** Takes over what the file has, as far as there is room. */
  #persistedIn(file: string): PersistedBlocks {
    const persisted = new PersistedBlocks(
      file,
      () => this.blocks.export(),
      () => this.#lists,
      this.#warnings,
    )
    const now = this.#clock()
    const { blocks, listed } = persisted.read()
    for (const entry of listed) if (entry.until > now) this.#lists.named.set(entry)
    const entries = blocks.filter(({ until }) => until > now)
    const left = entries.filter(({ policy = EVERY_POLICY, kind, value, ...block }) => {
      this.#keepRung(policy, startOf(kind) + value, block)
      return !this.#setBlock(policy, startOf(kind) + value, block, now)
    })
    if (left.length > 0) persisted.warn(`maxBytes has no room for ${left.length} of ${entries.length} blocks and bans`)
    return persisted
  }

  /** `now`: an instant other than the clock's, to charge what is known as of an earlier one. */
  decide(request: StoreRequest, now = this.#clock()): StoreResult {
    const { op, plan } = request
    const values = valuesOf(request)
    const tables = plan === this.#lastPlan ? this.#lastTables : this.#tablesFor(plan)
    if (op !== CONSUME && op !== PEEK && op !== CHARGE) return this.#change(request, now)
    const block = this.#blocks.size > 0 ? this.#blocked(plan, request.identities, now) : undefined
    if (block) return { now, allowed: false, values: [], offset: 0, block: reportOf(block, now) }
    const result =
      values === undefined
        ? this.#decideAll(request, this.#placesOf(request), now)
        : tables.length === 1
          ? this.#decideOne(request, tables[0] as Table, values[0] as string, now)
          : this.#decideAll(request, { tables, values }, now)
    return request.strike === undefined || result.allowed ? result : this.#strikeRefused(request, result)
  }

  /** A refusal by a limit is a strike; one that starts a ban is a refusal by that. */
  #strikeRefused(request: StoreRequest, result: StoreResult): StoreResult {
    const terms = request.plan.ban
    if (!terms || request.op === PEEK || !isRefusedForNow(request.plan, result)) return result
    const identity = request.identities[terms.identity] as string
    const { now } = result
    const strike = { weight: 1, jitterMs: request.strike as number, reason: '' }
    const block = this.#struck(terms, identity, strike, now)
    return block ? { now, allowed: false, values: [], offset: 0, block } : result
  }

  #struck(
    terms: BanTerms,
    identity: string,
    { weight, jitterMs, reason }: Strike,
    now: number,
  ): BlockReport | undefined {
    const { scope } = terms
    const most = this.#maxBytes * STRIKES_SHARE
    this.#strikes.sweep(now, SWEPT_PER_INSERT)
    const start = this.#strikes.strike(keyOf(scope, identity), now, weight, jitterMs, terms, most)
    this.#sweepLater()
    if (this.#usage.bytes > this.#maxBytes) this.#makeRoom(now, [])
    if (!start) return undefined
    const { rung, strikes, forMs } = start
    const { forgetAfterMs } = terms
    const ban = this.#blockOf(scope, identity, now, { forMs, reason, ban: { rung, strikes, forgetAfterMs } })
    this.#setBlock(scope, identity, ban, now)
    return { ...reportOf(ban, now), hasBegun: true }
  }

  /** Of a ban that comes from elsewhere: the next one is of the next rung. */
  #keepRung(policy: string, identity: string, { until, ban }: Block): void {
    if (ban?.forgetAfterMs === undefined) return
    const { rung, forgetAfterMs } = ban
    const most = this.#maxBytes * STRIKES_SHARE
    this.#strikes.keepRung(keyOf(policy, identity), { rung, until, forgetAfterMs }, this.#clock(), most)
    this.#sweepLater()
  }

  strike(terms: BanTerms, identity: string, strike: Strike): StrikeResult {
    const now = this.#clock()
    const { policy, scope } = terms
    const held = this.#blocked({ policy, banningPolicy: scope }, [identity], now)
    if (strike.weight === 0) this.#strikes.pardon(keyOf(scope, identity))
    if (!held && strike.weight > 0) return { now, block: this.#struck(terms, identity, strike, now) }
    return { now, block: held && reportOf(held, now) }
  }

  /** `#decideAll` for one cell: nearly every decision, so it does as little as possible. */
  #decideOne(
    { op, plan, costs, needs = costs, permitId }: StoreRequest,
    table: Table,
    value: string,
    now: number,
  ): StoreResult {
    const cost = costs[0] as number
    const wait = table.look(value, now, needs[0] as number)
    const allowed = wait === 0
    const { isKept } = table
    if (allowed && op !== PEEK) {
      if (cost !== 0) table.charge(cost, permitId)
    } else if (op === CHARGE && wait > 0) chargeRefused(plan.cells[0] as Cell, table, cost, permitId)
    else if (op === CONSUME) table.heal()
    const values = plan.reports === 1 ? [0, 0, 0, 0] : new Array<number>(STRIDE * plan.reports)
    table.report(values, 0, allowed)
    if (wait > 0 && op !== PEEK) table.noteRefusal()
    const { refunded } = table
    if (table.isKept !== isKept) this.#resized(table, now)
    const { keys, bytes } = this.#usage
    if (keys > this.#maxKeys || bytes > this.#maxBytes) this.#makeRoom(now, [table])
    return refunded === 0
      ? { now, allowed, values, offset: 0 }
      : { now, allowed, values, offset: 0, refunded: [refunded] }
  }

  #decideAll(
    { op, plan, costs, needs = costs, permitId }: StoreRequest,
    { tables, values: identities }: Places,
    now: number,
  ): StoreResult {
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
    let refunded: number[] | undefined
    for (let i = 0, at = 0; i < tables.length; i++) {
      const table = tables[i] as Table
      const cost = costs[i] as number
      const { isKept } = table
      if (allowed && op !== PEEK) {
        if (cost !== 0) table.charge(cost, permitId)
      } else if (op === CHARGE && possible) chargeRefused(cells[i] as Cell, table, cost, permitId)
      else if (op === CONSUME) table.heal()
      const from = at
      at = table.report(values, from, allowed)
      if (!allowed && op !== PEEK && hasToWait(values, from, at)) table.noteRefusal()
      if (table.refunded !== 0) {
        refunded ??= tables.map(() => 0)
        refunded[i] = table.refunded
      }
      if (table.isKept !== isKept) this.#resized(table, now)
    }
    // After every table has written: evicting must not remove a state that another table has at hand.
    const { keys, bytes } = this.#usage
    if (keys > this.#maxKeys || bytes > this.#maxBytes) this.#makeRoom(now, tables)
    return refunded ? { now, allowed, values, offset: 0, refunded } : { now, allowed, values, offset: 0 }
  }

  reset(plan: Plan, identities: readonly string[]): void {
    const { tables, values } = this.#placesOf({ plan, identities })
    for (const [i, table] of tables.entries()) table.forget(values[(plan.cells[i] as Cell).identity] as string)
    const { ban } = plan
    if (ban) this.#strikes.pardon(keyOf(ban.scope, identities[ban.identity] as string))
  }

  block(policy: string, identity: string, forMs: number, reason: string): void {
    const now = this.#clock()
    this.#addBlock(policy, identity, this.#blockOf(policy, identity, now, { forMs, reason }), now)
  }

  /** A block from now on. */
  #blockOf(
    policy: string,
    identity: string,
    now: number,
    { forMs, ...more }: { forMs: number; reason: string; ban?: NonNullable<Block['ban']> },
  ): Block {
    const times = (this.#blocks.find(policy, identity)?.times ?? 0) + 1
    return { since: now, until: now + forMs, times, ...more }
  }

  #addBlock(policy: string, identity: string, block: Block, now: number): void {
    if (!this.#setBlock(policy, identity, block, now)) {
      throw new SluiceError(
        'STORE_FULL',
        `memoryStore: maxBytes: no room for one more block: ${this.#blocks.sizeByHand} take half of ${this.#maxBytes} bytes`,
      )
    }
  }

  /** Whether there is room for it: for a ban there always is. */
  #setBlock(policy: string, identity: string, block: Block, now: number): boolean {
    const room = { blocks: this.#maxBytes * BLOCKS_SHARE, leastBans: this.#maxBytes * LEAST_BANS_SHARE }
    if (policy === EVERY_POLICY) this.#bansEveryPolicy = true
    this.#blocks.sweep(now, SWEPT_PER_INSERT)
    if (!this.#blocks.set(policy, identity, block, room)) {
      this.#blocks.sweep(now, SWEPT_WHEN_FULL)
      if (!this.#blocks.set(policy, identity, block, room)) return false
    }
    if (this.#usage.bytes > this.#maxBytes) this.#makeRoom(now, [])
    this.#sweepLater()
    this.#persisted?.changed()
    return true
  }

  #makeBlocks(): Blocks {
    return new Blocks(new Usage(this.#usage), this.#graceMs, (ban) => this.#evicted(ban))
  }

  /** A ban that has ended before its time. Its rung stays, as far as there is room for that. */
  #evicted({ policy, identity, block: { until, ban } }: BlockOf): void {
    const remainingMs = until - this.#clock()
    if (remainingMs <= 0) return
    emitBanEvicted(this.#listeners, { policy, identity }, ban?.rung as number, remainingMs)
    if (this.#isWarnedOfBans) return
    this.#isWarnedOfBans = true
    const message = 'no room for all bans: those of the lowest rung that end soonest end before their time'
    this.#warnings.emit('SLUICE_BANS_EVICTED', `memoryStore: maxBytes: ${message}: raise maxBytes, or use Redis`)
  }

  unblock(policy: string, identity: string): void {
    this.#persisted?.changed()
    this.#blocks.delete(policy, identity)
    this.#strikes.forget(keyOf(policy, identity))
  }

  #clearBlocks(): void {
    for (let index = this.#blocks.size - 1; index >= 0; index--) {
      const { policy, identity } = this.#blocks.at(index)
      this.unblock(policy, identity)
    }
  }

  async close(): Promise<void> {
    await this.#persisted?.written()
    this.#clear()
  }

  on<Name extends keyof StoreEvents>(event: Name, listener: (event: StoreEvents[Name]) => unknown): () => void {
    return this.#listeners.on(event, listener)
  }

  async health(): Promise<StoreHealth> {
    return { state: 'available', since: this.#since, roundTripMs: 0, pending: 0, cause: undefined }
  }

  stats(): StoreStats {
    const { keys, bytes } = this.#usage
    return {
      kind: 'memory',
      state: 'available',
      since: this.#since,
      pending: 0,
      keys,
      bytes,
      maxKeys: this.#maxKeys,
      maxBytes: this.#maxBytes,
      blocked: this.#blocks.size,
    }
  }

  offenders(query: OffendersQuery): Promise<OffendersReport> {
    return offendersOf('memoryStore', this.#refusals, query)
  }

  async forget(identity: IdentityByKind): Promise<void> {
    const text = identityText('forget', identity)
    const start = afterKind(text)
    this.#tables.forget(text.slice(0, start), text.slice(start))
    this.#lists.forget(text)
    this.#refusals?.forget(text)
    this.#refusalSlices.forget(text)
    const end = `\n${text}`
    // From the last to the first, as the last takes the place of one that is removed.
    for (const keys of [() => this.#blocks.keys(), () => this.#strikes.keys()]) {
      let looked = 0
      for (const key of keys()) {
        if (key.endsWith(end)) this.unblock(key.slice(0, -end.length), text)
        // Lets requests run in between.
        if (++looked % LOOKED_AT_ONCE === 0) await setImmediate()
      }
    }
    this.#persisted?.changed()
    await this.#persisted?.written()
  }

  list(name: string): StoreList {
    return new KeptList(checkedListName('memoryStore: list', name), this.#lists)
  }

  clear(): void {
    this.#persisted?.changed()
    this.#clear()
  }

  #clear(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#usage = new Usage()
    this.#tables = this.#makeTables()
    this.#blocks = this.#makeBlocks()
    this.#strikes = new StrikeRecords(new Usage(this.#usage), this.#graceMs)
    this.#lists.clear()
    this.#refusals?.clear()
    this.#refusalSlices.clear()
    this.#bansEveryPolicy = false
    this.#forgetPlans()
  }

  #change(request: StoreRequest, now: number): StoreResult {
    const { tables, values: identities } = this.#placesOf(request)
    const charge = request.charge as StoreResult
    const receipts = receiptsOf(request.plan, charge)
    const values = new Array<number>(STRIDE * request.plan.reports)
    for (let i = 0, at = 0; i < tables.length; i++) {
      const table = tables[i] as Table
      const cell = request.plan.cells[i] as Cell
      const cost = request.costs[i] as number
      table.look(identities[cell.identity] as string, now, 0)
      if (request.op === RENEW) {
        table.renew(cost, request.permitId)
      } else if (request.op === REFUND || CELL_KINDS[cell.kernel].hasPermits) {
        table.refund(cost, receipts[i] as number, charge.now, request.permitId, charge.refunded?.[i] ?? 0)
      }
      at = table.report(values, at, true)
    }
    return { now, allowed: true, values, offset: 0 }
  }

  /** Of the blocks and bans that hold, the one that ends last. */
  #blocked({ policy, banningPolicy }: Banning, identities: readonly string[], now: number): Block | undefined {
    let last: Block | undefined
    const look = (block: Block | undefined) => {
      if (block && block.until > (last?.until ?? now)) last = block
    }
    for (const identity of identities) {
      look(this.#blocks.find(policy, identity))
      if (banningPolicy !== undefined) look(this.#blocks.find(banningPolicy, identity))
      if (this.#bansEveryPolicy) look(this.#blocks.find(EVERY_POLICY, identity))
      if (!this.#blocks.hasRanges) continue
      this.#blocks.ofRanges([policy, banningPolicy ?? policy, EVERY_POLICY], identity).forEach(look)
    }
    return last
  }

  /** For a request of any kinds. */
  #placesOf(request: Pick<StoreRequest, 'plan' | 'identities' | 'values'>): Places {
    const { plan, identities } = request
    const values = valuesOf(request)
    const own = this.#tablesFor(plan)
    if (values) return { tables: own, values }
    const tables = plan.cells.map((cell, c) => {
      const text = identities[cell.identity] as string
      const start = text.slice(0, afterKind(text))
      return start === plan.starts[cell.identity] ? (own[c] as Table) : this.#tableOf(plan, cell, start)
    })
    return { tables, values: identities.map((text) => text.slice(afterKind(text))) }
  }

  /** The tables of a plan for the kinds that it names. */
  #tablesFor(plan: Plan): readonly Table[] {
    decided = true
    let tables = this.#byPlan.get(plan)
    if (!tables) {
      tables = plan.cells.map((cell) => this.#tableOf(plan, cell, plan.starts[cell.identity] as string))
      this.#byPlan.set(plan, tables)
    }
    this.#lastPlan = plan
    this.#lastTables = tables
    return tables
  }

  /** Each kind has a table of its own, so that equal values of two kinds never meet. */
  #tableOf({ policy }: Plan, cell: Cell, start: string): Table {
    // Limits that are functions of the request make tables without end, with states or without.
    this.#sweepLater()
    return this.#tables.find(`${policy}:${cell.id}\n${start}`, cell)
  }

  #makeTables(): Tables {
    return new Tables(this.#usage, this.#maxKeys, this.#maxBytes, this.#graceMs)
  }

  /** Plans find their tables again, one and the same. */
  #forgetPlans(): void {
    this.#byPlan = new WeakMap()
    this.#lastPlan = undefined
    this.#lastTables = []
  }

  /** A decision has made or dropped a state of a table. */
  #resized(table: Table, now: number): void {
    table.sweep(now, SWEPT_PER_INSERT)
    this.#sweepLater()
  }

  #makeRoom(now: number, decided: readonly Table[]): void {
    if (this.#tables.makeRoom(now, decided)) this.#forgetPlans()
  }

  /** One timer for all states and blocks, only while there are any. It does not keep the process alive. */
  #sweepLater(afterMs = SWEEP_EVERY_MS): void {
    this.#timer ??= setTimeout(() => this.#sweep(), afterMs).unref()
  }

  /** Looks at a bounded number of states and blocks, so that it does not delay requests. */
  #sweep(): void {
    this.#timer = undefined
    const now = this.#clock()
    const before = this.#usage.keys + this.#blocks.size + this.#strikes.size
    const visits =
      this.#blocks.sweep(now, SWEPT_PER_TICK / 2) +
      (this.#strikes.size > 0 ? this.#strikes.sweep(now, SWEPT_PER_TICK / 4) : 0)
    if (this.#tables.sweep(now, SWEPT_PER_TICK - visits)) this.#forgetPlans()
    const freed = before - this.#usage.keys - this.#blocks.size - this.#strikes.size
    if (this.#tables.size === 0 && this.#blocks.size === 0 && this.#strikes.size === 0) return
    this.#sweepLater(freed > SWEPT_PER_TICK / 4 ? SWEEP_SOON_MS : SWEEP_EVERY_MS)
  }
}

/** A refused request is not in flight, so no one would release its permit. */
function chargeRefused({ kernel }: Cell, table: Table, cost: number, permitId: string): void {
  if (cost !== 0 && !CELL_KINDS[kernel].hasPermits) table.charge(cost, permitId)
}

/** Whether a cell, by its reports, is one that refused for now. */
function hasToWait(values: readonly number[], from: number, to: number): boolean {
  for (let at = from; at < to; at += STRIDE) if ((values[at + 1] as number) > 0) return true
  return false
}

/** Whether a refusal ends with time: a cost that can never fit is refused whatever others do. */
function isRefusedForNow({ reports }: Plan, { values }: StoreResult): boolean {
  for (let at = 0; at < STRIDE * reports; at += STRIDE) if ((values[at + 1] as number) < 0) return false
  return true
}

function reportOf({ until, reason, ban }: Block, now: number): BlockReport {
  const remainingMs = until - now
  return ban ? { reason, remainingMs, ban: { rung: ban.rung, strikes: ban.strikes } } : { reason, remainingMs }
}

/**
 * The values of a request, unless a store that passed it on has replaced the identities alone: their lengths show that
 * without a read of the texts.
 */
function valuesOf({
  plan: { starts },
  identities,
  values,
}: Pick<StoreRequest, 'plan' | 'identities' | 'values'>): readonly string[] | undefined {
  if (values === undefined) return undefined
  for (let i = 0; i < values.length; i++) {
    const start = starts[i] as string
    if ((identities[i] as string).length !== start.length + (values[i] as string).length) return undefined
  }
  return values
}
