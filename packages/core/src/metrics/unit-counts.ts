import type { ReadablePlan } from '../policy/plan.js'
import type { StoreRequest } from '../store/store.js'
import { isOwnUnit } from '../store/units.js'
import type { UnitCounts } from './snapshot.js'

/** Units of one policy beyond are not counted. */
const MAX_UNITS = 50

/** Counts charges and refunds of one policy in units of the user's own. */
export class UnitCounters {
  readonly #byUnit = new Map<string, { charged: number; refunded: number }>()

  /** Takes a charge or a refund. All limits of a unit are charged alike. */
  add({ plan, costs }: StoreRequest, field: 'charged' | 'refunded'): void {
    const { units, takesOnes } = plan as ReadablePlan
    if (takesOnes) return
    for (const [c, unit] of units.entries()) {
      if (!isOwnUnit(unit) || units.indexOf(unit) !== c) continue
      const counts = this.#byUnit.get(unit) ?? { charged: 0, refunded: 0 }
      if (this.#byUnit.size < MAX_UNITS) this.#byUnit.set(unit, counts)
      counts[field] += costs[c] as number
    }
  }

  read(policy: string): UnitCounts[] {
    return [...this.#byUnit].map(([unit, counts]) => ({ policy, unit, ...counts }))
  }
}
