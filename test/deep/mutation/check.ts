import type { Store } from '@sluice/core'
import type { Stage } from './replay.js'

export interface Venue extends Stage {
  /** A store on the same Redis that reads the clock of Redis. */
  readonly timed: Store
}

/** A check that a wrong script can fail: fast and deterministic. */
export interface Check {
  readonly name: string
  /** Resolves to the failure, if any, or throws it. */
  run(venue: Venue): Promise<string | undefined>
}
