import { dropOldest } from '../../../util/drop-oldest.js'
import type { Count, CountTable } from './counts.js'

/** Maximum of counts remembered, as many as the fallback remembers results. */
const MAX_DROPPED = 10_000

/**
 * Counts of clients that had used more than half of a limit, dropped as nothing asked for them in a round. An outage continues
 * from them, unless Redis has decided on the client since.
 */
export class DroppedCounts {
  readonly #byKey = new Map<string, Count>()

  remember(count: Count): void {
    if (!isMoreThanHalf(count)) return
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

function isMoreThanHalf(count: Count): boolean {
  if (!count.observed) return false
  const values: number[] = []
  count.local.report(values, count.now(), undefined)
  const capacity = count.table.cell.limits[0]?.capacity as number
  return (values[0] as number) < capacity / 2
}

function keyOf({ policy, cell }: CountTable, identity: string): string {
  return `${policy}\n${cell.id}\n${identity}`
}
