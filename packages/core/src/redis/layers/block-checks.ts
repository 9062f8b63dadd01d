import { fieldOf, type IndexEntry } from '../blocks/entry.js'
import type { BlockQuestion, HeldBlocks } from '../blocks/held-blocks.js'
import { probeKey } from '../health/probing.js'
import type { RedisBase } from '../slots/base.js'

export interface BlockChecksOptions extends RedisBase {
  readonly held: HeldBlocks
}

/** A block that holds. */
export interface HoldingBlock {
  readonly entry: IndexEntry
  /** Present where Redis could not be asked. */
  readonly source?: 'mirror'
}

/** Asks Redis whether blocks that this process knows still hold: it may know better, or have lost them. */
export class BlockChecks {
  readonly #options: BlockChecksOptions

  constructor(options: BlockChecksOptions) {
    this.#options = options
  }

  /** What refuses, once Redis was asked; by what this process knows alone where that is away. */
  async stillHeld(question: BlockQuestion): Promise<HoldingBlock | undefined> {
    const { held } = this.#options
    const confirmed = new Set<string>()
    for (let entry = held.find(question); entry; entry = held.find(question)) {
      const field = fieldOf(entry.policy, entry.identity)
      if (confirmed.has(field)) return { entry }
      if (!(await this.#isAsked(entry))) return { entry, source: 'mirror' }
      confirmed.add(field)
    }
    return undefined
  }

  /** Whether Redis could be asked for an entry. */
  async #isAsked(entry: IndexEntry): Promise<boolean> {
    const { held, slots, breaker, prefix } = this.#options
    const slot = slots.of(entry.identity)
    if (breaker.causeFor(slot)) return false
    try {
      await held.confirm(entry)
      return true
    } catch (error) {
      breaker.failed(slot, error as Error, probeKey(prefix, entry.identity))
      return false
    }
  }
}
