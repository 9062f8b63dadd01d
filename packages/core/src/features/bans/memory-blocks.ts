import type { CheckedQuery } from '../../blocks/given-blocks.js'
import type { WallClock } from '../../memory/clock.js'
import type { BlockPage } from '../../store/blocks.js'
import type { BlockEntry } from '../../store/entries.js'
import { startOf, textValue } from '../../store/identity.js'
import { EVERY_POLICY } from '../../store/store.js'
import { invalidPolicy } from '../../util/errors.js'
import type { BlockOf } from './block-table.js'
import type { BlocksKeeper } from './kept-blocks.js'
import type { MemoryBans } from './memory-bans.js'

/** Maximum of blocks visited for one page. */
const MAX_VISITS = 10_000

/** The blocks of a memory store. */
export class MemoryBlocks implements BlocksKeeper {
  readonly maxAdded = 1
  readonly #clock: () => number
  readonly #wall: WallClock
  readonly #bans: () => MemoryBans

  /** Blocks last by `clock`. Their dates are those of `wall`. */
  constructor(clock: () => number, wall: WallClock, bans: () => MemoryBans) {
    this.#clock = clock
    this.#wall = wall
    this.#bans = bans
  }

  now(): number {
    return this.#wall.at(this.#clock())
  }

  get known(): number {
    return this.#bans().blocks.size
  }

  /** Blocks from the last to the first: the last replaces one that is removed meanwhile, so none is skipped. */
  page({ cursor, max, matches }: CheckedQuery<BlockEntry>): BlockPage {
    const { blocks } = this.#bans()
    const now = this.#clock()
    const ahead = this.#wall.aheadAt(now)
    let next = Math.min(cursor === undefined ? blocks.size : positionOf(cursor), blocks.size)
    const end = Math.max(0, next - MAX_VISITS)
    const entries: BlockEntry[] = []
    while (next > end && entries.length < max) {
      const found = blocks.at(--next)
      if (found.block.until <= now) continue
      const entry = entryOf(found, ahead)
      if (matches(entry)) entries.push(entry)
    }
    return next > 0 ? { entries, cursor: String(next) } : { entries }
  }

  get(policy: string, identity: string): BlockEntry | undefined {
    const block = this.#bans().blocks.find(policy, identity)
    return block && entryOf({ policy, identity, block }, this.#wall.aheadAt(this.#clock()))
  }

  block(policy: string, identity: string, forMs: number, reason: string): void {
    this.#bans().block(policy, identity, forMs, reason, this.#clock())
  }

  unblock(policy: string, identity: string): void {
    this.#bans().unblock(policy, identity)
  }

  clear(): void {
    this.#bans().clear()
  }

  add(entries: readonly BlockEntry[]): number {
    let added = 0
    const now = this.#clock()
    const ahead = this.#wall.aheadAt(now)
    for (const blocked of entries) {
      const { policy = EVERY_POLICY, kind, value, ...entry } = movedBy(-ahead, blocked)
      const block = { ban: undefined, ...entry }
      const identity = startOf(kind) + value
      const known = this.#bans().blocks.find(policy, identity)
      if (block.until <= now || (known && known.since >= block.since)) continue
      this.#bans().keep({ policy, identity, block }, now)
      added++
    }
    return added
  }
}

function entryOf(
  { policy, identity, block: { reason, since, until, times, ban } }: BlockOf,
  aheadMs: number,
): BlockEntry {
  const { kind, value } = textValue(identity)
  const entry = { ...(policy !== EVERY_POLICY && { policy }), kind, value, reason, since, until, times }
  return movedBy(aheadMs, { ...entry, ...(ban && { ban }) })
}

/** An entry whose times are those of another clock. */
export function movedBy(ms: number, entry: BlockEntry): BlockEntry {
  return { ...entry, since: entry.since + ms, until: entry.until + ms }
}

/** @throws SluiceError `INVALID_POLICY` */
function positionOf(cursor: string): number {
  if (/^\d{1,9}$/.test(cursor)) return Number(cursor)
  return invalidPolicy('blocks.list', 'cursor', 'the cursor of the page before', cursor)
}
