import type { MaybePromise } from '../util/when-known.js'
import type { ChangeEntry } from './entries.js'
import type { IdentityByKind } from './identity.js'

/** A change that somebody makes by hand, as it is given to `store.changes.record`. */
export interface ChangeToRecord {
  /** Who makes it: up to 100 characters. Empty where that is not known. */
  readonly by: string
  /** Its kind, such as `block`, `unblock`, `reset`, `apply` or `override`: 1 to 40 letters, digits and `-`. */
  readonly action: string
  /** The policy that it concerns. @default none, or all */
  readonly policy?: string
  /**
   * The identity that it concerns, by its kind; or as it is counted: its kind, `=` and its value. Values of headers and
   * cookies by their kind are stored as hashes. @default none
   */
  readonly identity?: IdentityByKind | string
  /**
   * The state before it, and after it: plain data of up to 4,000 characters of JSON each. The entry holds the length of
   * longer data instead, as `{ omitted }`. @default none
   */
  readonly before?: unknown
  readonly after?: unknown
}

/** Selects the changes to list. */
export interface ChangesQuery {
  /** The `cursor` of the page before. @default the newest */
  readonly cursor?: string
  /** Maximum entries per page, 1 to 1,000. @default 100 */
  readonly max?: number
  /** Changes by this person alone: exactly this name. @default those of everyone */
  readonly by?: string
  /** Changes of this kind alone, such as `block`. @default every kind */
  readonly action?: string
}

export interface ChangePage {
  /** The newest first. */
  readonly entries: readonly ChangeEntry[]
  /** The position of the next page; absent on the last page. */
  readonly cursor?: string
}

/** The changes that people make by hand in a store and its policies: the last 10,000. */
export interface StoreChanges {
  /**
   * Makes a change, and keeps an entry of it. The entry is written first: if that is impossible, the change is not made.
   * Resolves or rejects as `make` does.
   *
   * @throws SluiceError `INVALID_POLICY`, `INVALID_KEY`, or `STORE_UNAVAILABLE`, after which the change was not made
   */
  record<Result>(change: ChangeToRecord, make: () => MaybePromise<Result>): Promise<Result>
  /**
   * A page of the changes, newest first. An entry is on one page only, whatever is added meanwhile.
   *
   * @throws SluiceError `INVALID_POLICY`, `STORE_UNAVAILABLE`
   */
  list(query?: ChangesQuery): Promise<ChangePage>
}

/** The symbol of the part of a store that keeps changes: `store[CHANGES]`. */
export const CHANGES: unique symbol = Symbol.for('@sluice/core: changes')
