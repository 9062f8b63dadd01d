import { identityText } from '../blocks/given-blocks.js'
import { emitBanEvicted } from '../features/bans/block-events.js'
import type { BlockOf } from '../features/bans/block-table.js'
import { KeptBlocks } from '../features/bans/kept-blocks.js'
import { Bans, reportOf } from '../features/bans/memory-bans.js'
import { MemoryBlocks, movedBy } from '../features/bans/memory-blocks.js'
import { PersistedBlocks } from '../features/bans/persisted-blocks.js'
import { KeptRecords } from '../features/charges/memory-charges.js'
import { checkedListName } from '../features/lists/given-list-entries.js'
import { storeLists } from '../features/lists/given-lists.js'
import { KeptList } from '../features/lists/kept-list.js'
import { MemoryLists } from '../features/lists/memory-lists.js'
import { MemoryRefusals } from '../features/offenders/memory-refusals.js'
import { offendersOf, type RefusalLog, refusalLog } from '../features/offenders/refusal-log.js'
import { ChangeLog } from '../features/records/change-log.js'
import { MemoryChanges } from '../features/records/memory-changes.js'
import { RecentRefusals } from '../features/records/recent-refusals.js'
import type { StoreBlocks } from '../store/blocks.js'
import { CELL_KINDS } from '../store/cell-kinds.js'
import type { StoreChanges } from '../store/changes.js'
import { STORE_EVENTS, type StoreEvents } from '../store/events.js'
import type { StoreHealth, StoreStats } from '../store/health.js'
import { afterKind, type IdentityByKind } from '../store/identity.js'
import type { StoreListOptions, StoreLists } from '../store/list.js'
import type { OffendersQuery, OffendersReport } from '../store/offenders.js'
import {
  type BanTerms,
  type Cell,
  CHARGE,
  CONSUME,
  DEBIT,
  type KeptCharge,
  PEEK,
  type Plan,
  REFUND,
  RENEW,
  receiptsOf,
  refusalBy,
  resultOf,
  STRIDE,
  type Store,
  type StoreRequest,
  type StoreResult,
  type Strike,
  type StrikeResult,
} from '../store/store.js'
import type { StoreList } from '../store/store-list.js'
import { COPY, THIS_COPY } from '../util/copies.js'
import { givenClock } from '../util/given-clock.js'
import { Listeners } from '../util/listeners.js'
import { fieldsOf } from '../util/property-of.js'
import { knownOptions, wholeNumber } from '../util/validate.js'
import { STORE_WARNINGS, type StoreWarning, type StoreWarningsOption, Warnings } from '../util/warnings.js'
import { monotonicClock, WallClock } from './clock.js'
import { givenValue, States } from './states.js'
import { Sweeper } from './sweeper.js'
import type { Table } from './table.js'
import type { Bounds } from './tables.js'

export interface MemoryStoreOptions extends StoreListOptions {
  /**
   * The time in whole ms; for tests, and for programs with their own clock. A clock in seconds is rejected.
   * @default a monotonic clock, and for dates the wall clock
   */
  readonly clock?: () => number
  /**
   * Maximum of states, over all limits. Each state beyond it evicts another.
   *
   * The evicted state is the one with the smallest use among a sample of those that have not been refused. Where these are less
   * than an eighth of all, it is the one with the fewest refusals among a sample of the others. 1 to 60 million.
   * @default 100_000
   */
  readonly maxKeys?: number
  /**
   * Maximum memory of states and blocks, in bytes, as estimated from the length of keys and the size of states.
   *
   * Beyond it states are evicted as beyond `maxKeys`. Blocks made by hand may take half of it; one more is an error.
   * Bans take the rest of that half, at least a sixteenth of all. Beyond that, the ban of the lowest rung that ends
   * soonest is evicted. At least 1,000,000.
   * @default 268_435_456 (256 MiB)
   */
  readonly maxBytes?: number
  /**
   * The path of a file that stores blocks, bans and lists for the next process.
   *
   * It is read at once, and written a second after a change and on `close()`. Each process needs its own file.
   * @default none: they end with the process
   */
  readonly persist?: string
  /**
   * Whether to count refusals by identity, for `offenders()`.
   *
   * Each process holds up to a megabyte for each policy that refuses, and the store up to ten, in addition to
   * `maxBytes`.
   * @default false
   */
  readonly offenders?: boolean
  /**
   * Silences warnings of this store, one by one: `{ SLUICE_PERSIST_FAILED: false }`.
   *
   * Takes the codes of every store.
   */
  readonly warnings?: StoreWarningsOption
}

