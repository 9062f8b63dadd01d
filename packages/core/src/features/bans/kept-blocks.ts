import {
  type CheckedQuery,
  checkedAdd,
  checkedEntry,
  checkedQuery,
  checkedScope,
  placeOf,
} from '../../blocks/given-blocks.js'
import type { AddBlockOptions, BlockPage, BlockQuery, BlockScope, StoreBlocks } from '../../store/blocks.js'
import type { BlockEntry } from '../../store/entries.js'
import type { StoreEvents } from '../../store/events.js'
import type { IdentityByKind } from '../../store/identity.js'
import type { Audience } from '../../util/listeners.js'
import type { MaybePromise } from '../../util/when-known.js'
import { emitBlock, emitUnblock } from './block-events.js'

/** A store's blocks and bans: reads and writes, with arguments that are checked. */
export interface BlocksKeeper {
  /** The number of blocks and bans that this process knows. */
  readonly known: number
  /** Maximum entries that `add` takes. */
  readonly maxAdded: number
  now(): number
  page(query: CheckedQuery<BlockEntry>): MaybePromise<BlockPage>
  /** The block or ban of an identity, which may have ended. */
  get(policy: string, identity: string): MaybePromise<BlockEntry | undefined>
  block(policy: string, identity: string, forMs: number, reason: string): MaybePromise<void>
  unblock(policy: string, identity: string): MaybePromise<void>
  clear(): MaybePromise<void>
  /** Adds exported entries, unless there are later ones. Returns the number added. */
  add(entries: readonly BlockEntry[]): MaybePromise<number>
}

/** Maximum entries of a page that `export` reads. */
const PAGE = 500

/** `store.blocks`. */
export class KeptBlocks implements StoreBlocks {
  readonly #keeper: BlocksKeeper
  readonly #listeners: Audience<StoreEvents>

  constructor(keeper: BlocksKeeper, listeners: Audience<StoreEvents>) {
    this.#keeper = keeper
    this.#listeners = listeners
  }

  get known(): number {
    return this.#keeper.known
  }

  async list(query?: BlockQuery): Promise<BlockPage> {
    return this.#keeper.page(checkedQuery(query))
  }

  async get(identity: IdentityByKind, scope?: BlockScope): Promise<BlockEntry | undefined> {
    const place = placeOf('blocks.get', identity, checkedScope('blocks.get', scope))
    const entry = await this.#keeper.get(place.policy, place.identity)
    return entry && entry.until > this.#keeper.now() ? entry : undefined
  }

  async add(identity: IdentityByKind, options: AddBlockOptions): Promise<void> {
    const { forMs, reason } = checkedAdd('blocks.add', options)
    const place = placeOf('blocks.add', identity, options)
    await this.#keeper.block(place.policy, place.identity, forMs, reason)
    emitBlock(this.#listeners, place, forMs, reason)
  }

  async remove(identity: IdentityByKind, scope?: BlockScope): Promise<void> {
    const place = placeOf('blocks.remove', identity, checkedScope('blocks.remove', scope))
    await this.#keeper.unblock(place.policy, place.identity)
    emitUnblock(this.#listeners, place)
  }

  async removeAll(): Promise<void> {
    await this.#keeper.clear()
  }

  async *export(): AsyncGenerator<BlockEntry> {
    let cursor: string | undefined
    do {
      const page: BlockPage = await this.list({ max: PAGE, ...(cursor !== undefined && { cursor }) })
      yield* page.entries
      cursor = page.cursor
    } while (cursor !== undefined)
  }

  async import(entries: Iterable<BlockEntry> | AsyncIterable<BlockEntry>): Promise<number> {
    let added = 0
    let index = 0
    let some: BlockEntry[] = []
    for await (const entry of entries) {
      some.push(checkedEntry(index++, entry))
      if (some.length < this.#keeper.maxAdded) continue
      added += await this.#keeper.add(some)
      some = []
    }
    return added + (some.length > 0 ? await this.#keeper.add(some) : 0)
  }
}
