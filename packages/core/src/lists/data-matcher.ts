import type { ListedIdentity, ListMatch } from '../store/list.js'
import { ipAddress } from '../util/ip-address.js'
import type { ListData } from './list-data.js'
import { findRange, type RangeTable, sizeOf } from './range-table.js'
import { textAt } from './text-pool.js'
import { findText, type TextTable } from './text-table.js'

/** Looks identities up in the data of a list. */
export class DataMatcher {
  readonly kinds: readonly string[]
  readonly #data: ListData
  readonly #texts: ReadonlyMap<string, TextTable>
  readonly #now: () => number

  constructor(data: ListData, now: () => number = Date.now) {
    this.#data = data
    this.#texts = new Map(data.texts)
    this.#now = now
    const hasRanges = data.v4.owners.length > 0 || data.v6.owners.length > 0
    this.kinds = [...(hasRanges ? ['ip'] : []), ...this.#texts.keys()]
  }

  match(identity: ListedIdentity): ListMatch | undefined {
    return identity.kind === 'ip' ? this.#matchAddress(identity) : this.#matchText(identity)
  }

  #matchAddress({ value, address = ipAddress(value) }: ListedIdentity): ListMatch | undefined {
    if (!address) return undefined
    const table = address.isIPv4 ? this.#data.v4 : this.#data.v6
    const found = findRange(table, address, this.#now)
    return found < 0 ? undefined : this.#matched(table, found, table)
  }

  #matchText({ kind, value }: ListedIdentity): ListMatch | undefined {
    const table = this.#texts.get(kind)
    if (!table) return undefined
    const found = findText(table, value, this.#now)
    return found < 0 ? undefined : this.#matched(table, found, undefined)
  }

  #matched(
    { ends, reasons }: { readonly ends: Float64Array | undefined; readonly reasons: Int32Array | undefined },
    found: number,
    ranges: RangeTable | undefined,
  ): ListMatch {
    const reason = reasons?.[found] ?? -1
    const endsAt = ends?.[found] ?? Number.POSITIVE_INFINITY
    return {
      reason: reason < 0 ? '' : textAt(this.#data.reasons, reason),
      expiresAt: endsAt === Number.POSITIVE_INFINITY ? undefined : endsAt,
      // Only where one list allows and another denies does it matter.
      get size() {
        return ranges ? sizeOf(ranges, found) : 1
      },
    }
  }
}
