import { dropOldest } from '../../../util/drop-oldest.js'
import type { Count, CountTable } from './counts.js'

/** Maximum of counts remembered, as many as the fallback remembers results. */
const MAX_DROPPED = 10_000

/**
 * Counts that were dropped as nothing asked for them in a round, and still have an effect. An outage continues from them, unless
 * Redis has decided on the client since.
 */
export class DroppedCounts {
  readonly #byKey = new Map<string, Count>()

  remember(count: Count): void {
    if (!count.isInEffect) return
    const key = keyOf(count.table, count.identity)
    // Deleted first, so that the newest are last: a map is in order of insertion.
    this.#byKey.delete(key)
    this.#byKey.set(key, count)
    dropOldest(this.#byKey, MAX_DROPPED)
  }

  find(table: CountTable, identity: string): Count | undefined {
    return this.#byKey.size === 0 ? undefined : this.#byKey.get(keyOf(table, identity))
  }

  forget(table: CountTable, identity: string): void {
    if (this.#byKey.size > 0) this.#byKey.delete(keyOf(table, identity))
  }

  clear(): void {
    this.#byKey.clear()
  }
}

function keyOf({ policy, cell }: CountTable, identity: string): string {
  return `${policy}\n${cell.id}\n${identity}`
}
