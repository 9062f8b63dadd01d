import { memoryStore, type Store } from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import { policies } from '@sluice/policies'

interface Terms {
  /** A store in memory by default. */
  readonly store?: Store
  /** Options of the policies. */
  readonly policies?: object
  /** Options of the guard. */
  readonly guard?: object
}

/** Policies of a document that a test changes, and a guard for them. A document has the current version by default. */
export async function changingPolicies(first: object, terms: Terms = {}) {
  const { store = memoryStore() } = terms
  let document = first
  const loaded = await policies.from({
    load: () => ({ version: 1, ...document }),
    allowShrink: true,
    ...terms.policies,
  })
  const guard = createGuard<unknown>({ policies: loaded, store, ...terms.guard })
  return {
    loaded,
    guard,
    limiter: guard.limiter,
    async change(next: object) {
      document = next
      await loaded.reload()
    },
  }
}
