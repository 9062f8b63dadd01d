import { SluiceError, type Store } from '@sluice/core'
import {
  BANS,
  KEPT_CHARGES,
  PEEK,
  type StoreBans,
  type StoreKeptCharges,
  type StoreRequest,
  type StoreResult,
} from '@sluice/core/store'
import { insist } from '../../support/outages.js'
import { withMembers } from '../../support/with-members.js'

/**
 * The same store over a network. While it is away, it throws at once, as behind an open breaker. Blocks and bans hold as in a process
 * that knows them.
 */
export function withOutages<Kept extends Store>(store: Kept): Kept & { isAway: boolean } {
  const all = insist(store)
  const { [BANS]: bans, [KEPT_CHARGES]: charges } = all
  const reach = async (): Promise<void> => {
    if (away.isAway) throw unreachable()
  }
  const known = async (request: StoreRequest): Promise<StoreResult> => {
    const looked = await store.decide({ ...request, op: PEEK, strike: undefined, keep: undefined })
    if (!looked.block) throw unreachable()
    return looked
  }
  const away = {
    isAway: false,
    decide: (request: StoreRequest) => (away.isAway ? known(request) : Promise.resolve(all.decide(request))),
    reset: (...args: Parameters<Store['reset']>) => reach().then(() => all.reset(...args)),
    [BANS]: bans && {
      ...bans,
      block: (...args: Parameters<StoreBans['block']>) => reach().then(() => bans.block(...args)),
      unblock: (...args: Parameters<StoreBans['unblock']>) => reach().then(() => bans.unblock(...args)),
      strike: (...args: Parameters<NonNullable<StoreBans['strike']>>) => reach().then(() => bans.strike?.(...args)),
    },
    [KEPT_CHARGES]: charges && {
      find: (...args: Parameters<StoreKeptCharges['find']>) => reach().then(() => charges.find(...args)),
    },
  }
  return withMembers(all, away)
}

const unreachable = () => new SluiceError('STORE_UNAVAILABLE', 'the store is away')
