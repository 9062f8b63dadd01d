/** One limit with every option as a number of units or ms, for an oracle. */
export type LimitSpec =
  | { readonly algorithm: 'slidingLog'; readonly limit: number; readonly window: number }
  | {
      readonly algorithm: 'fixedWindow'
      readonly limit: number
      readonly window: number
      readonly anchor: 'clock' | 'first-request'
    }
  | {
      readonly algorithm: 'slidingWindow'
      readonly limit: number
      readonly window: number
      readonly segments: number
      readonly edge: 'weighted' | 'strict' | 'dropped'
      readonly rounding?: 'down' | 'up'
    }
  | { readonly algorithm: 'gcra'; readonly limit: number; readonly window: number; readonly capacity: number }
  | {
      readonly algorithm: 'tokenBucket'
      readonly limit: number
      readonly window: number
      readonly capacity: number
      readonly style: 'greedy' | 'interval'
    }
  | {
      readonly algorithm: 'leakyBucket'
      readonly limit: number
      readonly window: number
      readonly capacity: number
      readonly queue: boolean
    }
  /** `window` is the time to live of a permit. */
  | { readonly algorithm: 'concurrency'; readonly limit: number; readonly window: number }

/** Units admitted at one instant, and for permits the time at which they end. */
export interface Charge {
  readonly at: number
  readonly cost: number
  /** Whether it was charged whatever room there was. */
  readonly isDebt?: true
  /** The end of a renewed permit. */
  until?: number
}

/**
 * An algorithm by definition, computed only from the full list of charges, in their order: the whole units that would
 * be admitted at `now`.
 */
export type Room = (charges: readonly Charge[], now: number) => number
