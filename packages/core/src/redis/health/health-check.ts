import type { StoreHealth } from '../../store/health.js'
import type { Breaker } from './breaker.js'

export interface HealthCheckOptions {
  readonly breaker: Pick<Breaker, 'cause' | 'state' | 'since'>
  /** How many decisions wait for a reply. */
  readonly pending: () => number
  /** Resolves once each master has replied; rejects where one does not. */
  readonly probe: () => Promise<unknown>
}

/** How long a round trip is taken for that of now, in ms: a route that any client may call must not be a load on Redis. */
const FRESH_MS = 1000

interface RoundTrip {
  readonly ms: number | undefined
  readonly cause: Error | undefined
  /** By the performance clock. */
  readonly at: number
}

/** `store.health()` on Redis. */
export class HealthCheck {
  readonly #options: HealthCheckOptions
  #last: RoundTrip | undefined
  /** Shared by all calls until it resolves. */
  #asking: Promise<RoundTrip> | undefined

  constructor(options: HealthCheckOptions) {
    this.#options = options
  }

  async read(): Promise<StoreHealth> {
    const { breaker, pending } = this.#options
    // While it is away, the breaker probes it.
    const trip = breaker.cause ? undefined : await this.#roundTrip()
    const { cause, state, since } = breaker
    return {
      state,
      since,
      roundTripMs: cause ? undefined : trip?.ms,
      pending: pending(),
      cause: cause ?? trip?.cause,
    }
  }

  #roundTrip(): Promise<RoundTrip> {
    if (this.#last && performance.now() - this.#last.at < FRESH_MS) return Promise.resolve(this.#last)
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined
    })
    return this.#asking
  }

  async #ask(): Promise<RoundTrip> {
    const began = performance.now()
    let cause: Error | undefined
    try {
      await this.#options.probe()
    } catch (error) {
      cause = error as Error
    }
    const at = performance.now()
    this.#last = { ms: cause ? undefined : at - began, cause, at }
    return this.#last
  }
}
