import type { LimiterFeature } from '../../limiter/engine.js'
import { OFFENDERS } from '../../store/offenders.js'
import { refusedBy } from '../../verdict/decision.js'
import { DECISION } from '../../verdict/verdict.js'

/** Counts of refusals by identity, for stores with `offenders`. */
export const offenders: LimiterFeature = {
  engine({ store }) {
    const note = store[OFFENDERS]?.note
    if (!note) return undefined
    return {
      concluded(verdict, isRefused) {
        if (!isRefused || verdict.kind !== 'decided') return
        for (const [policy, identities] of refusedBy(verdict[DECISION])) note(policy, [...identities])
      },
    }
  },
}
