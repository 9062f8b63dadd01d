import type { ChangeToRecord, Store } from '@sluice/core'

/** Makes a change, with an entry of it where the store keeps them. */
export function makeChange<Result>(store: Store, change: ChangeToRecord, make: () => Promise<Result>): Promise<Result> {
  return store.changes?.record(change, make) ?? make()
}
