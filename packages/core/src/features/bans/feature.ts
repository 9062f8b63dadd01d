import type { LimiterFeature } from '../../limiter/engine.js'
import { SluiceError } from '../../util/errors.js'
import { ADDED_BAN_OPTIONS, addBan, POLICY_BAN } from './ban-terms.js'
import { STRIKE_COUNTER, StrikeCounter } from './strike-counter.js'

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
    if (!engine.policy.parts.get(POLICY_BAN)) return undefined
    const counter = new StrikeCounter(engine.policy, engine.store, fallback, engine.emitter)
    engine.parts.set(STRIKE_COUNTER, counter)
    return {
      complete(request, { tier }, { strikes }) {
        const { plan, identities } = request
        if (plan.ban && strikes !== false) request.strike = counter.strikeOf(tier, plan.ban, identities)
      },
    }
  },
}
