import type { CheckedQuery } from '../../blocks/given-blocks.js'
import { type NamedEntry, NamedLists } from '../../blocks/named-lists.js'
import { invalidPolicy } from '../../util/errors.js'
import type { ListRow, ListsKeeper } from './kept-list.js'

/** Maximum of entries visited for one page. */
const MAX_VISITS = 10_000

/** The lists of a memory store. */
export class MemoryLists implements ListsKeeper {
  readonly named: NamedLists
  readonly now: () => number
  readonly #changed: () => void

  constructor(now: () => number, changed: () => void) {
    this.named = new NamedLists(now)
    this.now = now
    this.#changed = changed
  }

  async loaded(): Promise<void> {}

  async add(list: string, row: ListRow): Promise<void> {
    this.named.set({ list, ...row })
    this.#changed()
  }

  async remove(list: string, identities: readonly string[]): Promise<void> {
    for (const identity of identities) this.named.delete(list, identity)
    this.#changed()
  }

  /** Removes an identity from every list. */
  forget(identity: string): void {
    for (const entry of [...this.named]) if (entry.identity === identity) this.named.delete(entry.list, identity)
  }

  async get(list: string, identity: string): Promise<ListRow | undefined> {
    return this.named.get(list, identity)
  }

  /** A page ends with the number of its last entry: changed entries get a new one, so none is skipped. */
  async page(
    list: string,
    { where, cursor, max, matches }: CheckedQuery<ListRow>,
  ): Promise<{ readonly entries: readonly ListRow[]; readonly cursor?: string }> {
    if (cursor !== undefined && !/^\d{1,15}$/.test(cursor))
      invalidPolicy(where, 'cursor', 'the cursor of the page before', cursor)
    const entries: ListRow[] = []
    let visits = 0
    let last = Number(cursor ?? 0)
    for (const [number, row] of this.named.of(list).from(last)) {
      if (entries.length === max || visits++ === MAX_VISITS) return { entries, cursor: String(last) }
      last = number
      if (row.until > this.now() && matches(row)) entries.push(row)
    }
    return { entries }
  }

  clear(): void {
    for (const { list, identity } of [...this.named]) this.named.delete(list, identity)
  }

  /** All entries in force. */
  *[Symbol.iterator](): Generator<NamedEntry> {
    for (const entry of this.named) if (entry.until > this.now()) yield entry
  }
}
