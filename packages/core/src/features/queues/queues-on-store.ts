import type { Store } from '../../store/store.js'
import { getOrInsert } from '../../util/get-or-insert.js'
import type { Timing } from '../../util/timing.js'
import { WaitQueues } from './wait-queue.js'

/** The queues of each policy on a store, while a limiter uses them. */
const queues = new WeakMap<Store, Map<string, WeakRef<WaitQueues>>>()
const gone = new FinalizationRegistry<() => void>((forget) => forget())

/**
 * The queues of all limiters of a policy on a store: they wait for the same units, and one of them may return these. `timing`: the
 * same for all limiters of a store.
 */
export function queuesOn(store: Store, policy: string, timing: Timing): WaitQueues {
  const ofStore = getOrInsert(queues, store, () => new Map<string, WeakRef<WaitQueues>>())
  const known = ofStore.get(policy)?.deref()
  if (known) return known
  const newQueues = new WaitQueues(timing)
  const ref = new WeakRef(newQueues)
  ofStore.set(policy, ref)
  gone.register(newQueues, () => {
    if (ofStore.get(policy) === ref) ofStore.delete(policy)
  })
  return newQueues
}
