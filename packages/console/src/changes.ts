import type { ChangeToRecord, Store } from '@sluice/core'
import { CHANGES } from '@sluice/core/store'

/** Makes a change, with an entry of it where the store keeps them. */
export function makeChange<Result>(store: Store, change: ChangeToRecord, make: () => Promise<Result>): Promise<Result> {
  return store[CHANGES]?.record(change, make) ?? make()
}