const OPTIONS = ['clock', 'maxKeys', 'maxBytes', 'persist', 'offenders', 'allow', 'deny', 'warnings']
const NO_SERVER = 'it is for redisStore, as a memory store has no server; leave it out here'
/** Options of the other store, for errors: stores are exchanged for each other. */
const OF_REDIS = {
  prefix:
    'it is for redisStore, as a memory store does not share its keys and policy names separate them; leave it out here',
  timeout: NO_SERVER,
  connectTimeout: NO_SERVER,
  batch: NO_SERVER,
  denyCache: NO_SERVER,
  undeclaredKeys: NO_SERVER,
  onStateChange: NO_SERVER,
  report: NO_SERVER,
}

/** Maximum of keys. Below 2^26 - 1, which a table can number, with room for those that one decision adds before evictions. */
const MAX_KEYS = 60_000_000
const LEAST_BYTES = 1_000_000
/** A clock of the user may step back. As in Redis, states then outlive their end for this long. */
const STRANGE_CLOCK_GRACE_MS = 3_600_000
/**
 * A store in this process: exact, synchronous, bounded. Nothing to set up; state ends with the process.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function memoryStore(
  options: MemoryStoreOptions = {},
): Store & { readonly blocks: StoreBlocks; readonly changes: StoreChanges } & Required<
    Pick<Store, 'list' | 'forget' | 'offenders' | 'health' | 'on'>
  > {
  knownOptions('memoryStore', options, OPTIONS, OF_REDIS)
  return new MemoryStore(fieldsOf(options, OPTIONS))
}

/** A store without options but a clock, which is made at any time: no name on `Object.prototype` is one of its options. */
export function memoryStoreBy(clock: (() => number) | undefined): Store {
  return new MemoryStore(fieldsOf({ clock }, ['clock']))
}

let decided = false

/** Whether any memory store of this process has decided: the process serves requests by then. */
export function hasDecided(): boolean {
  return decided
}

