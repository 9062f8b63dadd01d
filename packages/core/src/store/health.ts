/** The present state of a store. */
export interface StoreHealth {
  /**
   * `unavailable` while limiters decide by their `unavailable` option; in a cluster, for the keys of at least one
   * master.
   */
  readonly state: 'available' | 'unavailable'
  /** When this state began: ms since the epoch, by this machine's clock. */
  readonly since: number
  /**
   * Round trip of a script in ms; in a cluster, that of the slowest master. Measured at most once a second. 0 in
   * memory; undefined without a reply.
   */
  readonly roundTripMs: number | undefined
  /** Decisions that wait for a reply. */
  readonly pending: number
  /** Why it is unavailable, or why no reply came. */
  readonly cause: Error | undefined
}

/**
 * Counts by value. `counts[i]` counts values up to `bounds[i]` and above the previous bound; the last counts values
 * above all bounds.
 */
export interface Histogram {
  readonly bounds: readonly number[]
  /** One more than `bounds`. */
  readonly counts: readonly number[]
  readonly sum: number
  readonly count: number
}

/** The bounds of `StoreStats.batches`, in decisions. */
export const BATCH_BOUNDS: readonly number[] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]

/** Statistics of a store that are available at once, as plain numbers, for exporters. */
export interface StoreStats extends Pick<StoreHealth, 'state' | 'since' | 'pending'> {
  /** Such as `'memory'` or `'redis'`. */
  readonly kind: string
  /** Number of states, the bytes of states and blocks, and the maximum of both. Only for stores in this process. */
  readonly keys?: number
  readonly bytes?: number
  readonly maxKeys?: number
  readonly maxBytes?: number
  /** States that were evicted for lack of room since the store was made or cleared. Only for stores in this process. */
  readonly evicted?: number
  /** Blocks and bans that this process knows. */
  readonly blocked?: number
  /** Decisions per script execution while counting was on. */
  readonly batches?: Histogram
}
