import type { IpRange } from '../util/ip-address.js'
import { propertyOf } from '../util/property-of.js'
import type { KeyValue } from './identity.js'

/** One identity of a request, to look up in a list. */
export interface ListedIdentity {
  readonly kind: string
  /**
   * The value as it is counted: normalised, and hashed if it is secret or long. For the kind `ip`, the whole address as
   * text.
   */
  readonly value: string
  /** @internal The same address, if the caller has already parsed it. */
  readonly address?: IpRange
}

/** An entry of a list that an identity matches. */
export interface ListMatch {
  /** The entry's reason; empty if it has none. */
  readonly reason: string
  /** When the entry ends, in ms since 1970; undefined if it does not. */
  readonly expiresAt: number | undefined
  /**
   * The number of addresses in the entry; 1 if it is not a range. Between entries that allow and deny, the smallest
   * wins.
   */
  readonly size: number | bigint
}

/** How a policy's keys turn handwritten values into counted ones. */
export interface ListKeys {
  /**
   * The counted value for a raw value of a kind, or for several values of a composed kind. Undefined if nothing is
   * counted by the kind.
   *
   * @throws SluiceError `INVALID_KEY` for a value that does not fit the kind
   */
  readonly valueOf: (kind: string, raw: KeyValue | readonly KeyValue[]) => string | undefined
  /** Leading bits of an IPv6 address that identify one client. */
  readonly ipv6Prefix: number
}

/** Identities to allow or to deny. */
export interface List {
  /** The list's name in verdicts and warnings. */
  readonly name: string
  /** The kinds of identities that the list holds at present. Only those are looked up. */
  readonly kinds: readonly string[]
  /** Increases with every change of `kinds` or of an entry. */
  readonly version: number
  /** The current entry for an identity; undefined if there is none. Never throws, whatever the value. */
  match(identity: ListedIdentity): ListMatch | undefined
  /** Resolves when the list has been loaded once, and rejects if that fails. Until then it matches nothing. */
  ready(): Promise<void>
  /** Stops updates of the list. Its present entries continue to match. */
  close(): Promise<void>
  /** @internal Decisions wait for this promise before they use the list; undefined afterwards. Never rejects. */
  readonly pending?: Promise<void> | undefined
  /** @internal The same list, with values made by a policy's keys. Absent if values do not depend on keys. */
  forKeys?(keys: ListKeys): List
  /**
   * @internal The list that this one refers to on a store. Absent if the list does not depend on the store. Kinds of
   * such a list come and go, so no kind is an error.
   */
  forStore?(where: string, store: ListKeeper): List
}

/** The symbol of the part of a store with its lists: `store[LISTS]`. */
export const LISTS: unique symbol = Symbol.for('@sluice/core: lists')

/** The lists of a store: those of its options, and those that it keeps. */
export interface ListsOfStore<Kept extends List = List> {
  /** The lists that allow and deny identities for every policy of this store. Limiters check them before the store. */
  readonly given?: StoreLists | undefined
  /**
   * The list that the store keeps under this name: 1 to 64 letters, digits and `_.:-`. A new list has no entries.
   *
   * @throws SluiceError `INVALID_POLICY`
   */
  list?(name: string): Kept
}

/** The lists of a store's options. */
export function givenLists(store: ListKeeper): StoreLists | undefined {
  const lists = store[LISTS]
  return lists && propertyOf(lists, 'given')
}

/** A store, as lists see it. */
export interface ListKeeper {
  readonly [LISTS]?: ListsOfStore
}

/** Lists of a store. They apply to every policy on it. */
export interface StoreLists {
  readonly allow: readonly StoreListItem[]
  readonly deny: readonly StoreListItem[]
}

/** A list, or a function that returns whether a request, or the limiter's other input, is on it. */
// biome-ignore lint/suspicious/noExplicitAny: a store serves policies of any kind of request
export type StoreListItem = List | ((subject: any) => boolean)

/** The lists that a store's options name. */
export interface StoreListOptions {
  /** Identities that every policy on this store admits without charging them; one list, or several. @default none */
  readonly allow?: StoreListItem | readonly StoreListItem[]
  /** Identities that every policy on this store refuses; one list, or several. @default none */
  readonly deny?: StoreListItem | readonly StoreListItem[]
}

/** Why a verdict was given by a list. */
export interface ListReport {
  readonly effect: 'allow' | 'deny'
  /** The kind of the listed identity; `predicate` if a function of yours decided. */
  readonly kind: string
  /** The name of the list, or of the function if it has one. */
  readonly list: string
  /** The entry's reason; empty if it has none. */
  readonly reason: string
  /** When the entry ends, in ms since 1970; undefined if it does not. */
  readonly expiresAt: number | undefined
}
