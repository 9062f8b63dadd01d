// Entries that stores return: plain data, as JSON holds it. It imports nothing, so that pages in browsers use its types, too.

/** A block or ban. Plain data, as JSON holds it. */
export interface BlockEntry {
  /** The name of the policy that refuses it; absent where every policy of the store does. */
  readonly policy?: string
  /** Such as `ip`. */
  readonly kind: string
  /** The value as it is counted: normalised, and hashed if it is secret or long. */
  readonly value: string
  readonly reason: string
  /**
   * When the identity was last blocked, and when that ends: ms since 1970, by the store's clock. A block without an end
   * ends 200 years later.
   */
  readonly since: number
  readonly until: number
  /** How often the identity was blocked, as far as the store remembers; at least 1. */
  readonly times: number
  /**
   * Present if strikes led to the ban: its rung, from 1, and the number of strikes. A ban that starts within
   * `forgetAfterMs` of the end is of the next rung. `import` keeps the rung.
   */
  readonly ban?: { readonly rung: number; readonly strikes: number; readonly forgetAfterMs?: number }
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

/** An entry of a list that a store keeps. Plain data, as JSON holds it. */
export interface StoreListEntry {
  /** Such as `ip`. */
  readonly kind: string
  /** The value as it is compared: an address or a range for `ip`, and a hash if it is secret or long. */
  readonly value: string
  readonly reason: string
  /** When the entry was last added: ms since 1970, by the store's clock. */
  readonly since: number
  /** When the entry ends: ms since 1970; absent if it does not. */
  readonly expiresAt?: number
}
