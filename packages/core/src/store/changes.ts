import type { MaybePromise } from '../util/when-known.js'
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

/**
 * How far a change has come:
 * - `begun`: it was about to be made. If that is all, its process or the store ended before it was noted whether it was.
 * - `done`: it was made.
 * - `failed`: the call that makes it was rejected. After `STORE_UNAVAILABLE` or a timeout it may hold all the same.
 */
export type ChangeState = 'begun' | 'done' | 'failed'

/** The entry of a change. Plain data, as JSON holds it. */
export interface ChangeEntry {
  /** One more than that of the change before; 1 for the first of a store. */
  readonly number: number
  /** When it began: ms since 1970, by the store's clock. */
  readonly at: number
  readonly by: string
  readonly action: string
  readonly policy?: string
  /** The identity as it is counted: normalised, and hashed if it is secret or long. */
  readonly kind?: string
  readonly value?: string
  readonly before?: unknown
  readonly after?: unknown
  readonly state: ChangeState
  /** Present if `forget` has erased its identity, and with it the states before and after. */
  readonly isErased?: true
}

/** Selects the changes to list. */
export interface ChangesQuery {
  /** The `cursor` of the page before. @default the newest */
  readonly cursor?: string
  /** Maximum entries per page, 1 to 1,000. @default 100 */
  readonly max?: number
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
