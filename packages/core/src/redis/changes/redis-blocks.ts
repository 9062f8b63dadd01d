import { emitBlock, emitUnblock } from '../../blocks/block-events.js'
import { checkedAdd, checkedEntry, checkedQuery, checkedScope, entriesOf, placeOf } from '../../blocks/given-blocks.js'
import type { AddBlockOptions, BlockEntry, BlockPage, BlockQuery, BlockScope, StoreBlocks } from '../../store/blocks.js'
import type { StoreEvents } from '../../store/events.js'
import { type IdentityByKind, startOf } from '../../store/identity.js'
import { EVERY_POLICY } from '../../store/store.js'
import type { Audience } from '../../util/listeners.js'
import { MAX_CHANGES, PAGE } from '../blocks/block-index.js'
import { blockEntry, type IndexEntry } from '../blocks/entry.js'
import { pageOf } from '../blocks/index-pages.js'
import type { MirroredBlocks } from '../blocks/mirrored-blocks.js'
import { encodeBlock } from '../scripts/decode.js'
import type { BlockChanges } from './block-changes.js'

export interface RedisBlocksOptions {
  readonly mirrored: MirroredBlocks
  readonly now: () => number
  readonly changes: BlockChanges
  readonly listeners: Audience<StoreEvents>
}

/** `store.blocks` on Redis. Reads the index itself, not this process's mirror. */
export class RedisBlocks implements StoreBlocks {
  readonly #options: RedisBlocksOptions

  constructor(options: RedisBlocksOptions) {
    this.#options = options
  }

  get known(): number {
    return this.#options.mirrored.size
  }

  async list(query?: BlockQuery): Promise<BlockPage> {
    return pageOf(this.#options.mirrored.index, checkedQuery(query), blockEntry)
  }

  async get(identity: IdentityByKind, scope?: BlockScope): Promise<BlockEntry | undefined> {
    const place = placeOf('blocks.get', identity, checkedScope('blocks.get', scope))
    const entry = await this.#options.mirrored.index.get(place.policy, place.identity)
    return entry && !entry.isEnded && entry.until > this.#options.now() ? blockEntry(entry) : undefined
  }

  async add(identity: IdentityByKind, options: AddBlockOptions): Promise<void> {
    const { forMs, reason } = checkedAdd('blocks.add', options)
    const place = placeOf('blocks.add', identity, options)
    await this.#options.changes.block(place.policy, place.identity, forMs, reason)
    emitBlock(this.#options.listeners, place, forMs, reason)
  }

  async remove(identity: IdentityByKind, scope?: BlockScope): Promise<void> {
    const place = placeOf('blocks.remove', identity, checkedScope('blocks.remove', scope))
    await this.#options.changes.unblock(place.policy, place.identity)
    emitUnblock(this.#options.listeners, place)
  }

  removeAll(): Promise<void> {
    return this.#options.changes.removeAll()
  }

  export(): AsyncGenerator<BlockEntry> {
    return entriesOf(this, PAGE)
  }

  async import(entries: Iterable<BlockEntry> | AsyncIterable<BlockEntry>): Promise<number> {
    let added = 0
    let index = 0
    let some: IndexEntry[] = []
    for await (const entry of entries) {
      some.push(indexEntry(checkedEntry(index++, entry)))
      if (some.length < MAX_CHANGES) continue
      added += await this.#options.changes.add(some)
      some = []
    }
    return added + (some.length > 0 ? await this.#options.changes.add(some) : 0)
  }
}

function indexEntry(entry: BlockEntry): IndexEntry {
  const { policy = EVERY_POLICY, kind, value, since, until, times } = entry
  return { policy, identity: startOf(kind) + value, since, until, times, isEnded: false, encoded: encodeBlock(entry) }
}
