import { type CheckedQuery, checkedPage } from '../../blocks/given-blocks.js'
import type { NamedEntry, NamedList, NamedLists } from '../../blocks/named-lists.js'
import type { StoreListEntry } from '../../store/entries.js'
import type { IdentityByKind } from '../../store/identity.js'
import type { ListedIdentity, ListMatch } from '../../store/list.js'
import type { ListEntryOptions, StoreList, StoreListPage, StoreListQuery } from '../../store/store-list.js'
import { checkedDetails, checkRoom, listEntry, listedText } from './given-list-entries.js'

/** An entry without the name of its list. */
export type ListRow = Omit<NamedEntry, 'list'>

/** A store's lists: reads and writes. */
export interface ListsKeeper {
  /** The lists that this process knows. Identities are matched against these. */
  readonly named: NamedLists
  now(): number
  /**
   * Set during the first read of the lists. Resolves when that is over or the store is unavailable; undefined
   * afterwards.
   */
  readonly pending?: Promise<void> | undefined
  /** Resolves once this process knows all lists. */
  loaded(): Promise<void>
  add(list: string, row: ListRow): Promise<void>
  remove(list: string, identities: readonly string[]): Promise<void>
  get(list: string, identity: string): Promise<ListRow | undefined>
  page(
    list: string,
    query: CheckedQuery<ListRow>,
  ): Promise<{ readonly entries: readonly ListRow[]; readonly cursor?: string }>
}

/** `store.list(name)`. */
export class KeptList implements StoreList {
  readonly name: string
  readonly #keeper: ListsKeeper
  readonly #list: NamedList

  constructor(name: string, keeper: ListsKeeper) {
    this.name = name
    this.#keeper = keeper
    this.#list = keeper.named.of(name)
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

  get pending(): Promise<void> | undefined {
    return this.#keeper.pending
  }

  match(identity: ListedIdentity): ListMatch | undefined {
    return this.#list.match(identity)
  }

  forStore(): StoreList {
    return this
  }

  ready(): Promise<void> {
    return this.#keeper.loaded()
  }

  async close(): Promise<void> {}

  async add(given: IdentityByKind, options?: ListEntryOptions): Promise<void> {
    const identity = listedText('list.add', given)
    const since = this.#keeper.now()
    const details = checkedDetails('list.add', options, since)
    if (!this.#list.get(identity)) checkRoom('list.add', this.#keeper.named.size)
    await this.#keeper.add(this.name, { identity, since, ...details })
  }

  async remove(identity: IdentityByKind): Promise<void> {
    await this.#keeper.remove(this.name, [listedText('list.remove', identity)])
  }

  async removeAll(): Promise<void> {
    let cursor: string | undefined
    do {
      const page = await this.#keeper.page(this.name, { where: '', cursor, max: 100, matches: () => true })
      await this.#keeper.remove(
        this.name,
        page.entries.map(({ identity }) => identity),
      )
      cursor = page.cursor
    } while (cursor !== undefined)
  }

  async get(identity: IdentityByKind): Promise<StoreListEntry | undefined> {
    const row = await this.#keeper.get(this.name, listedText('list.get', identity))
    return row && row.until > this.#keeper.now() ? listEntry(row) : undefined
  }

  async list(query?: StoreListQuery): Promise<StoreListPage> {
    const { matches, ...page } = checkedPage('list.list', query)
    const found = await this.#keeper.page(this.name, { ...page, matches: (row) => matches(listEntry(row)) })
    return { ...found, entries: found.entries.map(listEntry) }
  }
}
