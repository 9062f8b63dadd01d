import { hasDecided } from '../memory/store.js'
import type { Store } from '../store/store.js'
import type { LimiterWarning, Warnings } from '../util/warnings.js'

/** Limiters with a store of their own that may be made once requests are served; more look like one per request. */
const MOST_MADE_LATE = 100

/** Stores that an unnamed limiter uses. */
const unnamedOn = new WeakSet<Store>()
let madeLate = 0

/** Warns of limiters that are made in a way in which they cannot limit, such as one per request. */
export function adviseOnSetUp(
  where: string,
  warnings: Warnings<LimiterWarning>,
  { name, store }: { readonly name?: string; readonly store?: Store },
): void {
  if (store === undefined) {
    if (hasDecided() && ++madeLate === MOST_MADE_LATE + 1) {
      warnings.emit(
        'SLUICE_MANY_LIMITERS',
        `${where}: more than ${MOST_MADE_LATE} limiters with memory of their own were made after the first decision: a ` +
          'limiter that is made for each request never limits; make it once, when the server starts',
      )
    }
  } else if (name === undefined) {
    if (unnamedOn.has(store)) {
      warnings.emit(
        'SLUICE_SAME_NAME',
        `${where}: another limiter without a name uses this store: where their limits are equal they share their counts; ` +
          'give each a name',
      )
    }
    unnamedOn.add(store)
  }
}
