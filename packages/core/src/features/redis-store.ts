import { cellsNamed, type NamedCell } from '../kinds/cell-names.js'
import { FORGIVEN } from '../redis/changes/strikes.js'
import type { StoreState } from '../redis/health/breaker.js'
import type { Readiness } from '../redis/health/readiness.js'
import { cellSuffix, chargesSuffix, firstOfKeys, keyStart } from '../redis/scripts/keys.js'
import { deleteKeys } from '../redis/scripts/run.js'
import { BANS, type StoreBans } from '../store/bans.js'
import type { StoreBlocks } from '../store/blocks.js'
import { CHANGES, type StoreChanges } from '../store/changes.js'
import type { StoreEvents } from '../store/events.js'
import { FIGURES, type FiguresKeeper } from '../store/figures.js'
import type { StoreHealth, StoreStats } from '../store/health.js'
import type { IdentityByKind } from '../store/identity.js'
import { KEYED_SCRIPTS, type KeyedScripts } from '../store/keyed-scripts.js'
import { LAST_REFUSALS, type LastRefusals } from '../store/last-refusals.js'
import { LISTS, type ListsOfStore, type StoreLists } from '../store/list.js'
import type { ManagedStore } from '../store/managed.js'
import { OFFENDERS, type OffendersQuery, type OffendersReport, type StoreOffenders } from '../store/offenders.js'
import { SHARED_NOTES, type SharedNotes } from '../store/shared-notes.js'
import {
  KEPT_CHARGES,
  OWN_COUNTS,
  type OwnCounts,
  type Plan,
  REFUND,
  RELEASE,
  type StoreKeptCharges,
  type StoreRequest,
  type StoreResult,
  type StoreWaiters,
  WAITERS,
} from '../store/store.js'
import type { StoreList } from '../store/store-list.js'
import { COPY, THIS_COPY } from '../util/copies.js'
import { storeBans } from './bans/store-bans.js'
import { checkedListName } from './lists/given-list-entries.js'
import { KeptList } from './lists/kept-list.js'
import { storeOffenders } from './offenders/store-offenders.js'
import { forget, type KeptState, kept } from './records/kept-state.js'
import { kindsInRedis } from './records/kinds-in-redis.js'
import type { assemble } from './redis-parts.js'

/** See `redisStore`. */
export class RedisStore implements ManagedStore {
  readonly [BANS]: StoreBans
  readonly [KEPT_CHARGES]: StoreKeptCharges
  readonly [LISTS]: ListsOfStore<StoreList>
  readonly [OFFENDERS]: StoreOffenders
  readonly [CHANGES]: StoreChanges
  readonly [WAITERS]: StoreWaiters
  /** @internal */
  readonly [LAST_REFUSALS]: LastRefusals
  /** @internal */
  readonly [KEYED_SCRIPTS]: KeyedScripts
  /** @internal */
  readonly [FIGURES]: FiguresKeeper
  /** @internal */
  readonly [SHARED_NOTES]: SharedNotes
  /** @internal */
  readonly [OWN_COUNTS]: OwnCounts
  readonly lists: StoreLists | undefined
  readonly clock: (() => number) | undefined
  /** The identities that are blocked or banned. */
  readonly blocks: StoreBlocks
  /** The changes that people make by hand, the last 10,000. */
  readonly changes: StoreChanges
  readonly #parts: ReturnType<typeof assemble>
  #closing: Promise<void> | undefined

  /** @internal Use `redisStore`. */
  constructor(parts: ReturnType<typeof assemble>) {
    this.#parts = parts
    const { redisBlocks, strikes, blocks, texts, waiters, permitLooks } = parts
    this[BANS] = storeBans(redisBlocks, strikes, blocks, () => texts.enforceBansOfEveryPolicy())
    this[KEPT_CHARGES] = parts.charges
    this[WAITERS] = {
      report: (...report) => waiters.report(...report),
      mayHavePermits: (...look) => permitLooks.mayHave(...look),
    }
    this[OWN_COUNTS] = parts.relaxed
    this.lists = parts.ownLists
    this.clock = parts.clock
    this.blocks = parts.blocks
    this.changes = parts.changeLog
    this[LISTS] = { given: this.lists, list: (name) => this.list(name) }
    this[OFFENDERS] = storeOffenders('redisStore', parts.refusals)
    this[CHANGES] = parts.changeLog
    this[LAST_REFUSALS] = parts.recentRefusals
    this[KEYED_SCRIPTS] = parts.keyedScripts
    this[FIGURES] = parts.figures
    this[SHARED_NOTES] = parts.notes
  }

