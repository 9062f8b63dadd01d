/** How a store is now. */
export interface StoreHealth {
  /** `unavailable` while limiters decide by their `unavailable`; in a cluster for keys of one master at least. */
  readonly state: 'available' | 'unavailable'
  /** Since when: ms since the epoch, by the clock of this machine. */
  readonly since: number
  /**
   * How long a script took to the store and back, in ms; in a cluster to the slowest master. Asked at most once a second. 0 in
   * memory; undefined where no reply came.
   */
  readonly roundTripMs: number | undefined
  /** Decisions that wait for a reply. */
  readonly pending: number
  /** Why it is unavailable, or why no reply came. */
  readonly cause: Error | undefined
}

/** Counts by value. `counts[i]` is of values up to `bounds[i]` and above the bound before; the last is of those above all bounds. */
export interface Histogram {
  readonly bounds: readonly number[]
  /** One more than `bounds`. */
  readonly counts: readonly number[]
  readonly sum: number
  readonly count: number
}

/** The bounds of `StoreStats.batches`, in decisions. */
export const BATCH_BOUNDS: readonly number[] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]

/** What a store can say of itself at once, in plain numbers, to be exported. */
export interface StoreStats extends Pick<StoreHealth, 'state' | 'since' | 'pending'> {
  /** Such as `'memory'` or `'redis'`. */
  readonly kind: string
  /** States kept, and the bytes that they and blocks take, with the most of both; where the store is in this process. */
  readonly keys?: number
  readonly bytes?: number
  readonly maxKeys?: number
  readonly maxBytes?: number
  /** Blocks and bans that this process holds. */
  readonly blocked?: number
  /** Decisions per script execution, of those while counting was on. */
  readonly batches?: Histogram
}
