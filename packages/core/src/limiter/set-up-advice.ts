import { hasDecided } from '../memory/counts.js'
import type { PolicyChoice } from '../policy/policy.js'
import type { Store } from '../store/store.js'
import type { LimiterWarning, Warnings } from '../util/warnings.js'

/** Maximum of limiters with their own store that are made after the first request; more look like one per request. */
const MAX_MADE_LATE = 100
/** The same for limiters that have one name and the same limits. */
const MAX_ALIKE = 2

/** Stores that a limiter without a name uses, with the latest of these. */
const unnamedOn = new WeakMap<Store, Warnings<LimiterWarning>>()
/** The numbers of limiters made late, by their names and limits. */
const alike = new Map<string, number>()
let madeLate = 0

/** Warns about limiters that are made in a way in which they cannot limit, such as one per request. */
export function adviseOnSetUp(
  policy: PolicyChoice<never>,
  warnings: Warnings<LimiterWarning>,
  { name, store }: { readonly name?: string; readonly store?: Store },
): void {
  const { where } = policy
  if (store === undefined) {
    const count = hasDecided() && tooManyMade(policy)
    if (!count) return
    warnings.emit(
      'SLUICE_MANY_LIMITERS',
      `${where}: ${count} with memory of their own were made after the first decision: a limiter that is made for each request ` +
        'never limits; make it once, when the server starts',
    )
  } else if (name === undefined) {
    const other = unnamedOn.get(store)
    if (other) {
      warnings.emit(
        'SLUICE_SAME_NAME',
        `${where}: another limiter without a name uses this store, ${other.withPlace(where)}: where their limits are equal they ` +
          'share their counts; give each a name',
      )
    }
    unnamedOn.set(store, warnings)
  }
}

/** The excess that this limiter causes, as text; undefined before and after, as each is reported once. */
function tooManyMade({ where, all }: PolicyChoice<never>): string | undefined {
  if (madeLate > MAX_MADE_LATE) return undefined
  // Functions are left out: one that is made for each request differs each time.
  const limits = `${where} ${JSON.stringify(all.map((each) => each.limits))}`
  const count = (alike.get(limits) ?? 0) + 1
  alike.set(limits, count)
  if (count > MAX_ALIKE)
    return count === MAX_ALIKE + 1 ? `${count} limiters of this name and with the same limits` : undefined
  return ++madeLate > MAX_MADE_LATE ? `more than ${MAX_MADE_LATE} limiters` : undefined
}
