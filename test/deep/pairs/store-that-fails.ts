import { SluiceError, type Store } from '@sluice/core'
import { PEEK, type StoreRequest, type StoreResult } from '@sluice/core/store'
import { insist } from '../../support/outages.js'

/**
 * The same store over a network. While it is away, it throws at once, as behind an open breaker. Blocks and bans hold as in a process
 * that knows them.
 */
export function withOutages(store: Store): Store & { isAway: boolean } {
  const all = insist(store)
  const reach = async (): Promise<void> => {
    if (distant.isAway) throw unreachable()
  }
  const known = async (request: StoreRequest): Promise<StoreResult> => {
    const looked = await store.decide({ ...request, op: PEEK, strike: undefined, keep: undefined })
    if (!looked.block) throw unreachable()
    return looked
  }
  const distant: Store & { isAway: boolean } = {
    ...all,
    isAway: false,
    decide: (request) => (distant.isAway ? known(request) : Promise.resolve(all.decide(request))),
    reset: (plan, identities) => reach().then(() => all.reset(plan, identities)),
    block: (policy, identity, forMs, reason) => reach().then(() => all.block(policy, identity, forMs, reason)),
    unblock: (policy, identity) => reach().then(() => all.unblock(policy, identity)),
    ...(all.strike && {
      strike: async (terms, identity, strike) => {
        await reach()
        return (all.strike as NonNullable<Store['strike']>)(terms, identity, strike)
      },
    }),
    ...(all.keptCharge && {
      keptCharge: async (policy, id) => {
        await reach()
        return (all.keptCharge as NonNullable<Store['keptCharge']>)(policy, id)
      },
    }),
  }
  return distant
}

const unreachable = () => new SluiceError('STORE_UNAVAILABLE', 'the store is away')
