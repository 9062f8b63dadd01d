import type { Store } from '@sluice/core'
import type { Stage } from './replay.js'

export interface Venue extends Stage {
  /** On the same Redis, by its own clock. */
  readonly timed: Store
}

/** Something that a wrong script can fail: quick, and always the same. */
export interface Check {
  readonly name: string
  /** What is wrong, if anything; may throw that as well. */
  run(venue: Venue): Promise<string | undefined>
}
