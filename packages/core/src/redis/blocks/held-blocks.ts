import type { Banning, BlockReport } from '../../store/store.js'
import { blockReport } from '../scripts/decode.js'
import type { IndexEntry } from './entry.js'
import { HeldEntries, type HeldEntriesOptions } from './held-entries.js'
import { Mirror } from './mirror.js'

/** Whose blocks and bans are looked for: a request, or what a strike is for. */
export interface BlockQuestion {
  readonly plan: Banning
  readonly identities: readonly string[]
}

/** The blocks and bans that this process knows: those that Redis refuses by, or would if it had lost nothing. */
export class HeldBlocks extends HeldEntries {
  readonly #mirror: Mirror
  readonly #now: () => number

  constructor(options: Omit<HeldEntriesOptions, 'mirror'>) {
    const mirror = new Mirror()
    super({ ...options, mirror })
    this.#mirror = mirror
    this.#now = () => options.time.now()
  }

  get size(): number {
    return this.#mirror.size
  }

  /** What refuses a request: of several the one that ends last. */
  find({ plan, identities }: BlockQuestion): IndexEntry | undefined {
    return this.#mirror.size === 0 ? undefined : this.#mirror.find(plan, identities, this.#now)
  }

  /** The block that a request refused by an entry gets. */
  report({ kept, until }: IndexEntry): { readonly now: number; readonly block: BlockReport } {
    const now = this.#now()
    return { now, block: blockReport(kept, Math.max(1, until - now)) }
  }
}
