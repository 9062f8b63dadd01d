import type { AcquireOptions, Units } from '@sluice/core'
import type { Quota } from '../quota/quota-types.js'

/** How a request waits. */
export interface TurnOptions extends Pick<AcquireOptions, 'priority' | 'fairBy' | 'signal'> {
  readonly origin: string
  readonly maxWaitMs: number
  /** Units that it is charged. */
  readonly cost: Units
}

/** The turn of a request, which it has until it is answered. */
export interface Turn {
  /** Takes in its response; undefined for one that never came. Resolves once all requests of its key know. Never rejects. */
  answered(quota: Quota | undefined, isRefusal?: boolean): Promise<void>
  /** Replaces the charged units by the actual ones, each once. @throws SluiceError `INVALID_COST` */
  settle(actual: Units): Promise<void>
}
