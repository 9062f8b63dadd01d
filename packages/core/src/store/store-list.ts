import type { IdentityByKind } from './identity.js'
import type { List } from './list.js'

/** An entry of a list that a store keeps. Plain data, as JSON holds it. */
export interface StoreListEntry {
  /** Such as `ip`. */
  readonly kind: string
  /** As it is compared: of `ip` an address or a range, hashed where it is secret or long. */
  readonly value: string
  readonly reason: string
  /** When it was added last: ms since 1970, by the store's clock. */
  readonly since: number
  /** When it ends: ms since 1970; absent where it does not. */
  readonly expiresAt?: number
}

export interface ListEntryOptions {
  /** Shown in verdicts; up to 200 characters. @default '' */
  readonly reason?: string
  /** From when on it matches no more: ms since 1970 by the store's clock, or a date; in the future. @default never */
  readonly expiresAt?: number | Date
}

/** What part of a list to show. */
export interface StoreListQuery {
  /** Those of this kind of identity. @default all */
  readonly kind?: string
  /** Those whose value begins like this. @default all */
  readonly prefix?: string
  /** Where the page before ended. @default the beginning */
  readonly cursor?: string
  /** Most of one page, 1 to 1,000. A page may have fewer, and none, though there are more. @default 100 */
  readonly max?: number
}

export interface StoreListPage {
  readonly entries: readonly StoreListEntry[]
  /** For the next page; absent from the last. */
  readonly cursor?: string
}

/**
 * A list that a store keeps under a name, for every process on that store: `store.list('vip')`. It can be given to `allow`
 * and `deny` itself, as `storeList('vip')` can. What one process changes is in force there at once, and within a second
 * elsewhere.
 *
 * Identities are given by their kind, as `store.blocks` takes them; ranges of addresses may be `192.0.2.3-192.0.2.9`, too.
 * Methods that ask the store reject with `STORE_UNAVAILABLE` where it is away; what a process knows it goes on to match.
 */
export interface StoreList extends List {
  /** How many entries this process knows. */
  readonly size: number
  /**
   * Adds an identity, or replaces its entry. Rejects with `STORE_FULL` where the lists of the store have 100,000 entries.
   */
  add(identity: IdentityByKind, options?: ListEntryOptions): Promise<void>
  /** Removes the entry of an identity, as it was added: not those of ranges that hold it. */
  remove(identity: IdentityByKind): Promise<void>
  /** Removes all entries. */
  removeAll(): Promise<void>
  /** The entry of an identity, as it was added. */
  get(identity: IdentityByKind): Promise<StoreListEntry | undefined>
  /** A page of all entries, in no order. One that changes meanwhile may be on two pages. */
  list(query?: StoreListQuery): Promise<StoreListPage>
}
