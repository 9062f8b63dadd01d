import type { AcquireOptions } from '@sluice/core'
import type { Quota } from '../quota/quota-types.js'

/** How a request waits. */
export interface TurnOptions extends Pick<AcquireOptions, 'priority' | 'fairBy' | 'signal'> {
  readonly origin: string
  readonly maxWaitMs: number
}

/** The turn of a request, which it has until it is answered. */
export interface Turn {
  /** Takes in its response; undefined for one that never came. Resolves once all requests of its key know. Never rejects. */
  answered(quota: Quota | undefined, isRefusal?: boolean): Promise<void>
}
