import { goesBefore, type RankedBan } from '../../blocks/ban-order.js'
import { BlockedRanges } from '../../blocks/blocked-ranges.js'
import { ExpiringValues } from '../../memory/expiring-values.js'
import { rowBytes, textBytes, Usage } from '../../memory/usage.js'
import type { BlockEntry } from '../../store/entries.js'
import { Heap } from '../../util/heap.js'

export interface Block {
  readonly since: number
  readonly until: number
  /** The number of times that it was blocked, as far as known. */
  readonly times: number
  readonly reason: string
  /** Present where strikes caused it. */
  readonly ban: NonNullable<BlockEntry['ban']> | undefined
}

export interface BlockOf {
  readonly policy: string
  /** The identity as text, `kind=value`. */
  readonly identity: string
  readonly block: Block
}

/** A stored ban, with the properties that determine its order. */
interface StoredBan extends Block, RankedBan {
  readonly key: string
}

/** Bytes that blocks by hand and bans may take. */
export interface BlockRoom {
  readonly blocks: number
  /** The minimum for bans, if blocks by hand leave less of `blocks`. */
  readonly leastBans: number
}

/** Bytes of a block beside its row and its texts: the object, its instants, and the pointer to it. */
const BLOCK_BYTES = 68
/** Additional bytes of a ban: its own object, its rung, key and place, and a pointer in the order. */
const BAN_BYTES = 80

/** Blocks by policy and identity: those made by hand, and bans. */
export class BlockTable extends ExpiringValues<Block> {
  readonly #ranges = new BlockedRanges<Block>()
  readonly #bans = new Heap<StoredBan>(goesBefore)
  readonly #banUsage = new Usage()
  readonly #room: BlockRoom
  readonly #onEvicted: (ban: BlockOf) => void

  /** `onEvicted`: called with each ban that ends before its time, for lack of room. */
  constructor(usage: Usage, graceMs: number, room: BlockRoom, onEvicted: (ban: BlockOf) => void) {
    super(usage, graceMs)
    this.#room = room
    this.#onEvicted = onEvicted
  }

  /** The number of blocks made by hand. */
  get sizeByHand(): number {
    return this.size - this.#bans.size
  }

  protected endOf({ until }: Block): number {
    return until
  }

  protected bytesOf(key: string, { reason, ban }: Block): number {
    return BLOCK_BYTES + (ban ? BAN_BYTES : 0) + rowBytes(1, key) + textBytes(reason)
  }

  /** The block with a number below `size`. The last one replaces a removed one. */
  at(index: number): BlockOf {
    return { ...namesIn(this.byKey.keyAt(index)), block: this.byKey.at(index) }
  }

  find(policy: string, identity: string): Block | undefined {
    return this.byKey.get(keyOf(policy, identity))
  }

  get hasRanges(): boolean {
    return this.#ranges.size > 0
  }

  /** The blocks of an address by its networks. */
  ofRanges(policies: readonly string[], identity: string): readonly Block[] {
    return this.#ranges.find(policies, identity)
  }

  /**
   * Sets a block and returns whether there was room. For a ban there always is, as others are evicted. A block by hand can always be
   * replaced by another; if its new reason is longer and has no room, the earlier reason stays.
   */
  set(policy: string, identity: string, block: Block): boolean {
    const key = keyOf(policy, identity)
    const before = this.byKey.get(key)
    const stored = block.ban ? { ...block, key, rung: block.ban.rung, place: 0 } : this.#withRoom(key, before, block)
    if (!stored) return false
    if (before && isBan(before)) this.#forgetBan(before)
    this.put(key, before, stored)
    this.#ranges.set(policy, identity, stored)
    if (isBan(stored)) this.#banUsage.add(0, this.bytesOf(key, stored))
    const byHand = this.usage.bytes - this.#banUsage.bytes
    const max = Math.max(this.#room.blocks - byHand, this.#room.leastBans)
    // The new ban enters the order last: it begins, whatever has to be evicted for it.
    while (this.#banUsage.bytes > max && this.#bans.first) this.#evict(this.#bans.first)
    if (isBan(stored)) this.#bans.add(stored)
    return true
  }

  /** A block by hand that fits the room; undefined if there is none. */
  #withRoom(key: string, before: Block | undefined, block: Block): Block | undefined {
    const earlier = before && !isBan(before) ? before : undefined
    const more = this.bytesOf(key, block) - (earlier ? this.bytesOf(key, earlier) : 0)
    const byHand = this.usage.bytes - this.#banUsage.bytes
    if (more <= 0 || byHand + more <= this.#room.blocks) return block
    return earlier && { ...block, reason: earlier.reason }
  }

  #evict(ban: StoredBan): void {
    this.remove(ban.key, ban)
    this.#onEvicted({ ...namesIn(ban.key), block: ban })
  }

  #forgetBan(ban: StoredBan): void {
    this.#bans.delete(ban)
    this.#banUsage.add(0, -this.bytesOf(ban.key, ban))
  }

  delete(policy: string, identity: string): void {
    const key = keyOf(policy, identity)
    const block = this.byKey.get(key)
    if (block) this.remove(key, block)
  }

  protected override remove(key: string, block: Block): void {
    super.remove(key, block)
    if (isBan(block)) this.#forgetBan(block)
    const { policy, identity } = namesIn(key)
    this.#ranges.delete(policy, identity)
  }
}

function isBan(block: Block): block is StoredBan {
  return block.ban !== undefined
}

export function keyOf(policy: string, identity: string): string {
  // Names of policies have no line break, so their parts are never taken for a kind.
  return `${policy}\n${identity}`
}

function namesIn(key: string): Omit<BlockOf, 'block'> {
  const end = key.indexOf('\n')
  return { policy: key.slice(0, end), identity: key.slice(end + 1) }
}
