import { emitBlock, emitUnblock } from '../blocks/block-events.js'
import { checkedAdd, checkedEntry, checkedQuery, checkedScope, entriesOf, placeOf } from '../blocks/given-blocks.js'
import type { AddBlockOptions, BlockPage, BlockQuery, BlockScope, StoreBlocks } from '../store/blocks.js'
import type { BlockEntry } from '../store/entries.js'
import type { StoreEvents } from '../store/events.js'
import { type IdentityByKind, startOf, textValue } from '../store/identity.js'
import { EVERY_POLICY } from '../store/store.js'
import { invalidPolicy } from '../util/errors.js'
import type { Audience } from '../util/listeners.js'
import type { Bans } from './bans.js'
import type { BlockOf } from './blocks.js'

/** Maximum of blocks visited for one page. */
const MAX_VISITS = 10_000

/** `store.blocks` in memory. */
export class MemoryBlocks implements StoreBlocks {
  readonly #now: () => number
  readonly #bans: () => Bans
  readonly #listeners: Audience<StoreEvents>

  constructor(now: () => number, bans: () => Bans, listeners: Audience<StoreEvents>) {
    this.#now = now
    this.#bans = bans
    this.#listeners = listeners
  }

  get known(): number {
    return this.#bans().blocks.size
  }

  /** Blocks from the last to the first: the last replaces one that is removed meanwhile, so none is skipped. */
  async list(query?: BlockQuery): Promise<BlockPage> {
    const { cursor, max, matches } = checkedQuery(query)
    const { blocks } = this.#bans()
    const now = this.#now()
    let next = Math.min(cursor === undefined ? blocks.size : positionOf(cursor), blocks.size)
    const end = Math.max(0, next - MAX_VISITS)
    const entries: BlockEntry[] = []
    while (next > end && entries.length < max) {
      const found = blocks.at(--next)
      if (found.block.until <= now) continue
      const entry = entryOf(found)
      if (matches(entry)) entries.push(entry)
    }
    return next > 0 ? { entries, cursor: String(next) } : { entries }
  }

  async get(identity: IdentityByKind, scope?: BlockScope): Promise<BlockEntry | undefined> {
    const place = placeOf('blocks.get', identity, checkedScope('blocks.get', scope))
    const block = this.#bans().blocks.find(place.policy, place.identity)
    return block && block.until > this.#now() ? entryOf({ ...place, block }) : undefined
  }

  async add(identity: IdentityByKind, options: AddBlockOptions): Promise<void> {
    const { forMs, reason } = checkedAdd('blocks.add', options)
    const place = placeOf('blocks.add', identity, options)
    this.#bans().block(place.policy, place.identity, forMs, reason, this.#now())
    emitBlock(this.#listeners, place, forMs, reason)
  }

  async remove(identity: IdentityByKind, scope?: BlockScope): Promise<void> {
    const place = placeOf('blocks.remove', identity, checkedScope('blocks.remove', scope))
    this.#bans().unblock(place.policy, place.identity)
    emitUnblock(this.#listeners, place)
  }

  async removeAll(): Promise<void> {
    this.#bans().clear()
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
      const known = this.#bans().blocks.find(policy, identity)
      if (block.until <= this.#now() || (known && known.since >= block.since)) continue
      this.#bans().keep({ policy, identity, block }, this.#now())
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
