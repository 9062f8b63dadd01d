import { checkedPage } from '../store/given-blocks.js'
import { checkedDetails, checkRoom, listEntry, listedText } from '../store/given-list-entries.js'
import type { IdentityByKind } from '../store/identity.js'
import type { ListedIdentity, ListMatch } from '../store/list.js'
import { type NamedEntry, type NamedList, NamedLists } from '../store/named-lists.js'
import type { ListEntryOptions, StoreList, StoreListEntry, StoreListPage, StoreListQuery } from '../store/store-list.js'
import { invalidPolicy } from '../util/errors.js'

/** Most entries looked at for one page. */
const MOST_VISITS = 10_000

/** The lists of a memory store. */
export class MemoryLists {
  readonly #named: NamedLists
  readonly #byName = new Map<string, StoreList>()
  readonly #now: () => number
  readonly #changed: () => void

  constructor(now: () => number, changed: () => void) {
    this.#named = new NamedLists(now)
    this.#now = now
    this.#changed = changed
  }

  of(name: string): StoreList {
    let list = this.#byName.get(name)
    if (!list) {
      list = new MemoryList(name, this.#named, this.#now, this.#changed)
      this.#byName.set(name, list)
    }
    return list
  }

  set(entry: NamedEntry): void {
    this.#named.set(entry)
  }

  clear(): void {
    for (const { list, identity } of [...this.#named]) this.#named.delete(list, identity)
  }

  /** All entries that hold. */
  *[Symbol.iterator](): Generator<NamedEntry> {
    for (const entry of this.#named) if (entry.until > this.#now()) yield entry
  }
}

class MemoryList implements StoreList {
  readonly name: string
  readonly #named: NamedLists
  readonly #list: NamedList
  readonly #now: () => number
  readonly #changed: () => void

  constructor(name: string, named: NamedLists, now: () => number, changed: () => void) {
    this.name = name
    this.#named = named
    this.#list = named.of(name)
    this.#now = now
    this.#changed = changed
  }

  get kinds(): readonly string[] {
    return this.#list.kinds
  }

  get version(): number {
    return this.#list.version
  }

  get size(): number {
    return this.#list.size
  }

  match(identity: ListedIdentity): ListMatch | undefined {
    return this.#list.match(identity)
  }

  forStore(): StoreList {
    return this
  }

  async ready(): Promise<void> {}

  async close(): Promise<void> {}

  async add(identity: IdentityByKind, options?: ListEntryOptions): Promise<void> {
    const text = listedText('list.add', identity)
    const since = this.#now()
    const details = checkedDetails('list.add', options, since)
    if (!this.#list.get(text)) checkRoom('list.add', this.#named.size)
    this.#named.set({ list: this.name, identity: text, since, ...details })
    this.#changed()
  }

  async remove(identity: IdentityByKind): Promise<void> {
    this.#named.delete(this.name, listedText('list.remove', identity))
    this.#changed()
  }

  async removeAll(): Promise<void> {
    for (const { identity } of [...this.#list]) this.#named.delete(this.name, identity)
    this.#changed()
  }

  async get(identity: IdentityByKind): Promise<StoreListEntry | undefined> {
    const entry = this.#list.get(listedText('list.get', identity))
    return entry && entry.until > this.#now() ? listEntry(entry) : undefined
  }

  /** A page ends by the number of its last entry: entries that change get a new one, so none is left out. */
  async list(query?: StoreListQuery): Promise<StoreListPage> {
    const { where, cursor, most, matches } = checkedPage('list.list', query)
    if (cursor !== undefined && !/^\d{1,15}$/.test(cursor)) invalidPolicy(where, 'cursor', 'that of a page', cursor)
    const entries: StoreListEntry[] = []
    let visits = 0
    let last = Number(cursor ?? 0)
    for (const [number, entry] of this.#list.from(last)) {
      if (entries.length === most || visits++ === MOST_VISITS) return { entries, cursor: String(last) }
      last = number
      if (entry.until <= this.#now()) continue
      const shown = listEntry(entry)
      if (matches(shown)) entries.push(shown)
    }
    return { entries }
  }
}
