import type { LimiterFeature } from '../../limiter/engine.js'
import { BanKeeper, KEEPER } from './ban-keeper.js'
import { addBan, BAN } from './ban-terms.js'

/** Bans that grow: `ban`. */
export const bans: LimiterFeature = {
  policyOptions: ['ban'],
  policy: addBan,
  engine(engine, fallback) {
    if (!engine.policy.parts.get(BAN)) return undefined
    const keeper = new BanKeeper(engine.policy, engine.store, fallback, engine.emitter)
    engine.parts.set(KEEPER, keeper)
    return {
      complete(request, { tier }, { strikes }) {
        const { plan, identities } = request
        if (plan.ban && strikes !== false) request.strike = keeper.strikeOf(tier, plan.ban, identities)
      },
    }
  },
}
