import { type CheckedQuery, identityText, listedValue } from '../../blocks/given-blocks.js'
import { type NamedEntry, NamedLists } from '../../blocks/named-lists.js'
import { blockEntry, type IndexEntry } from '../../redis/blocks/entry.js'
import type { EntryMirror } from '../../redis/blocks/index-copy.js'
import { pageOf } from '../../redis/blocks/index-pages.js'
import { KnownEntries, type KnownEntriesOptions } from '../../redis/blocks/known-entries.js'
import { encodeReason } from '../../redis/scripts/decode.js'
import { type IdentityByKind, startOf, textValue } from '../../store/identity.js'
import type { ListRow, ListsKeeper } from './kept-list.js'

/** How long a removal is remembered. A process that is disconnected for longer writes the entry again. */
const END_MS = 30 * 86_400_000

/** The lists of a store on Redis: an index like that of blocks, with the name of a list in place of the policy. */
export class RedisLists implements ListsKeeper {
  readonly named: NamedLists
  readonly now: () => number
  readonly #known: KnownEntries
  #isStarted = false
  #pending: Promise<void> | undefined

  constructor(options: Omit<KnownEntriesOptions, 'mirror' | 'name' | 'marker'>) {
    this.now = () => options.time.now()
    this.named = new NamedLists(this.now)
    this.#known = new KnownEntries({
      ...options,
      name: 'lists',
      mirror: mirrorOf(this.named),
      marker: undefined,
    })
  }

  loaded(): Promise<void> {
    return this.#known.loaded()
  }

  get pending(): Promise<void> | undefined {
    return this.#pending
  }

  /** Begins to read the lists, once. */
  start(): void {
    if (this.#isStarted) return
    this.#isStarted = true
    const over = () => {
      this.#pending = undefined
    }
    this.#pending = this.#known.load().then(over, over)
    this.#known.start()
  }

  suspect(): void {
    if (this.#isStarted) this.#known.suspect()
  }

  close(): void {
    this.#known.close()
  }

  add(list: string, { identity, until, reason }: ListRow): Promise<void> {
    return this.#known.add(list, identity, { until }, encodeReason(reason))
  }

  remove(policy: string, identities: readonly string[]): Promise<void> {
    return this.#known.endAll(
      identities.map((identity) => ({ policy, identity })),
      END_MS,
    )
  }

  /** Removes an identity from every list. */
  async forget(identity: string): Promise<void> {
    for (const name of await this.#known.namesOf(identity)) await this.#known.erase(name, identity, END_MS)
  }

  /** The lists with an entry in force that contains an identity or its address. */
  async namesFor(given: IdentityByKind): Promise<readonly string[]> {
    const identity = identityText('lists', given)
    const { kind } = textValue(identity)
    const found = new NamedLists(this.now)
    const names = new Set<string>()
    for await (const entry of this.#known.all()) {
      if (!entry.identity.startsWith(startOf(kind)) || (kind !== 'ip' && entry.identity !== identity)) continue
      found.set(namedEntry(entry))
      names.add(entry.policy)
    }
    const value = listedValue(given)
    return [...names].filter((name) => found.of(name).match({ kind, value }))
  }

  async get(list: string, identity: string): Promise<ListRow | undefined> {
    const entry = await this.#known.index.get(list, identity)
    return entry && !entry.isEnded ? namedEntry(entry) : undefined
  }

  page(list: string, query: CheckedQuery<ListRow>) {
    return pageOf(this.#known.index, query, (entry) => (entry.policy === list ? namedEntry(entry) : undefined))
  }
}

/** This process's lists as the mirror of an index. */
function mirrorOf(named: NamedLists): EntryMirror {
  return {
    get size() {
      return named.size
    },
    get(list, identity) {
      const entry = named.get(list, identity)
      return entry && indexEntry(entry)
    },
    set(entry, now) {
      if (entry.isEnded || entry.until <= now) named.delete(entry.policy, entry.identity)
      else named.set(namedEntry(entry))
    },
    delete: (list, identity) => named.delete(list, identity),
    *[Symbol.iterator]() {
      for (const entry of named) yield indexEntry(entry)
    },
  }
}

function namedEntry(entry: IndexEntry): NamedEntry {
  const { policy: list, identity, since, until } = entry
  return { list, identity, reason: blockEntry(entry).reason, since, until }
}

function indexEntry({ list, identity, reason, since, until }: NamedEntry): IndexEntry {
  const encoded = encodeReason(reason)
  return { policy: list, identity, until, since, times: 1, isEnded: false, encoded, isUnwritten: undefined }
}
