import type { IpRange } from '../util/ip-address.js'
import type { KeyValue } from './identity.js'

/** What a list is asked for: one identity of a request. */
export interface ListedIdentity {
  readonly kind: string
  /** As it is counted: normalised, and hashed where it is secret or long. Of the kind `ip`, the whole address as text. */
  readonly value: string
  /** @internal The same address, where the caller has read it already. */
  readonly address?: IpRange
}

/** An entry of a list that an identity matches. */
export interface ListMatch {
  /** What the entry says of itself; empty where it says nothing. */
  readonly reason: string
  /** When the entry ends, in ms since 1970; undefined where it does not. */
  readonly expiresAt: number | undefined
  /** How many addresses it holds: of entries that allow and deny, the smallest wins. 1 for what is no range. */
  readonly size: number | bigint
}

/** How the keys of a policy make values of what is written by hand. */
export interface ListKeys {
  /**
   * The value that is counted for a raw one of a kind, of a composed kind for several; undefined where nothing is counted
   * by the kind.
   *
   * @throws SluiceError `INVALID_KEY` for a value that is none of that kind
   */
  readonly valueOf: (kind: string, raw: KeyValue | readonly KeyValue[]) => string | undefined
  /** Leading bits of an IPv6 address that make one client. */
  readonly ipv6Prefix: number
}

/** Identities to allow or to deny. */
export interface List {
  /** What verdicts and warnings call it. */
  readonly name: string
  /** The kinds of identities that it holds at present; it is asked for no others. */
  readonly kinds: readonly string[]
  /** Raised with every change of `kinds`, and of what is in it. */
  readonly version: number
  /** The entry for an identity now; undefined where there is none. Does not throw, whatever the value. */
  match(identity: ListedIdentity): ListMatch | undefined
  /**
   * Resolves when the list has been loaded once, and rejects where that has failed. Until then it matches nothing.
   */
  ready(): Promise<void>
  /** Ends what keeps the list up to date. What it holds by then, it goes on to match. */
  close(): Promise<void>
  /** @internal Resolves when decisions may go by the list, which wait for it; undefined from then on. Never rejects. */
  readonly pending?: Promise<void> | undefined
  /** @internal The same list, with its values made by the keys of a policy. Absent where they do not depend on them. */
  forKeys?(keys: ListKeys): List
  /**
   * @internal The list that it stands for on a store. Absent where that does not depend on the store. Kinds of such a list
   * come and go, so that none of them is an error.
   */
  forStore?(where: string, store: ListKeeper): List
}

/** A store that keeps lists by their names. */
export interface ListKeeper {
  list?(name: string): List
}

/** Lists of a store: every policy on it asks them. */
export interface StoreLists {
  readonly allow: readonly StoreListItem[]
  readonly deny: readonly StoreListItem[]
}

/** A list, or a function that returns whether a request, or what else the limiter is asked for, is on it. */
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
  /** Of the identity that is listed; `predicate` where a function of yours decided. */
  readonly kind: string
  /** The list's name; that of the function, where it has one. */
  readonly list: string
  /** What the entry says of itself; empty where it says nothing. */
  readonly reason: string
  /** When the entry ends, in ms since 1970; undefined where it does not. */
  readonly expiresAt: number | undefined
}
