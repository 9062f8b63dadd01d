import calculateSlot from 'cluster-key-slot'
import type { SluiceError } from '../../util/errors.js'
import type { Connection } from '../clients/connection.js'
import type { Breaker } from '../health/breaker.js'
import { keyStart } from '../scripts/keys.js'

/** The slots of identities' keys. Without a cluster, all keys are on slot 0. */
export class KeySlots {
  readonly isCluster: boolean
  readonly #prefix: string
  readonly #breaker: Breaker

  constructor({ isCluster }: Connection, prefix: string, breaker: Breaker) {
    this.isCluster = isCluster
    this.#prefix = prefix
    this.#breaker = breaker
  }

  of(identity: string): number {
    return this.isCluster ? calculateSlot(`${keyStart(this.#prefix, identity)}}`) : 0
  }

  ofAll(identities: readonly string[]): number[] {
    return identities.map((identity) => this.of(identity))
  }

  areOne(identities: readonly string[]): boolean {
    return !this.isCluster || identities.length === 1 || isOne(this.ofAll(identities))
  }

  /** Why the servers of these identities are not used; undefined if they are. */
  causeFor(identities: readonly string[]): SluiceError | undefined {
    for (const identity of identities) {
      const cause = this.#breaker.causeFor(this.of(identity))
      if (cause) return cause
    }
    return undefined
  }

  /** Throws if the server of an identity is known to be unavailable. Synchronous, as nothing waits for such a Redis. */
  requireServer(identity: string): void {
    const cause = this.#breaker.causeFor(this.of(identity))
    if (cause) throw cause
  }
}

export function isOne(slots: readonly number[]): boolean {
  return slots.every((slot) => slot === slots[0])
}
