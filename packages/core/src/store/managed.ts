import type { BANS, StoreBans } from './bans.js'
import type { StoreBlocks } from './blocks.js'
import type { CHANGES, StoreChanges } from './changes.js'
import type { StoreEvents } from './events.js'
import type { StoreHealth } from './health.js'
import type { IdentityByKind } from './identity.js'
import type { LISTS, ListsOfStore, StoreLists } from './list.js'
import type { OFFENDERS, OffendersQuery, OffendersReport, StoreOffenders } from './offenders.js'
import type { KEPT_CHARGES, Store, StoreKeptCharges } from './store.js'
import type { StoreList } from './store-list.js'

/** A store of this package, with what people read and change in it: that of `memoryStore()`, or of `redisStore()`. */
export interface ManagedStore extends Store {
  readonly [BANS]: StoreBans
  readonly [KEPT_CHARGES]: StoreKeptCharges
  readonly [LISTS]: ListsOfStore<StoreList>
  readonly [OFFENDERS]: StoreOffenders
  readonly [CHANGES]: StoreChanges
  /** The identities that are blocked or banned. */
  readonly blocks: StoreBlocks
  /** The changes that people make by hand, the last 10,000. */
  readonly changes: StoreChanges
  /** The lists in the options of the store. */
  readonly lists: StoreLists | undefined
  /**
   * The store's list of this name: 1 to 64 letters, digits and `_.:-`. A new list has no entries.
   *
   * @throws SluiceError `INVALID_POLICY`
   */
  list(name: string): StoreList
  /**
   * Erases all data of an identity: counts, strikes, rungs, blocks, bans, its list entries, its number of refusals, and its place in
   * entries of changes. Identities are read as in `blocks`. Resolves once the data is gone; docs/blocks-and-lists.md says which data it
   * cannot find.
   *
   * @throws SluiceError `INVALID_KEY`, or `STORE_UNAVAILABLE`, after which a part may be gone
   */
  forget(identity: IdentityByKind): Promise<void>
  /**
   * The identities that a policy refused most often, where the option `offenders` counts them.
   *
   * @throws SluiceError `INVALID_POLICY`, `STORE_UNAVAILABLE`
   */
  offenders(query: OffendersQuery): Promise<OffendersReport>
  /** The store's present state. Never rejects. */
  health(): Promise<StoreHealth>
  /**
   * Calls the listener with each event of this store, synchronously. An error or rejection of the listener becomes a
   * process warning (`SLUICE_LISTENER_FAILED`). Returns a function that removes the listener. See docs/events.md.
   *
   * @throws SluiceError `INVALID_POLICY`
   */
  on<Name extends keyof StoreEvents>(event: Name, listener: (event: StoreEvents[Name]) => unknown): () => void
}
