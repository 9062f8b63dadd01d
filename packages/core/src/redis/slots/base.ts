import type { Connection } from '../clients/connection.js'
import type { Breaker } from '../health/breaker.js'
import type { CrossSlots } from './cross-slots.js'
import type { KeySlots } from './key-slots.js'

/** What the parts of a store have in common. */
export interface RedisBase {
  readonly connection: Connection
  /** What every key begins with. */
  readonly prefix: string
  readonly timeoutMs: number
  readonly clock: (() => number) | undefined
  /** The key that exists while any identity is blocked; undefined in a cluster, where no key shares a slot with all others. */
  readonly marker: string | undefined
  /** Gets the outcome of each script. */
  readonly breaker: Breaker
  readonly slots: KeySlots
  /** Which masters of a cluster decide keys of several slots in one script; undefined where none is to. */
  readonly crossSlots: CrossSlots | undefined
}
