import type { StoreListEntry } from './entries.js'
import type { IdentityByKind } from './identity.js'
import type { List } from './list.js'

export interface ListEntryOptions {
  /** Text for verdicts; up to 200 characters. @default '' */
  readonly reason?: string
  /** When the entry ends: ms since 1970 by the store's clock, or a date; in the future. @default never */
  readonly expiresAt?: number | Date
}

/** Selects the entries of a list to show. */
export interface StoreListQuery {
  /** Entries of this kind of identity. @default all */
  readonly kind?: string
  /** Entries whose value begins with this text. @default all */
  readonly prefix?: string
  /** The `cursor` of the page before. @default the beginning */
  readonly cursor?: string
  /** Maximum entries per page, 1 to 1,000. A page may have fewer entries, or none, before the last one. @default 100 */
  readonly max?: number
}

export interface StoreListPage {
  readonly entries: readonly StoreListEntry[]
  /** The position of the next page; absent on the last page. */
  readonly cursor?: string
}

/**
 * A named list in a store, shared by every process on that store: `store.list('vip')`. `allow` and `deny` take it
 * directly, like `storeList('vip')`. A change takes effect at once in the process that makes it, and within a second
 * elsewhere.
 *
 * Identities have the form of `store.blocks`; ranges of addresses may also be written `192.0.2.3-192.0.2.9`. During an
 * outage, methods that need the store reject with `STORE_UNAVAILABLE`, and known entries continue to match.
 */
export interface StoreList extends List {
  /** How many entries this process knows. */
  readonly size: number
  /** Adds an identity, or replaces its entry. Rejects with `STORE_FULL` if the store's lists have 100,000 entries. */
  add(identity: IdentityByKind, options?: ListEntryOptions): Promise<void>
  /** Removes the entry of exactly this identity. Entries of ranges that contain it remain. */
  remove(identity: IdentityByKind): Promise<void>
  /** Removes all entries. */
  removeAll(): Promise<void>
  /** The entry of exactly this identity. */
  get(identity: IdentityByKind): Promise<StoreListEntry | undefined>
  /** A page of entries, in no order. An entry that changes meanwhile may be on two pages. */
  list(query?: StoreListQuery): Promise<StoreListPage>
}
