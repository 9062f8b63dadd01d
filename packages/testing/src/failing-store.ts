import { memoryStore, SluiceError, type Store } from '@sluice/core'
import {
  BANS,
  KEPT_CHARGES,
  LISTS,
  type ListsOfStore,
  type Plan,
  type StoreBans,
  type StoreKeptCharges,
  type StoreRequest,
  type StoreResult,
  type StoreWaiters,
  WAITERS,
} from '@sluice/core/store'

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
  readonly [BANS]: StoreBans | undefined
  readonly [KEPT_CHARGES]: StoreKeptCharges | undefined
  readonly [WAITERS]: StoreWaiters | undefined
  readonly [LISTS]: Pick<ListsOfStore, 'given'>
  readonly #store: Store
  #error: { readonly thrown: unknown } | undefined
  #failures = 0

  constructor(store: Store) {
    this.#store = store
    const { [BANS]: bans, [KEPT_CHARGES]: charges, [WAITERS]: waiters } = store
    this[BANS] = bans && this.#bansOf(bans)
    this[KEPT_CHARGES] = charges && { find: (...args) => this.#reach(() => charges.find(...args)) }
    this[WAITERS] = waiters && this.#waitersOf(waiters)
    this[LISTS] = { given: store[LISTS]?.given }
  }

  get failures(): number {
    return this.#failures
  }

  get clock(): (() => number) | undefined {
    return this.#store.clock
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

  #bansOf(bans: StoreBans): StoreBans {
    const { strike } = bans
    return {
      block: (...args) => this.#reach(() => bans.block(...args)),
      unblock: (...args) => this.#reach(() => bans.unblock(...args)),
      ...(strike && { strike: (...args) => this.#reach(() => strike.apply(bans, args)) }),
      enforceBansOfEveryPolicy: () => bans.enforceBansOfEveryPolicy?.(),
    }
  }

  #waitersOf(waiters: StoreWaiters): StoreWaiters {
    const { report } = waiters
    return report ? { report: (...args) => this.#reach(() => report.apply(waiters, args)) } : {}
  }

  decide(request: StoreRequest): Promise<StoreResult> {
    return this.#reach(() => this.#store.decide(request))
  }

  reset(plan: Plan, identities: readonly string[]): Promise<void> {
    return this.#reach(() => this.#store.reset(plan, identities))
  }

  async clear(): Promise<void> {
    await this.#store.clear?.()
  }

  close(): Promise<void> {
    return this.#store.close()
  }
}
