import { INSIDE } from '../../limiter/limiter.js'
import { BANS } from '../../store/bans.js'
import type { IdentityByKind, KeyValue } from '../../store/identity.js'
import type { LeanFeature } from '../lean/lean-feature.js'
import type { BlockOptions, StrikeOptions } from './block-options.js'
import { block, strike, unblock } from './blocking.js'
import { bans as limiter } from './feature.js'
import { MemoryBanLayer } from './memory-ban-layer.js'
import { requestBans as guard } from './request-feature.js'

/** `ban`, and `block`, `unblock` and `strike` of limiters. */
export const bans: LeanFeature<'bans'> = {
  name: 'bans',
  limiter,
  guard,
  memory(base, next) {
    const layer = new MemoryBanLayer(base, next, { changed: () => {}, evicted: () => {} })
    return {
      layer,
      members: {
        [BANS]: {
          strike: (terms, identity, strike) => layer.strike(terms, identity, strike),
          block: (policy, identity, forMs, reason) => layer.bans.block(policy, identity, forMs, reason, base.now()),
          unblock: (policy, identity) => layer.bans.unblock(policy, identity),
        },
      },
    }
  },
  extend: (Base) =>
    class<Subject> extends Base<Subject> {
      async block(identity: KeyValue | IdentityByKind, options: BlockOptions) {
        return block(this[INSIDE], identity, options)
      }

      async unblock(identity: KeyValue | IdentityByKind) {
        return unblock(this[INSIDE], identity)
      }

      async strike(identity: KeyValue | IdentityByKind, options: StrikeOptions = {}) {
        return strike(this[INSIDE], identity, options)
      }
    },
}
