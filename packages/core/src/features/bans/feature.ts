import type { LimiterFeature } from '../../limiter/engine.js'
import { SluiceError } from '../../util/errors.js'
import { BanKeeper, KEEPER } from './ban-keeper.js'
import { ADDED_BAN_OPTIONS, addBan, BAN } from './ban-terms.js'

/** Bans that grow: `ban`. */
export const bans: LimiterFeature = {
  policyOptions: ['ban'],
  policy: addBan,
  limiter({ policy: { where } }, { ban }: { readonly ban?: object }) {
    const added = ADDED_BAN_OPTIONS.find((field) => ban?.[field as keyof typeof ban] !== undefined)
    if (added) throw new SluiceError('INVALID_POLICY', `${where}: ban: ${added}: expected none without HTTP`)
    return undefined
  },
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
