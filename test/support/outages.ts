import { memoryStore, SluiceError, type Store } from '@sluice/core'
import { BANS, KEPT_CHARGES, type StoreRequest, type StoreResult, type StrikeResult } from '@sluice/core/store'
import { withMembers } from './with-members.js'

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
    [BANS]: {
      block: (...args) => reach().then(() => store[BANS].block(...args)),
      unblock: (...args) => reach().then(() => store[BANS].unblock(...args)),
      strike: (...args) => reach().then(() => store[BANS].strike?.(...args) as StrikeResult),
    },
    [KEPT_CHARGES]: { find: (...args) => reach().then(() => store[KEPT_CHARGES].find(...args)) },
    close: () => store.close(),
  }
  return distant
}

const unreachable = () => new SluiceError('STORE_UNAVAILABLE', 'the store is away')

/** The same store, whose outages fail the test, so that no local fallback goes unnoticed. */
export function insist<Kept extends Store>(store: Kept): Kept {
  const fail = (error: unknown): never => {
    throw new Error('the store was not available', { cause: error })
  }
  return withMembers(store, {
    decide(request: StoreRequest): StoreResult | Promise<StoreResult> {
      try {
        const result = store.decide(request)
        return result instanceof Promise ? result.catch(fail) : result
      } catch (error) {
        return fail(error)
      }
    },
  })
}
