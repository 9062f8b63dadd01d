import type { Breaker } from '../health/breaker.js'
import type { Server } from '../scripts/run.js'
import type { CrossSlots } from './cross-slots.js'
import type { KeySlots } from './key-slots.js'

/** The state that the parts of a store share. */
export interface RedisBase extends Server {
  /** The key that exists while any identity is blocked; undefined in a cluster, where no key shares a slot with all others. */
  readonly marker: string | undefined
  /** Receives the outcome of each script. */
  readonly breaker: Breaker
  readonly slots: KeySlots
  /** Knows which masters of a cluster decide keys of several slots in one script; undefined if that is disabled. */
  readonly crossSlots: CrossSlots | undefined
}
