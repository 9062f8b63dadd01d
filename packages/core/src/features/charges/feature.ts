import type { LimiterFeature } from '../../limiter/engine.js'
import { NEW_CHARGE } from '../../store/kept-charge.js'
import { KEPT_CHARGES } from '../../store/store.js'
import { invalidPolicy } from '../../util/errors.js'
import { addKeeping, KEPT } from './charge-terms.js'
import { BY_ID, KeptCharges } from './charges-by-id.js'

/** Charges that any process changes by their ids: `charges`. */
export const charges: LimiterFeature = {
  policyOptions: ['charges'],
  policy: addKeeping,
  engine({ policy, store, parts, charges: ledger }, fallback) {
    const keeps = policy.parts.get(KEPT)
    if (!keeps) return undefined
    if (!store[KEPT_CHARGES]) {
      invalidPolicy(policy.where, 'charges', 'none on this store, which keeps no charges by store[KEPT_CHARGES]', keeps)
    }
    parts.set(BY_ID, new KeptCharges(policy, [() => fallback.local, () => store], ledger))
    return {
      chargeForm: 'a verdict of this limiter, or the id of a charge',
      complete(request) {
        const { keeps } = request.plan
        if (keeps) request.keep = { ...NEW_CHARGE, forMs: keeps.forMs }
      },
    }
  },
}
