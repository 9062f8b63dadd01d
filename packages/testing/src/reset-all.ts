import type { Store } from '@sluice/core'

/**
 * Empties a store between tests: the state of every limit, and every block.
 *
 * @param store one with `clear`, such as a memory store. The keys of a Redis store are in Redis: empty that, or give each test
 * a `prefix` of its own
 * @throws TypeError for a store that has no `clear`
 * @example beforeEach(() => resetAll(store))
 */
export async function resetAll(store: Store): Promise<void> {
  if (!store.clear) {
    throw new TypeError('resetAll: this store has no clear(); for Redis, flush the database or use a prefix per test')
  }
  await store.clear()
}
