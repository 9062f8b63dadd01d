import type { Store } from '../store/store.js'

/** The stores of this process that limiters use, while they are referenced elsewhere. */
const stores = new Set<WeakRef<Store>>()
const known = new WeakSet<Store>()
const gone = new FinalizationRegistry<WeakRef<Store>>((ref) => stores.delete(ref))

export function noteStoreInUse(store: Store): void {
  if (known.has(store)) return
  known.add(store)
  const ref = new WeakRef(store)
  stores.add(ref)
  gone.register(store, ref)
}

/** The stores in the order in which limiters took them. */
export function storesInUse(): readonly Store[] {
  return [...stores].flatMap((ref) => ref.deref() ?? [])
}