  /** @internal */
  get [COPY](): string {
    return THIS_COPY
  }

  /** `'unavailable'` while the store does not use Redis, or one of the masters of a cluster. */
  get state(): StoreState {
    return this.#parts.breaker.state
  }

  decide(request: StoreRequest): StoreResult | Promise<StoreResult> {
    // Refunds and releases are still sent while there is a connection. Their number is bounded by the requests admitted
    // before.
    const { closed } = this.#parts.readiness
    if (closed && request.op !== REFUND && request.op !== RELEASE) throw closed
    // `addLayers` has the layers in order. The last one, `Batches`, sends the request.
    const { firstLayer, charges } = this.#parts
    return firstLayer.decide(request.keep ? charges.withId(request) : request)
  }

  async reset(plan: Plan, identities: readonly string[]): Promise<void> {
    const { connection, prefix, timeoutMs, changes, strikes } = this.#parts
    const keys = firstOfKeys(plan.cells).map(
      (cell) => keyStart(prefix, identities[cell.identity] as string) + cellSuffix(plan.policy, cell),
    )
    // A charge between two of these commands is of the state before them, or its id is unknown.
    const ids = plan.keeps ? identities.map((each) => keyStart(prefix, each) + chargesSuffix(plan.policy)) : []
    const all = [...ids, ...keys, ...ids]
    await changes.make({ kind: 'reset', plan, identities }, () => deleteKeys(connection, timeoutMs, all))
    if (plan.ban) await strikes.strike(plan.ban, identities[plan.ban.identity] as string, FORGIVEN)
  }

  forget(identity: IdentityByKind): Promise<void> {
    return forget(this.#parts, identity)
  }

  /**
   * Returns the data of an identity in Redis: names of its counts, strikes, blocks and bans, and the lists that contain
   * it. Identities are read as in `blocks`. Scans all keys of the server like `forget`, and needs the same permission.
   *
   * @throws SluiceError `INVALID_KEY`, `STORE_UNAVAILABLE`
   */
  kept(identity: IdentityByKind): Promise<KeptState> {
    return kept(this.#parts, identity)
  }

  /**
   * The kinds of identities in Redis, of up to 10,000 keys.
   *
   * @internal
   * @throws SluiceError `STORE_UNAVAILABLE`
   */
  kinds(): Promise<readonly string[]> {
    return kindsInRedis(this.#parts)
  }

  /**
   * Returns the cells in a key of counts, given a `cell` from `kept`. Undefined if the name does not contain them, such
   * as the hash that replaces the names of many limits.
   */
  cellsOf(cell: string): readonly NamedCell[] | undefined {
    return cellsNamed(cell)
  }

  list(name: string): StoreList {
    checkedListName('redisStore: list', name)
    const { lists } = this.#parts
    lists.start()
    return new KeptList(name, lists)
  }

  offenders(query: OffendersQuery): Promise<OffendersReport> {
    return this[OFFENDERS].report(query)
  }

  on<Name extends keyof StoreEvents>(event: Name, listener: (event: StoreEvents[Name]) => unknown): () => void {
    return this.#parts.listeners.on(event, listener)
  }

  /**
   * Resolves once the store uses Redis (in a cluster, every master) or Redis is known to be unavailable. That takes at
   * most `connectTimeout` from when the store was made. Never rejects, as an outage is no reason not to start: until
   * Redis is available, limiters decide by their `unavailable` option.
   */
  ready(): Promise<Readiness> {
    return this.#parts.readiness.ready()
  }

  /**
   * Returns the store's present state, for a `/ready` route: see docs/redis.md. Never rejects. It contacts Redis at
   * most once a second, however often it is called, and waits for at most `timeout`.
   */
  health(): Promise<StoreHealth> {
    return this.#parts.readiness.health()
  }

  stats(): StoreStats | undefined {
    const { readiness, breaker, batches, mirrored } = this.#parts
    if (readiness.closed) return undefined
    const { state, since } = breaker
    const { pending, sizes } = batches
    return { kind: 'redis', state, since, pending, blocked: mirrored.size, batches: sizes }
  }

  /**
   * Returns leases, sends pending counts to Redis, and waits for requests in flight. Then it releases this process's
   * permits and ends the store's connections and timers. Decisions after this call are those of an outage.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const { readiness, lists, layers, refusals, recentRefusals, figures, breaker, connection } = this.#parts
    readiness.close()
    recentRefusals.close()
    lists.close()
    for (const layer of layers) await layer.close()
    await refusals?.close()
    await figures.close()
    breaker.end()
    connection.close()
  }
}