class MemoryStore implements Store {
  readonly clock: (() => number) | undefined
  readonly lists: StoreLists | undefined
  readonly blocks: StoreBlocks
  readonly changes: ChangeLog
  readonly noteRefusal: Store['noteRefusal']
  /** @internal */
  readonly lastRefusals = new RecentRefusals()
  readonly #listeners = new Listeners<StoreEvents>('memoryStore', STORE_EVENTS)
  readonly #since = Date.now()
  readonly #clock: () => number
  readonly #bounds: Bounds
  readonly #lists = new MemoryLists(
    () => this.#bounds.wall.at(this.#clock()),
    () => this.#persisted?.changed(),
  )
  readonly #refusalSlices = new MemoryRefusals(() => this.#clock())
  readonly #changes = new MemoryChanges(() => this.#bounds.wall.at(this.#clock()))
  readonly #refusals: RefusalLog | undefined
  readonly #persisted: PersistedBlocks | undefined
  readonly #warnings: Warnings<StoreWarning>
  #isWarnedOfBans = false
  readonly #sweeper = new Sweeper(() => this.#sweptAt(), [() => this.#bans, () => this.#kept, () => this.#states])
  #states: States
  #bans: Bans
  #kept: KeptRecords

  constructor(options: MemoryStoreOptions) {
    this.lists = storeLists('memoryStore', options)
    this.clock = givenClock('memoryStore', options.clock)
    this.#clock = this.clock ?? monotonicClock()
    this.#refusals = refusalLog('memoryStore', options.offenders, this.#refusalSlices)
    this.noteRefusal = this.#refusals?.note
    this.#bounds = boundsOf(options, this.#clock)
    this.#states = this.#makeStates()
    this.#bans = this.#makeBans()
    this.#kept = new KeptRecords(this.#states)
    const blocks = new MemoryBlocks(this.#clock, this.#bounds.wall, () => this.#bans)
    this.blocks = new KeptBlocks(blocks, this.#listeners)
    this.changes = new ChangeLog(this.#changes, this.#listeners)
    this.#warnings = new Warnings('memoryStore', STORE_WARNINGS, options.warnings, this.#listeners)
    if (options.persist !== undefined) this.#persisted = this.#persistedIn(options.persist)
  }

  get [COPY](): string {
    return THIS_COPY
  }

  #makeStates(): States {
    return new States(this.#bounds, () => this.#sweeper.later())
  }

  #makeBans(): Bans {
    return new Bans(this.#states, {
      changed: () => this.#persisted?.changed(),
      evicted: (ban) => this.#evicted(ban),
    })
  }

  /** Adds the entries of the file, as far as there is room. */
  #persistedIn(file: string): PersistedBlocks {
    const persisted = new PersistedBlocks(
      file,
      () => this.blocks.export(),
      () => this.#lists,
      this.#warnings,
    )
    const now = this.#clock()
    const ahead = this.#bounds.wall.aheadAt(now)
    const { blocks, listed } = persisted.read()
    for (const entry of listed) if (entry.until > now + ahead) this.#lists.named.set(entry)
    const entries = blocks.map((entry) => movedBy(-ahead, entry)).filter(({ until }) => until > now)
    const left = this.#bans.restore(entries, now)
    if (left > 0) persisted.warn(`maxBytes has no room for ${left} of ${entries.length} blocks and bans`)
    return persisted
  }

  #sweptAt(): number {
    const now = this.#clock()
    this.#persisted?.follow(this.#bounds.wall.aheadAt(now))
    return now
  }

  /**
   * `now`: replaces the clock's time, to charge a use that is known from an earlier instant.
   *
   * Decides for one cell itself: nearly every decision, so that does as little as possible. In parts, V8 would inline it where
   * verdicts are made, and then not inline those: 3 % of a decision.
   */
  decide(request: StoreRequest, now = this.#clock()): StoreResult {
    const { op, plan, costs, needs = costs, permitId } = request
    decided = true
    if (request.keep) return this.#decideKept(request, now)
    if (op !== CONSUME && op !== PEEK && op !== CHARGE) return this.#change(request, now)
    const block = this.#bans.blocks.size > 0 ? this.#bans.holding(plan, request.identities, now) : undefined
    if (block) return refusalBy(reportOf(block, now), now)
    const value = givenValue(request)
    const tables = this.#states.tablesFor(plan)
    if (value === undefined || tables.length !== 1) return this.#decideAll(request, now)
    const table = tables[0] as Table
    const cost = costs[0] as number
    const wait = table.look(value, now, needs[0] as number)
    // The decision: `look` has read the state, and nothing is written so far.
    const allowed = wait === 0
    const { hasState } = table
    if (allowed && op !== PEEK) {
      if (cost !== 0) table.charge(cost, permitId)
    } else if (op === CHARGE && wait > 0) chargeRefused(plan.cells[0] as Cell, table, cost, permitId)
    else if (op === CONSUME) table.heal()
    const values = plan.reports === 1 ? [0, 0, 0, 0] : new Array<number>(STRIDE * plan.reports)
    table.report(values, 0, allowed)
    if (wait > 0 && op !== PEEK) table.noteRefusal()
    const result = resultOf(now, allowed, values, 0)
    if (table.refunded !== 0) result.refunded = [table.refunded]
    if (table.hasState !== hasState) this.#states.resized(table, now)
    if (this.#states.areTooMany) this.#states.makeRoom(now, tables)
    return request.strike === undefined || allowed ? result : this.#strikeRefused(request, result)
  }

  /** Decides, and keeps an admitted charge; or changes a kept one, as far as its record says. */
  #decideKept(request: StoreRequest, now: number): StoreResult {
    const { op } = request
    if (op === CONSUME || op === PEEK || op === CHARGE) {
      const result = this.decide({ ...request, keep: undefined }, now)
      if (!result.allowed || op === PEEK) return result
      return { ...result, id: this.#kept.keep(request, result) }
    }
    const { outcome, taken } = this.#kept.take(request, now)
    const costs = request.costs.map((cost, c) => (taken[c] ? cost : 0))
    const result = this.#change({ ...request, costs, keep: undefined }, now)
    return { ...result, outcome: result.outcome ?? outcome }
  }

  keptCharge(policy: string, id: string): readonly KeptCharge[] {
    const charge = this.#kept.find(policy, id, this.#clock())
    return charge ? [charge] : []
  }

  /** A refusal by a limit is a strike. If that starts a ban, the ban becomes the reason. */
  #strikeRefused(request: StoreRequest, result: StoreResult): StoreResult {
    const terms = request.plan.ban
    if (!terms || request.op === PEEK || !isRefusedForNow(request.plan, result)) return result
    const identity = request.identities[terms.identity] as string
    const { now } = result
    const strike = { weight: 1, jitterMs: request.strike as number, reason: '' }
    const block = this.#bans.struck(terms, identity, strike, now)
    return block ? refusalBy(block, now) : result
  }

  strike(terms: BanTerms, identity: string, strike: Strike): StrikeResult {
    return this.#bans.strike(terms, identity, strike, this.#clock())
  }

  /** For several cells, and for requests whose identity the plan does not read from one value. */
  #decideAll(request: StoreRequest, now: number): StoreResult {
    const { op, plan, costs, needs = costs, permitId } = request
    const { tables, values: identities } = this.#states.placesOf(request)
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
      const { hasState } = table
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
      if (table.hasState !== hasState) this.#states.resized(table, now)
    }
    // After every table has written: an eviction must not remove the current state of another table.
    if (this.#states.areTooMany) this.#states.makeRoom(now, tables)
    const result = resultOf(now, allowed, values, 0)
    result.refunded = refunded
    return request.strike === undefined || allowed ? result : this.#strikeRefused(request, result)
  }

  reset(plan: Plan, identities: readonly string[]): void {
    const { tables, values } = this.#states.placesOf({ plan, identities, value: undefined })
    for (const [i, table] of tables.entries()) table.forget(values[(plan.cells[i] as Cell).identity] as string)
    if (plan.keeps) this.#kept.reset(plan.policy, identities)
    const { ban } = plan
    if (ban) this.#bans.forgive(ban.scope, identities[ban.identity] as string)
  }

  block(policy: string, identity: string, forMs: number, reason: string): void {
    this.#bans.block(policy, identity, forMs, reason, this.#clock())
  }

  unblock(policy: string, identity: string): void {
    this.#bans.unblock(policy, identity)
  }

  /** Takes a ban that has ended before its time. Its rung stays, as far as there is room. */
  #evicted({ policy, identity, block: { until, ban } }: BlockOf): void {
    const remainingMs = until - this.#clock()
    if (remainingMs <= 0) return
    emitBanEvicted(this.#listeners, { policy, identity }, ban?.rung as number, remainingMs)
    if (this.#isWarnedOfBans) return
    this.#isWarnedOfBans = true
    const message = 'no room for all bans: those of the lowest rung that end soonest end before their time'
    this.#warnings.emit('SLUICE_BANS_EVICTED', `memoryStore: maxBytes: ${message}: raise maxBytes, or use Redis`)
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
    const { keys, bytes } = this.#states.usage
    const { maxKeys, maxBytes } = this.#bounds
    return {
      kind: 'memory',
      state: 'available',
      since: this.#since,
      pending: 0,
      keys,
      bytes,
      maxKeys,
      maxBytes,
      evicted: this.#states.evicted,
      blocked: this.#bans.blocks.size,
    }
  }

  offenders(query: OffendersQuery): Promise<OffendersReport> {
    return offendersOf('memoryStore', this.#refusals, query)
  }

  async forget(identity: IdentityByKind): Promise<void> {
    const text = identityText('forget', identity)
    const start = afterKind(text)
    this.#states.forget(text.slice(0, start), text.slice(start))
    this.#kept.reset(undefined, [text])
    this.#lists.forget(text)
    this.#refusals?.forget(text)
    this.#refusalSlices.forget(text)
    void this.lastRefusals.forget(text)
    await this.#bans.forget(text)
    await this.changes.erase(text)
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
    this.#sweeper.stop()
    this.#states = this.#makeStates()
    this.#bans = this.#makeBans()
    this.#kept = new KeptRecords(this.#states)
    this.#lists.clear()
    this.#refusals?.clear()
    this.#refusalSlices.clear()
    this.lastRefusals.clear()
    this.#changes.clear()
  }

  #debit(request: StoreRequest, now: number): StoreResult {
    const { plan, costs } = request
    const { tables, values: identities } = this.#states.placesOf(request)
    const values = new Array<number>(STRIDE * plan.reports)
    for (let i = 0, at = 0; i < tables.length; i++) {
      const table = tables[i] as Table
      table.look(identities[(plan.cells[i] as Cell).identity] as string, now, 0)
      const { hasState } = table
      if (costs[i] !== 0) table.debit(costs[i] as number)
      at = table.report(values, at, true)
      if (table.hasState !== hasState) this.#states.resized(table, now)
    }
    if (this.#states.areTooMany) this.#states.makeRoom(now, tables)
    return resultOf(now, true, values, 0)
  }

  #change(request: StoreRequest, now: number): StoreResult {
    if (request.op === DEBIT) return this.#debit(request, now)
    const { tables, values: identities } = this.#states.placesOf(request)
    const charge = request.charge as StoreResult
    const receipts = receiptsOf(request.plan, charge)
    const values = new Array<number>(STRIDE * request.plan.reports)
    let isHeld = true
    for (let i = 0, at = 0; i < tables.length; i++) {
      const table = tables[i] as Table
      const cell = request.plan.cells[i] as Cell
      const cost = request.costs[i] as number
      table.look(identities[cell.identity] as string, now, 0)
      if (request.op === RENEW) {
        if (!table.renew(cost, request.permitId)) isHeld = false
      } else if (cost !== 0 && (request.op === REFUND || CELL_KINDS[cell.kernel].hasPermits)) {
        table.refund(cost, receipts[i] as number, charge.now, request.permitId, charge.refunded?.[i] ?? 0)
      }
      at = table.report(values, at, true)
    }
    const result = resultOf(now, true, values, 0)
    if (!isHeld) result.outcome = 'unknown'
    return result
  }
}

