import { BlockedRanges } from '../store/blocked-ranges.js'
import type { BlockEntry } from '../store/blocks.js'
import { KeyedValues } from './keyed-values.js'
import { rowBytes, textBytes, type Usage } from './usage.js'

export interface Block {
  readonly since: number
  readonly until: number
  /** How often, as far as is known. */
  readonly times: number
  readonly reason: string
  /** Present where strikes led to it. */
  readonly ban?: NonNullable<BlockEntry['ban']>
}

export interface BlockOf {
  readonly policy: string
  /** As text, `kind=value`. */
  readonly identity: string
  readonly block: Block
}

/** Bytes of a block beside its row and its texts: the object, its instants, and the pointer to it. */
const BLOCK_BYTES = 68

/** Blocks by policy and identity. They end by themselves; a walk in a circle removes those that have, a few at a time. */
export class Blocks {
  readonly #byKey = new KeyedValues<Block>()
  readonly #ranges = new BlockedRanges<Block>()
  readonly #usage: Usage
  readonly #graceMs: number
  /** Where the walk stands. */
  #next = 0

  /** `graceMs`: how long a block is kept beyond its end, for clocks that may step back. */
  constructor(usage: Usage, graceMs: number) {
    this.#usage = usage
    this.#graceMs = graceMs
  }

  get size(): number {
    return this.#byKey.size
  }

  /** See `keyOf`. */
  keys(): Generator<string> {
    return this.#byKey.keys()
  }

  /** By number, below `size`. One that is removed is replaced by the last. */
  at(index: number): BlockOf {
    return { ...this.#namesAt(index), block: this.#byKey.at(index) }
  }

  #namesAt(index: number): Omit<BlockOf, 'block'> {
    const key = this.#byKey.keyAt(index)
    const end = key.indexOf('\n')
    return { policy: key.slice(0, end), identity: key.slice(end + 1) }
  }

  find(policy: string, identity: string): Block | undefined {
    return this.#byKey.get(keyOf(policy, identity))
  }

  /** The block that refuses an address by its network. */
  findRange(policies: readonly string[], identity: string, now: number): Block | undefined {
    return this.#ranges.size === 0 ? undefined : this.#ranges.find(policies, identity, ({ until }) => until > now)
  }

  /**
   * Whether there was room for it in `maxBytes`. A block can always be replaced; if its new reason is longer and has no
   * room, the earlier reason stays.
   */
  set(policy: string, identity: string, block: Block, maxBytes: number): boolean {
    const key = keyOf(policy, identity)
    const before = this.#byKey.get(key)
    const more = bytesOf(key, block) - (before ? bytesOf(key, before) : 0)
    const hasRoom = more <= 0 || this.#usage.bytes + more <= maxBytes
    if (!hasRoom && !before) return false
    const kept = hasRoom ? block : { ...block, reason: (before as Block).reason }
    this.#byKey.set(key, kept)
    this.#ranges.set(policy, identity, kept)
    if (hasRoom) this.#usage.add(0, more)
    return true
  }

  delete(policy: string, identity: string): void {
    const key = keyOf(policy, identity)
    const block = this.#byKey.get(key)
    if (block) this.#remove(policy, identity, block)
  }

  #remove(policy: string, identity: string, block: Block): void {
    const key = keyOf(policy, identity)
    this.#byKey.delete(key)
    this.#ranges.delete(policy, identity)
    this.#usage.add(0, -bytesOf(key, block))
  }

  /** Looks at up to `most` blocks, removes those that have ended, and returns how many it looked at. */
  sweep(now: number, most: number): number {
    const visits = Math.min(most, this.size)
    for (let n = visits; n > 0; n--) {
      if (this.#next >= this.size) this.#next = 0
      const block = this.#byKey.at(this.#next)
      if (block.until + this.#graceMs > now) this.#next++
      else {
        const { policy, identity } = this.#namesAt(this.#next)
        this.#remove(policy, identity, block)
      }
    }
    return visits
  }
}

export function keyOf(policy: string, identity: string): string {
  // Names of policies have no line break, so no part of one can be taken for a kind.
  return `${policy}\n${identity}`
}

function bytesOf(key: string, { reason }: Block): number {
  return BLOCK_BYTES + rowBytes(1, key) + textBytes(reason)
}
