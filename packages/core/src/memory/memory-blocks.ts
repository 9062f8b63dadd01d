import { emitBlock, emitUnblock } from '../blocks/block-events.js'
import { checkedAdd, checkedEntry, checkedQuery, checkedScope, entriesOf, placeOf } from '../blocks/given-blocks.js'
import type { AddBlockOptions, BlockEntry, BlockPage, BlockQuery, BlockScope, StoreBlocks } from '../store/blocks.js'
import type { StoreEvents } from '../store/events.js'
import { type IdentityByKind, startOf, textValue } from '../store/identity.js'
import { EVERY_POLICY } from '../store/store.js'
import { invalidPolicy } from '../util/errors.js'
import type { Audience } from '../util/listeners.js'
import type { Block, BlockOf } from './blocks.js'

/** What `store.blocks` needs from a memory store. */
export interface BlockTable {
  now(): number
  size(): number
  /** By number, below `size()`. One that is removed is replaced by the last. */
  at(index: number): BlockOf
  find(policy: string, identity: string): Block | undefined
  block(policy: string, identity: string, forMs: number, reason: string): void
  unblock(policy: string, identity: string): void
  keep(block: BlockOf): void
  clear(): void
  readonly listeners: Audience<StoreEvents>
}

/** Most blocks looked at for one page. */
const MOST_VISITS = 10_000

/** `store.blocks` in memory. */
export class MemoryBlocks implements StoreBlocks {
  readonly #table: BlockTable

  constructor(table: BlockTable) {
    this.#table = table
  }

  get known(): number {
    return this.#table.size()
  }

  /** From the last to the first: the last replaces one that is removed meanwhile, so none is left out. */
  async list(query?: BlockQuery): Promise<BlockPage> {
    const { cursor, most, matches } = checkedQuery(query)
    const table = this.#table
    const now = table.now()
    let next = Math.min(cursor === undefined ? table.size() : positionOf(cursor), table.size())
    const end = Math.max(0, next - MOST_VISITS)
    const entries: BlockEntry[] = []
    while (next > end && entries.length < most) {
      const found = table.at(--next)
      if (found.block.until <= now) continue
      const entry = entryOf(found)
      if (matches(entry)) entries.push(entry)
    }
    return next > 0 ? { entries, cursor: String(next) } : { entries }
  }

  async get(identity: IdentityByKind, scope?: BlockScope): Promise<BlockEntry | undefined> {
    const place = placeOf('blocks.get', identity, checkedScope('blocks.get', scope))
    const block = this.#table.find(place.policy, place.identity)
    return block && block.until > this.#table.now() ? entryOf({ ...place, block }) : undefined
  }

  async add(identity: IdentityByKind, options: AddBlockOptions): Promise<void> {
    const { forMs, reason } = checkedAdd('blocks.add', options)
    const place = placeOf('blocks.add', identity, options)
    this.#table.block(place.policy, place.identity, forMs, reason)
    emitBlock(this.#table.listeners, place, forMs, reason)
  }

  async remove(identity: IdentityByKind, scope?: BlockScope): Promise<void> {
    const place = placeOf('blocks.remove', identity, checkedScope('blocks.remove', scope))
    this.#table.unblock(place.policy, place.identity)
    emitUnblock(this.#table.listeners, place)
  }

  async removeAll(): Promise<void> {
    this.#table.clear()
  }

  export(): AsyncGenerator<BlockEntry> {
    return entriesOf(this, 1000)
  }

  async import(entries: Iterable<BlockEntry> | AsyncIterable<BlockEntry>): Promise<number> {
    let added = 0
    let index = 0
    for await (const given of entries) {
      const { policy = EVERY_POLICY, kind, value, ...block } = checkedEntry(index++, given)
      const identity = startOf(kind) + value
      const known = this.#table.find(policy, identity)
      if (block.until <= this.#table.now() || (known && known.since >= block.since)) continue
      this.#table.keep({ policy, identity, block })
      added++
    }
    return added
  }
}

function entryOf({ policy, identity, block: { reason, since, until, times, ban } }: BlockOf): BlockEntry {
  const { kind, value } = textValue(identity)
  return { ...(policy !== EVERY_POLICY && { policy }), kind, value, reason, since, until, times, ...(ban && { ban }) }
}

/** @throws SluiceError `INVALID_POLICY` */
function positionOf(cursor: string): number {
  if (/^\d{1,9}$/.test(cursor)) return Number(cursor)
  return invalidPolicy('blocks.list', 'cursor', 'the cursor of the page before', cursor)
}
