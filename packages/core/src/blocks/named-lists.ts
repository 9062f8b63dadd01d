import { startOf, textValue } from '../store/identity.js'
import type { ListedIdentity, ListMatch } from '../store/list.js'
import { getOrInsert } from '../util/get-or-insert.js'
import { ipAddress } from '../util/ip-address.js'
import { sizeOfRange } from '../util/ip-range.js'
import { propertyOf } from '../util/property-of.js'
import { RangeMap } from '../util/range-map.js'
import { rangeIn } from './blocked-ranges.js'

/** An entry of one of a store's lists. */
export interface NamedEntry {
  readonly list: string
  /** As text, `kind=value`; for `ip`, a range as `rangeText` writes it. */
  readonly identity: string
  readonly reason: string
  readonly since: number
  /** By the store's clock; `FOREVER` for an entry without an end. */
  readonly until: number
}

/** The end of an entry without one: the largest number of six bytes. */
export const FOREVER = 2 ** 48 - 1
/** Maximum entries of a store's lists. */
export const MAX_LISTED = 100_000
/** Number of entries checked for their end with each entry that is added. */
const SWEPT_PER_ENTRY = 2

/** The lists of a store as one process knows them. */
export class NamedLists {
  readonly #byName = new Map<string, NamedList>()
  readonly #now: () => number
  #size = 0
  /** Position of the walk that removes ended entries. */
  #walk: Iterator<NamedEntry> = this[Symbol.iterator]()

  constructor(now: () => number) {
    this.#now = now
  }

  get size(): number {
    return this.#size
  }

  /** The list of this name, which may be empty. */
  of(name: string): NamedList {
    return getOrInsert(this.#byName, name, () => new NamedList(this.#now))
  }

  get(name: string, identity: string): NamedEntry | undefined {
    return this.#byName.get(name)?.get(identity)
  }

  set(entry: NamedEntry): void {
    if (this.of(entry.list).set(entry)) this.#size++
    this.#sweep(SWEPT_PER_ENTRY)
  }

  delete(name: string, identity: string): void {
    if (this.#byName.get(name)?.delete(identity)) this.#size--
  }

  *[Symbol.iterator](): Generator<NamedEntry> {
    for (const list of this.#byName.values()) yield* list
  }

  /** Walks in a circle, a few entries at a time. */
  #sweep(max: number): void {
    for (let n = 0; n < max; n++) {
      const { value, done } = this.#walk.next()
      if (done) {
        this.#walk = this[Symbol.iterator]()
        return
      }
      if (value.until <= this.#now()) this.delete(value.list, value.identity)
    }
  }
}

interface Listed {
  readonly entry: NamedEntry
  readonly size: number | bigint
}

/** One list of a store. Finds the smallest entry that contains an identity, without a rebuild on every change. */
export class NamedList {
  /** Increases with every change. */
  version = 1
  kinds: readonly string[] = []
  /** Entries with the number of their last change, in the order of these numbers. */
  readonly #entries = new Map<string, readonly [number: number, entry: NamedEntry]>()
  readonly #ranges = new RangeMap<Listed>()
  readonly #counts = new Map<string, number>()
  readonly #holds: (listed: Listed) => boolean

  constructor(now: () => number) {
    this.#holds = ({ entry }) => entry.until > now()
  }

  get size(): number {
    return this.#entries.size
  }

  get(identity: string): NamedEntry | undefined {
    return this.#entries.get(identity)?.[1]
  }

  *[Symbol.iterator](): Generator<NamedEntry> {
    for (const [, entry] of this.#entries.values()) yield entry
  }

  /** Entries that changed after a number, each with the number of its change. */
  *from(after: number): Generator<readonly [number: number, entry: NamedEntry]> {
    for (const numbered of this.#entries.values()) if (numbered[0] > after) yield numbered
  }

  match(identity: ListedIdentity): ListMatch | undefined {
    const found = this.#find(identity)
    if (!found || !this.#holds(found)) return undefined
    const { reason, until } = found.entry
    return { reason, expiresAt: until === FOREVER ? undefined : until, size: found.size }
  }

  #find(identity: ListedIdentity): Listed | undefined {
    const { kind, value } = identity
    if (kind !== 'ip') {
      const entry = this.get(startOf(kind) + value)
      return entry && { entry, size: 1 }
    }
    const known = this.#ranges.size > 0 ? (propertyOf(identity, 'address') ?? ipAddress(value)) : undefined
    return known && this.#ranges.find(known, this.#holds)
  }

  /** Returns whether the entry is new. A replaced entry moves to the end. */
  set(entry: NamedEntry): boolean {
    const isNew = !this.#entries.delete(entry.identity)
    this.version++
    this.#entries.set(entry.identity, [this.version, entry])
    const range = rangeIn(entry.identity)
    if (range) this.#ranges.set(range, { entry, size: sizeOfRange(range) })
    if (isNew) this.#count(entry.identity, 1)
    return isNew
  }

  /** Returns whether the entry existed. */
  delete(identity: string): boolean {
    if (!this.#entries.delete(identity)) return false
    const range = rangeIn(identity)
    if (range) this.#ranges.delete(range)
    this.version++
    this.#count(identity, -1)
    return true
  }

  #count(identity: string, more: number): void {
    const { kind } = textValue(identity)
    const count = (this.#counts.get(kind) ?? 0) + more
    if (count > 0) this.#counts.set(kind, count)
    else this.#counts.delete(kind)
    if (this.#counts.size !== this.kinds.length) this.kinds = [...this.#counts.keys()]
  }
}
