import { BlockedRanges } from '../store/blocked-ranges.js'
import type { BlockEntry } from '../store/blocks.js'
import { ExpiringValues } from './expiring-values.js'
import { rowBytes, textBytes } from './usage.js'

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

/** Blocks by policy and identity. */
export class Blocks extends ExpiringValues<Block> {
  readonly #ranges = new BlockedRanges<Block>()

  protected endOf({ until }: Block): number {
    return until
  }

  protected bytesOf(key: string, { reason }: Block): number {
    return BLOCK_BYTES + rowBytes(1, key) + textBytes(reason)
  }

  /** By number, below `size`. One that is removed is replaced by the last. */
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
   * Whether there was room for it in `maxBytes`. A block can always be replaced; if its new reason is longer and has no
   * room, the earlier reason stays.
   */
  set(policy: string, identity: string, block: Block, maxBytes: number): boolean {
    const key = keyOf(policy, identity)
    const before = this.byKey.get(key)
    const more = this.bytesOf(key, block) - (before ? this.bytesOf(key, before) : 0)
    const hasRoom = more <= 0 || this.usage.bytes + more <= maxBytes
    if (!hasRoom && !before) return false
    const kept = hasRoom ? block : { ...block, reason: (before as Block).reason }
    this.put(key, before, kept)
    this.#ranges.set(policy, identity, kept)
    return true
  }

  delete(policy: string, identity: string): void {
    const key = keyOf(policy, identity)
    const block = this.byKey.get(key)
    if (block) this.remove(key, block)
  }

  protected override remove(key: string, block: Block): void {
    super.remove(key, block)
    const { policy, identity } = namesIn(key)
    this.#ranges.delete(policy, identity)
  }
}

export function keyOf(policy: string, identity: string): string {
  // Names of policies have no line break, so no part of one can be taken for a kind.
  return `${policy}\n${identity}`
}

function namesIn(key: string): Omit<BlockOf, 'block'> {
  const end = key.indexOf('\n')
  return { policy: key.slice(0, end), identity: key.slice(end + 1) }
}
