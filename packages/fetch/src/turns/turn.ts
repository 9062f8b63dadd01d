import type { AcquireOptions } from '@sluice/core'
import type { Taken } from '../learned/learned.js'

/** How a request waits. */
export interface TurnOptions extends Pick<AcquireOptions, 'priority' | 'fairBy' | 'signal'> {
  readonly origin: string
  readonly maxWaitMs: number
}

/** The turn of a request, which it has until it is answered. */
export interface Turn {
  readonly key: string
  readonly taken: Taken
  /** How far requests were slowed when it was sent. */
  readonly slowed: number
  /** The requests of all processes in the second before, this one included. */
  readonly sentInLastSecond: number
  /** Lets the next request have its turn, if this one was alone. */
  readonly release: () => void
}
