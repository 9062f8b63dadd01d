import { memoryStore, SluiceError, type Store } from '@sluice/core'
import type { BanTerms, Plan, StoreRequest, StoreResult, Strike, StrikeResult } from '@sluice/core/store'

/** A store that fails on demand. */
export interface FailingStore extends Store {
  /**
   * Makes every later operation fail as that of a store that cannot be reached.
   *
   * @param error the error. @default SluiceError `STORE_UNAVAILABLE`, at which `unavailable` decides
   */
  fail(error?: unknown): void
  /** Makes later operations reach the store again, which has missed those in between. */
  recover(): void
  /** The number of failed operations so far. */
  readonly failures: number
}

/**
 * A store that fails on demand, like Redis in an outage: operations reject, and have no effect.
 *
 * @param store the store that works while it does not fail. @default a memory store
 * @example
 * const store = failingStore()
 * app.use(rateLimit({ store, limit: 100, window: '1m', unavailable: { decide: 'deny' } }))
 * store.fail()
 */
export function failingStore(store: Store = memoryStore()): FailingStore {
  return new Failing(store)
}

class Failing implements FailingStore {
  readonly #store: Store
  #error: { readonly thrown: unknown } | undefined
  #failures = 0

  constructor(store: Store) {
    this.#store = store
  }

  get failures(): number {
    return this.#failures
  }

  get clock(): (() => number) | undefined {
    return this.#store.clock
  }

  get lists(): Store['lists'] {
    return this.#store.lists
  }

  fail(error: unknown = new SluiceError('STORE_UNAVAILABLE', 'failingStore: fails as the test requires')): void {
    this.#error = { thrown: error }
  }

  recover(): void {
    this.#error = undefined
  }

  async #reach<T>(operation: () => T | Promise<T>): Promise<T> {
    if (!this.#error) return operation()
    this.#failures++
    throw this.#error.thrown
  }

  decide(request: StoreRequest): Promise<StoreResult> {
    return this.#reach(() => this.#store.decide(request))
  }

  reset(plan: Plan, identities: readonly string[]): Promise<void> {
    return this.#reach(() => this.#store.reset(plan, identities))
  }

  block(policy: string, identity: string, forMs: number, reason: string): Promise<void> {
    return this.#reach(() => this.#store.block(policy, identity, forMs, reason))
  }

  unblock(policy: string, identity: string): Promise<void> {
    return this.#reach(() => this.#store.unblock(policy, identity))
  }

  strike(terms: BanTerms, identity: string, strike: Strike): Promise<StrikeResult> {
    return this.#reach(() => {
      if (!this.#store.strike)
        throw new SluiceError('INVALID_POLICY', 'failingStore: expected a store that has strike()')
      return this.#store.strike(terms, identity, strike)
    })
  }

  get keptCharge(): Store['keptCharge'] {
    const { keptCharge } = this.#store
    return keptCharge && ((...args) => this.#reach(() => keptCharge.apply(this.#store, args)))
  }

  get reportWaiting(): Store['reportWaiting'] {
    const { reportWaiting } = this.#store
    return reportWaiting && ((...args) => this.#reach(() => reportWaiting.apply(this.#store, args)))
  }

  enforceBansOfEveryPolicy(): void {
    this.#store.enforceBansOfEveryPolicy?.()
  }

  async clear(): Promise<void> {
    await this.#store.clear?.()
  }

  close(): Promise<void> {
    return this.#store.close()
  }
}
