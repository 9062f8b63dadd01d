import type { List, ListedIdentity, ListMatch } from '../../store/list.js'
import { ipAddress } from '../../util/ip-address.js'
import { propertyOf } from '../../util/property-of.js'
import { RangeTree } from '../../util/range-tree.js'
import type { Entries, ListData } from './list-data.js'
import { findText, type TextTable, textAt } from './text-table.js'

/** Looks identities up in the data of a list. */
export class DataMatcher {
  readonly kinds: readonly string[]
  readonly #data: ListData
  readonly #v4: RangeTree
  readonly #v6: RangeTree
  readonly #texts: ReadonlyMap<string, Entries<TextTable>>
  readonly #holds: (end: number) => boolean

  constructor(data: ListData, now: () => number = Date.now) {
    this.#data = data
    this.#v4 = new RangeTree(1, data.v4.index)
    this.#v6 = new RangeTree(4, data.v6.index)
    this.#texts = new Map(data.texts)
    this.#holds = (end) => end === Number.POSITIVE_INFINITY || end > now()
    const hasRanges = data.v4.ends.length > 0 || data.v6.ends.length > 0
    this.kinds = [...(hasRanges ? ['ip'] : []), ...this.#texts.keys()]
  }

  match(identity: ListedIdentity): ListMatch | undefined {
    return identity.kind === 'ip' ? this.#matchAddress(identity) : this.#matchText(identity)
  }

  #matchAddress(identity: ListedIdentity): ListMatch | undefined {
    const address = propertyOf(identity, 'address') ?? ipAddress(identity.value)
    if (!address) return undefined
    const tree = address.isIPv4 ? this.#v4 : this.#v6
    const entries = address.isIPv4 ? this.#data.v4 : this.#data.v6
    const found = tree.find(address, entries.ends, this.#holds)
    return found === 0 ? undefined : this.#matched(entries, found, tree.sizeOf(found))
  }

  #matchText({ kind, value }: ListedIdentity): ListMatch | undefined {
    const entries = this.#texts.get(kind)
    if (!entries) return undefined
    const found = findText(entries.index, value)
    return found >= 0 && this.#holds(entries.ends[found] as number) ? this.#matched(entries, found, 1) : undefined
  }

  #matched({ ends, reasons }: Entries<unknown>, found: number, size: number | bigint): ListMatch {
    const end = ends[found] as number
    return {
      reason: textAt(this.#data.reasons, reasons[found] as number),
      expiresAt: end === Number.POSITIVE_INFINITY ? undefined : end,
      size,
    }
  }
}

/** A list that never changes. */
export class FixedList extends DataMatcher implements List {
  readonly name: string
  readonly version = 1

  constructor(name: string, data: ListData) {
    super(data)
    this.name = name
  }

  async ready(): Promise<void> {}

  async close(): Promise<void> {}
}
