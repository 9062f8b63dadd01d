import { INSIDE } from '../../limiter/limiter.js'
import type { Units } from '../../policy/costs.js'
import { KEPT_CHARGES } from '../../store/store.js'
import type { Verdict } from '../../verdict/verdict.js'
import type { LeanFeature } from '../lean/lean-feature.js'
import { chargesById } from './charges-by-id.js'
import { charges as limiter } from './feature.js'
import { MemoryChargeLayer } from './memory-charge-layer.js'

/** `charges`: charges that are changed by their ids. */
export const charges: LeanFeature<'charges'> = {
  name: 'charges',
  limiter,
  memory(base, next) {
    const layer = new MemoryChargeLayer(base, next)
    return { layer, members: { [KEPT_CHARGES]: layer } }
  },
  // The methods take ids besides: their results differ, as in the types of `Limiter`.
  extend: (Base) =>
    class<Subject> extends Base<Subject> {
      override async refund(subject: Subject, verdict: Verdict): Promise<never> {
        const isId = verdict === undefined && typeof subject === 'string'
        return (isId ? chargesById(this[INSIDE]).refund(subject) : super.refund(subject, verdict)) as Promise<never>
      }

      override async settle(verdict: Verdict | string, actual: number | Units): Promise<never> {
        const isId = typeof verdict === 'string'
        const settled = isId ? chargesById(this[INSIDE]).settle(verdict, actual) : super.settle(verdict, actual)
        return settled as Promise<never>
      }

      override async release(verdict: Verdict | string | undefined): Promise<never> {
        const isId = typeof verdict === 'string'
        return (isId ? chargesById(this[INSIDE]).release(verdict) : super.release(verdict)) as Promise<never>
      }

      override async renew(verdict: Verdict | string): Promise<never> {
        const isId = typeof verdict === 'string'
        return (isId ? chargesById(this[INSIDE]).renew(verdict) : super.renew(verdict)) as Promise<never>
      }
    },
}