function boundsOf({ clock, maxKeys = 100_000, maxBytes = 268_435_456 }: MemoryStoreOptions, now: () => number): Bounds {
  wholeNumber('memoryStore', 'maxKeys', maxKeys, 1, MAX_KEYS)
  wholeNumber('memoryStore', 'maxBytes', maxBytes, LEAST_BYTES)
  return {
    maxKeys,
    maxBytes,
    graceMs: clock ? STRANGE_CLOCK_GRACE_MS : 0,
    wall: new WallClock(now, clock !== undefined),
  }
}

/** A refused request is not in flight, so no one would release its permit. */
function chargeRefused({ kernel }: Cell, table: Table, cost: number, permitId: string): void {
  if (cost !== 0 && !CELL_KINDS[kernel].hasPermits) table.charge(cost, permitId)
}

/** Whether a cell refuses for now, by its reports. */
function hasToWait(values: readonly number[], from: number, to: number): boolean {
  for (let at = from; at < to; at += STRIDE) if ((values[at + 1] as number) > 0) return true
  return false
}

/** Whether a refusal ends with time. A cost that can never fit is refused whatever others do. */
function isRefusedForNow({ reports }: Plan, { values }: StoreResult): boolean {
  for (let at = 0; at < STRIDE * reports; at += STRIDE) if ((values[at + 1] as number) < 0) return false
  return true
}
