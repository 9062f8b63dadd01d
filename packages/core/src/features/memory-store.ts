import { identityText } from '../blocks/given-blocks.js'
import { bringAll } from '../kinds/all.js'
import { kindOfCell } from '../kinds/known.js'
import { MemoryBase } from '../memory/base.js'
import { dated } from '../memory/clock.js'
import { Counts } from '../memory/counts.js'
import type { MemoryPart } from '../memory/layer.js'
import { BANS, type StoreBans } from '../store/bans.js'
import type { StoreBlocks } from '../store/blocks.js'
import { CHANGES } from '../store/changes.js'
import { STORE_EVENTS, type StoreEvents } from '../store/events.js'
import type { StoreHealth, StoreStats } from '../store/health.js'
import type { IdentityByKind } from '../store/identity.js'
import { LAST_REFUSALS } from '../store/last-refusals.js'
import { LISTS, type ListsOfStore, type StoreListOptions, type StoreLists } from '../store/list.js'
import type { ManagedStore } from '../store/managed.js'
import { OFFENDERS, type OffendersQuery, type OffendersReport, type StoreOffenders } from '../store/offenders.js'
import { SHARED_NOTES } from '../store/shared-notes.js'
import {
  KEPT_CHARGES,
  type Plan,
  type Store,
  type StoreKeptCharges,
  type StoreRequest,
  type StoreResult,
} from '../store/store.js'
import type { StoreList } from '../store/store-list.js'
import { COPY, THIS_COPY } from '../util/copies.js'
import { Listeners } from '../util/listeners.js'
import { fieldsOf } from '../util/property-of.js'
import { knownOptions } from '../util/validate.js'
import { STORE_WARNINGS, type StoreWarning, type StoreWarningsOption, Warnings } from '../util/warnings.js'
import { emitBanEvicted } from './bans/block-events.js'
import type { BlockOf } from './bans/block-table.js'
import { KeptBlocks } from './bans/kept-blocks.js'
import { MemoryBanLayer } from './bans/memory-ban-layer.js'
import { MemoryBlocks, movedBy } from './bans/memory-blocks.js'
import { PersistedBlocks } from './bans/persisted-blocks.js'
import { storeBans } from './bans/store-bans.js'
import { MemoryChargeLayer } from './charges/memory-charge-layer.js'
import { checkedListName } from './lists/given-list-entries.js'
import { storeLists } from './lists/given-lists.js'
import { KeptList } from './lists/kept-list.js'
import { MemoryLists } from './lists/memory-lists.js'
import { MemoryRefusals } from './offenders/memory-refusals.js'
import { type RefusalLog, refusalLog } from './offenders/refusal-log.js'
import { storeOffenders } from './offenders/store-offenders.js'
import { ChangeLog } from './records/change-log.js'
import { MemoryChanges } from './records/memory-changes.js'
import { MemoryNotes } from './records/memory-notes.js'
import { RecentRefusals } from './records/recent-refusals.js'

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

/**
 * A store in this process: exact, synchronous, bounded. Nothing to set up; state ends with the process.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function memoryStore(options: MemoryStoreOptions = {}): ManagedStore {
  knownOptions('memoryStore', options, OPTIONS, OF_REDIS)
  // The plans of a store that a program makes by itself may come from another process.
  bringAll()
  return new MemoryStore(fieldsOf(options, OPTIONS))
}

/**
 * A store without options but a clock, for the plans of limiters alone, whose limits bring their kinds. It is made at any time: no
 * name on `Object.prototype` is one of its options.
 */
export function memoryStoreBy(clock?: () => number): Store {
  return new MemoryStore(fieldsOf({ clock }, ['clock']))
}

/** A memory store with all features: the layer of charges is the first, then that of bans, then the counts. */
class MemoryStore implements ManagedStore {
  readonly [BANS]: StoreBans
  readonly [KEPT_CHARGES]: StoreKeptCharges
  readonly [LISTS]: ListsOfStore<StoreList>
  readonly [OFFENDERS]: StoreOffenders
  readonly [CHANGES]: ChangeLog
  /** @internal */
  readonly [LAST_REFUSALS] = new RecentRefusals()
  /** @internal */
  readonly [SHARED_NOTES]: MemoryNotes
  readonly clock: (() => number) | undefined
  readonly lists: StoreLists | undefined
  readonly blocks: StoreBlocks
  readonly changes: ChangeLog
  readonly #listeners = new Listeners<StoreEvents>('memoryStore', STORE_EVENTS)
  readonly #since = Date.now()
  readonly #base: MemoryBase
  readonly #bans: MemoryBanLayer
  readonly #charges: MemoryChargeLayer
  readonly #lists: MemoryLists
  readonly #refusals: RefusalLog | undefined
  readonly #persisted: PersistedBlocks | undefined
  readonly #warnings: Warnings<StoreWarning>
  /** Erased and cleared in this order. */
  readonly #parts: readonly MemoryPart[]
  #isWarnedOfBans = false

