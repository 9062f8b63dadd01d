import type { StoreHealth } from '../../store/health.js'
import { SluiceError } from '../../util/errors.js'
import type { Connection } from '../clients/connection.js'
import { whenConnected } from '../scripts/run.js'
import type { Breaker, StoreState } from './breaker.js'
import { HealthCheck } from './health-check.js'
import type { Probing } from './probing.js'

/** Whether a store decides by Redis, and what keeps it from that. */
export interface Readiness {
  readonly state: StoreState
  readonly cause: Error | undefined
}

export interface StoreStateOptions {
  readonly connection: Connection
  readonly breaker: Breaker
  readonly probing: Probing
  /** How many decisions wait for a reply. */
  readonly pending: () => number
  /** Resolves once blocks are known that decisions cannot look for, or cannot be. */
  readonly started: () => Promise<void> | undefined
}

/** Whether Redis decides for a store, now and from when on. */
export class StoreReadiness {
  readonly #options: StoreStateOptions
  readonly #health: HealthCheck
  /** What decisions fail with from `close` on. One error for all: a stack for each would cost more than the decision. */
  #closed: SluiceError | undefined
  #closedAt = 0

  constructor(options: StoreStateOptions) {
    this.#options = options
    this.#health = new HealthCheck({ ...options, probe: () => options.probing.everywhere() })
  }

  get closed(): SluiceError | undefined {
    return this.#closed
  }

  /** From now on it is not ready. */
  close(): void {
    this.#closed = new SluiceError('STORE_UNAVAILABLE', 'redis: the store is closed')
    this.#closedAt = Date.now()
  }

  /** Never rejects. */
  async ready(): Promise<Readiness> {
    const { connection, probing, started, breaker } = this.#options
    try {
      await whenConnected(connection)
      await probing.everywhere()
      await started()
    } catch (error) {
      return { state: 'unavailable', cause: error as Error }
    }
    const { cause } = breaker
    return cause ? { state: 'unavailable', cause } : { state: 'available', cause: undefined }
  }

  async health(): Promise<StoreHealth> {
    const cause = this.#closed
    if (!cause) return this.#health.read()
    const { pending } = this.#options
    return { state: 'unavailable', since: this.#closedAt, roundTripMs: undefined, pending: pending(), cause }
  }
}
