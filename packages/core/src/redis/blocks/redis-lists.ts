import { checkedPage } from '../../store/given-blocks.js'
import { checkedDetails, checkRoom, listEntry, listedText } from '../../store/given-list-entries.js'
import type { IdentityByKind } from '../../store/identity.js'
import type { ListedIdentity, ListMatch } from '../../store/list.js'
import { type NamedEntry, type NamedList, NamedLists } from '../../store/named-lists.js'
import type {
  ListEntryOptions,
  StoreList,
  StoreListEntry,
  StoreListPage,
  StoreListQuery,
} from '../../store/store-list.js'
import { MOST_CHANGES } from './block-index.js'
import { blockEntry, type IndexEntry, keptOf } from './entry.js'
import { type EntryMirror, HeldEntries, type HeldEntriesOptions } from './held-entries.js'
import { pageOf } from './index-pages.js'

/** For how long it is remembered that an entry was removed: a process that is cut off for longer writes it again. */
const END_MS = 30 * 86_400_000

/** The lists of a store on Redis: an index like that of blocks, where the name of a list is in the place of a policy's. */
export class RedisLists {
  readonly #held: HeldEntries
  readonly #named: NamedLists
  readonly #now: () => number
  readonly #byName = new Map<string, StoreList>()

  constructor(options: Omit<HeldEntriesOptions, 'mirror' | 'name' | 'keysOf' | 'marker'>) {
    this.#now = () => options.time.now()
    this.#named = new NamedLists(this.#now)
    this.#held = new HeldEntries({
      ...options,
      name: 'lists',
      mirror: new ListMirror(this.#named),
      keysOf: () => undefined,
      marker: undefined,
    })
    this.doubt()
  }

  of(name: string): StoreList {
    let list = this.#byName.get(name)
    if (!list) {
      list = new RedisList(name, this.#held, this.#named, this.#now)
      this.#byName.set(name, list)
    }
    return list
  }

  doubt(): void {
    this.#held.doubt()
  }

  close(): void {
    this.#held.close()
  }
}

/** A list in Redis. Changes and pages go to the index; what is matched is what this process knows of it. */
class RedisList implements StoreList {
  readonly name: string
  readonly #held: HeldEntries
  readonly #named: NamedLists
  readonly #list: NamedList
  readonly #now: () => number

  constructor(name: string, held: HeldEntries, named: NamedLists, now: () => number) {
    this.name = name
    this.#held = held
    this.#named = named
    this.#list = named.of(name)
    this.#now = now
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

  ready(): Promise<void> {
    return this.#held.loaded()
  }

  async close(): Promise<void> {}

  async add(identity: IdentityByKind, options?: ListEntryOptions): Promise<void> {
    const text = listedText('list.add', identity)
    const { reason, until } = checkedDetails('list.add', options, this.#now())
    if (!this.#list.get(text)) checkRoom('list.add', this.#named.size)
    await this.#held.add(this.name, text, { until }, keptOf({ reason }))
  }

  async remove(identity: IdentityByKind): Promise<void> {
    await this.#end([listedText('list.remove', identity)])
  }

  async removeAll(): Promise<void> {
    let cursor: string | undefined
    do {
      const page = await pageOf(
        this.#held.index,
        { where: 'list.removeAll', cursor, most: MOST_CHANGES, matches: () => true },
        (entry) => (entry.policy === this.name ? entry : undefined),
      )
      await this.#end(page.entries.map(({ identity }) => identity))
      cursor = page.cursor
    } while (cursor !== undefined)
  }

  async get(identity: IdentityByKind): Promise<StoreListEntry | undefined> {
    const entry = await this.#held.index.get(this.name, listedText('list.get', identity))
    return entry && !entry.isEnded && entry.until > this.#now() ? listEntry(namedEntry(entry)) : undefined
  }

  list(query?: StoreListQuery): Promise<StoreListPage> {
    return pageOf(this.#held.index, checkedPage('list.list', query), (entry) =>
      entry.policy === this.name ? listEntry(namedEntry(entry)) : undefined,
    )
  }

  #end(identities: readonly string[]): Promise<void> {
    return this.#held.endAll(
      identities.map((identity) => ({ policy: this.name, identity })),
      END_MS,
    )
  }
}

/** The lists of this process, as what holds the index sees them. */
class ListMirror implements EntryMirror {
  readonly #named: NamedLists

  constructor(named: NamedLists) {
    this.#named = named
  }

  get size(): number {
    return this.#named.size
  }

  get(policy: string, identity: string): IndexEntry | undefined {
    const entry = this.#named.get(policy, identity)
    return entry && indexEntry(entry)
  }

  set(entry: IndexEntry, now: number): void {
    if (entry.isEnded || entry.until <= now) this.delete(entry.policy, entry.identity)
    else this.#named.set(namedEntry(entry))
  }

  delete(policy: string, identity: string): void {
    this.#named.delete(policy, identity)
  }

  *[Symbol.iterator](): Generator<IndexEntry> {
    for (const entry of this.#named) yield indexEntry(entry)
  }
}

function namedEntry(entry: IndexEntry): NamedEntry {
  const { policy: list, identity, since, until } = entry
  return { list, identity, reason: blockEntry(entry).reason, since, until }
}

function indexEntry({ list, identity, reason, since, until }: NamedEntry): IndexEntry {
  return { policy: list, identity, until, since, times: 1, isEnded: false, kept: keptOf({ reason }) }
}
