import { memoryStore, SluiceError, type Store } from '@sluice/core'
import type { StoreRequest, StoreResult, StrikeResult } from '@sluice/core/store'

/** A store in this process that stands for a shared one, and can become unreachable. */
export interface Distant extends Store {
  isAway: boolean
}

/** Responds asynchronously, as over a network. While it is away it throws at once, as behind an open breaker. */
export function distantStore(clock: () => number): Distant {
  const store = memoryStore({ clock })
  const reach = async (): Promise<void> => {
    if (distant.isAway) throw unreachable()
  }
  const distant: Distant = {
    isAway: false,
    clock,
    decide(request) {
      if (distant.isAway) throw unreachable()
      return Promise.resolve(store.decide(request))
    },
    reset: (plan, identities) => reach().then(() => store.reset(plan, identities)),
    block: (policy, identity, forMs, reason) => reach().then(() => store.block(policy, identity, forMs, reason)),
    unblock: (policy, identity) => reach().then(() => store.unblock(policy, identity)),
    strike: (terms, identity, strike) => reach().then(() => store.strike?.(terms, identity, strike) as StrikeResult),
    keptCharge: (policy, id) => reach().then(() => store.keptCharge?.(policy, id) ?? []),
    close: () => store.close(),
  }
  return distant
}

const unreachable = () => new SluiceError('STORE_UNAVAILABLE', 'the store is away')

/** The same store, whose outages fail the test, so that no local fallback goes unnoticed. */
export function insist(store: Store): Store {
  const fail = (error: unknown): never => {
    throw new Error('the store was not available', { cause: error })
  }
  return {
    clock: store.clock,
    decide(request: StoreRequest): StoreResult | Promise<StoreResult> {
      try {
        const result = store.decide(request)
        return result instanceof Promise ? result.catch(fail) : result
      } catch (error) {
        return fail(error)
      }
    },
    reset: (plan, identities) => store.reset(plan, identities),
    block: (policy, identity, forMs, reason) => store.block(policy, identity, forMs, reason),
    unblock: (policy, identity) => store.unblock(policy, identity),
    ...(store.keptCharge && { keptCharge: store.keptCharge.bind(store) }),
    ...(store.lists && { lists: store.lists }),
    ...(store.blocks && { blocks: store.blocks }),
    ...(store.offenders && {
      noteRefusal: store.noteRefusal,
      offenders: store.offenders.bind(store),
    }),
    ...(store.reportWaiting && { reportWaiting: store.reportWaiting.bind(store) }),
    ...(store.forget && { forget: store.forget.bind(store) }),
    ...(store.on && { on: store.on.bind(store) }),
    ...(store.health && { health: store.health.bind(store) }),
    ...(store.stats && { stats: store.stats.bind(store) }),
    ...(store.list && { list: store.list.bind(store) }),
    ...(store.strike && { strike: store.strike.bind(store) }),
    enforceBansOfEveryPolicy: () => store.enforceBansOfEveryPolicy?.(),
    close: () => store.close(),
  }
}
