import type { StoreHealth } from '../../store/health.js'
import { SluiceError } from '../../util/errors.js'
import { whenConnected } from '../scripts/run.js'
import type { Breaker, StoreState } from './breaker.js'
import { type ProbingOptions, probeMasters } from './probing.js'

/** Whether a store uses Redis, and the error if it does not. */
export interface Readiness {
  readonly state: StoreState
  readonly cause: Error | undefined
}

export interface StoreStateOptions extends ProbingOptions {
  readonly breaker: Breaker
  /** Number of decisions that wait for a reply. */
  readonly pending: () => number
  /** Resolves once blocks without keys are known, or reading them has failed. */
  readonly started: () => Promise<void> | undefined
}

/** How long a measured round trip is reused, in ms: a route that any client may call must not put load on Redis. */
const FRESH_MS = 1000

interface RoundTrip {
  readonly ms?: number
  readonly cause?: Error
}

/** Reports whether a store uses Redis, and since when. */
export class StoreReadiness {
  readonly #options: StoreStateOptions
  /**
   * The error of decisions after `close`. All decisions get the same error: a stack per decision would cost more than
   * the decision.
   */
  #closed: SluiceError | undefined
  #closedAt = 0
  /** Shared by all calls until `#freshUntil`, by the performance clock. */
  #trip: Promise<RoundTrip> = Promise.resolve({})
  #freshUntil = 0

  constructor(options: StoreStateOptions) {
    this.#options = options
  }

  get closed(): SluiceError | undefined {
    return this.#closed
  }

  /** Marks the store as closed. */
  close(): void {
    this.#closed = new SluiceError('STORE_UNAVAILABLE', 'redis: the store is closed')
    this.#closedAt = Date.now()
  }

  /** Never rejects. */
  async ready(): Promise<Readiness> {
    const { started, breaker } = this.#options
    try {
      await whenConnected(this.#options)
      await probeMasters(this.#options)
      await started()
    } catch (error) {
      return { state: 'unavailable', cause: error as Error }
    }
    const { state, cause } = breaker
    return { state, cause }
  }

  async health(): Promise<StoreHealth> {
    const { breaker, pending } = this.#options
    const closed = this.#closed
    if (closed) {
      return { state: 'unavailable', since: this.#closedAt, roundTripMs: undefined, pending: pending(), cause: closed }
    }
    // During an outage, the breaker probes Redis.
    const trip = breaker.cause ? {} : await this.#roundTrip()
    const { cause, state, since } = breaker
    return { state, since, roundTripMs: cause ? undefined : trip.ms, pending: pending(), cause: cause ?? trip.cause }
  }

  #roundTrip(): Promise<RoundTrip> {
    if (performance.now() >= this.#freshUntil) {
      this.#freshUntil = Number.POSITIVE_INFINITY
      this.#trip = this.#measure()
    }
    return this.#trip
  }

  async #measure(): Promise<RoundTrip> {
    const began = performance.now()
    try {
      await probeMasters(this.#options)
      return { ms: performance.now() - began }
    } catch (error) {
      return { cause: error as Error }
    } finally {
      this.#freshUntil = performance.now() + FRESH_MS
    }
  }
}