  constructor(options: MemoryStoreOptions) {
    this.lists = storeLists('memoryStore', options)
    this[LISTS] = { given: this.lists, list: (name) => this.list(name) }
    const base = new MemoryBase(options, (cell) => kindOfCell(cell).table)
    this.#base = base
    this.clock = base.givenClock
    const changed = () => this.#persisted?.changed()
    const counts = new Counts(base)
    this.#bans = new MemoryBanLayer(base, counts, { changed, evicted: (ban) => this.#evicted(ban) })
    this.#charges = new MemoryChargeLayer(base, this.#bans)
    this[KEPT_CHARGES] = this.#charges
    base.swept.push(() => base.states)
    this.#lists = new MemoryLists(() => base.date, changed)
    const refusalSlices = new MemoryRefusals(base.now)
    this.#refusals = refusalLog('memoryStore', options.offenders, refusalSlices)
    this[OFFENDERS] = storeOffenders('memoryStore', this.#refusals)
    const changes = new MemoryChanges(() => base.date)
    this[SHARED_NOTES] = new MemoryNotes(() => base.date)
    this.changes = new ChangeLog(changes, this.#listeners)
    this[CHANGES] = this.changes
    const blocks = new MemoryBlocks(base.now, base.bounds.wall, () => this.#bans.bans)
    this.blocks = new KeptBlocks(blocks, this.#listeners)
    this[BANS] = storeBans(blocks, this.#bans, this.blocks, () => {})
    this.#parts = [
      counts,
      this.#charges,
      this.#lists,
      ...(this.#refusals ? [this.#refusals] : []),
      refusalSlices,
      this[LAST_REFUSALS],
      this[SHARED_NOTES],
      this.#bans,
      { forget: (identity) => this.changes.erase(identity), clear: () => changes.clear() },
    ]
    this.#warnings = new Warnings('memoryStore', STORE_WARNINGS, options.warnings, this.#listeners)
    if (options.persist !== undefined) this.#persisted = this.#persistedIn(options.persist)
    base.onSweep = (now) => this.#persisted?.follow(base.bounds.wall.aheadAt(now))
  }

  get [COPY](): string {
    return THIS_COPY
  }

  /** Adds the entries of the file, as far as there is room. */
  #persistedIn(file: string): PersistedBlocks {
    const persisted = new PersistedBlocks(
      file,
      () => this.blocks.export(),
      () => this.#lists,
      this.#warnings,
    )
    const now = this.#base.now()
    const ahead = this.#base.bounds.wall.aheadAt(now)
    const { blocks, listed } = persisted.read()
    for (const entry of listed) if (entry.until > now + ahead) this.#lists.named.set(entry)
    const entries = blocks.map((entry) => movedBy(-ahead, entry)).filter(({ until }) => until > now)
    const left = this.#bans.bans.restore(entries, now)
    if (left > 0) persisted.warn(`maxBytes has no room for ${left} of ${entries.length} blocks and bans`)
    return persisted
  }

  /** `now`: replaces the clock's time, to charge a use that is known from an earlier instant. */
  decide(request: StoreRequest, now = this.#base.now()): StoreResult {
    return dated(this.#charges.decide(request, now), this.#base.bounds.wall)
  }

  reset(plan: Plan, identities: readonly string[]): void {
    this.#charges.reset(plan, identities)
  }

  /** Takes a ban that has ended before its time. Its rung stays, as far as there is room. */
  #evicted({ policy, identity, block: { until, ban } }: BlockOf): void {
    const remainingMs = until - this.#base.now()
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
    const { states, bounds } = this.#base
    const { keys, bytes } = states.usage
    const { maxKeys, maxBytes } = bounds
    return {
      kind: 'memory',
      state: 'available',
      since: this.#since,
      pending: 0,
      keys,
      bytes,
      maxKeys,
      maxBytes,
      evicted: states.evicted,
      blocked: this.#bans.bans.blocks.size,
    }
  }

  offenders(query: OffendersQuery): Promise<OffendersReport> {
    return this[OFFENDERS].report(query)
  }

  async forget(identity: IdentityByKind): Promise<void> {
    const text = identityText('forget', identity)
    // One that has nothing to wait for is done at once.
    for (const part of this.#parts) {
      const pending = part.forget(text)
      if (pending instanceof Promise) await pending
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
    this.#base.clear()
    for (const part of this.#parts) part.clear()
  }
}
