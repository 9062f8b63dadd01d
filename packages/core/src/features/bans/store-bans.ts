import type { StoreBans } from '../../store/bans.js'
import type { StoreBlocks } from '../../store/blocks.js'
import type { BlocksKeeper } from './kept-blocks.js'

/** `store[BANS]` of a store that keeps blocks and counts strikes. */
export function storeBans(
  keeper: Pick<BlocksKeeper, 'block' | 'unblock'>,
  strikes: Required<Pick<StoreBans, 'strike'>>,
  blocks: StoreBlocks,
  enforceBansOfEveryPolicy: () => void,
): Required<StoreBans> {
  return {
    block: (policy, identity, forMs, reason) => keeper.block(policy, identity, forMs, reason),
    unblock: (policy, identity) => keeper.unblock(policy, identity),
    strike: (terms, identity, strike) => strikes.strike(terms, identity, strike),
    enforceBansOfEveryPolicy,
    blocks,
  }
}
