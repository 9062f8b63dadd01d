import type { Limit, LimiterOptions, Store, UnavailableOption } from '@sluice/core'
import { knownOptions, optionalFunction } from '@sluice/core/internal'

/** A limit and its window, as the peer gives them. */
export interface Rate {
  /** Hits per window. */
  readonly limit: number
  /** Whole milliseconds. */
  readonly window: number
}

/** The options of every bridge. */
export interface BridgeOptions {
  /**
   * Names the counts in keys of Redis, events and metrics: letters, digits, `_`, `-`, up to 64.
   *
   * Bridges of one name on one store share their counts.
   * @default the name of the peer
   */
  readonly name?: string
  /** The store of the counts: `redisStore(client)` or `memoryStore()`. @default memory of this bridge alone */
  readonly store?: Store
  /**
   * Makes the limit: `slidingLog`, `fixedWindow`, or a function of the rate.
   *
   * Such as `(rate) => fixedWindow({ ...rate, anchor: 'first-request' })`.
   * @default an exact log up to 1,000 hits per window, beyond it a strict sliding window, whose state does not grow
   */
  readonly algorithm?: (rate: Rate) => Limit<string>
  /** The decisions while the store cannot be reached. @default this process decides by the whole limits */
  readonly unavailable?: UnavailableOption
  /** Silences warnings, one by one: `{ SLUICE_SAME_NAME: false }`. */
  readonly warnings?: LimiterOptions<string>['warnings']
}

const BRIDGE_OPTIONS = ['name', 'store', 'algorithm', 'unavailable', 'warnings'] as const

/** @throws SluiceError `INVALID_POLICY` */
export function checkOptions(
  where: string,
  options: BridgeOptions,
  more: readonly string[] = [],
  absent: Readonly<Record<string, string>> = {},
): void {
  knownOptions(where, options, [...BRIDGE_OPTIONS, ...more], absent)
  optionalFunction(where, 'algorithm', options.algorithm)
}
