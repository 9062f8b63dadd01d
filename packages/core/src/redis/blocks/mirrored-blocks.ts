import type { BlockPlace } from '../../blocks/given-blocks.js'
import type { Banning, BlockReport } from '../../store/store.js'
import { SluiceError } from '../../util/errors.js'
import { blockIn } from '../scripts/decode.js'
import type { IndexEntry } from './entry.js'
import { KnownEntries, type KnownEntriesOptions } from './known-entries.js'
import { isNetwork, type KnownBlock, MAX_NETWORKS, Mirror } from './mirror.js'

/** A search for blocks and bans, for a request or a strike. */
export interface BlockQuestion {
  readonly plan: Banning
  readonly identities: readonly string[]
}

/** The blocks and bans that this process knows: those that Redis enforces, or would enforce if it had lost nothing. */
export class MirroredBlocks extends KnownEntries {
  readonly #mirror: Mirror
  readonly #now: () => number

  /** `onFull`: called when this process has no room for all blocks and bans. */
  constructor(options: Omit<KnownEntriesOptions, 'mirror'> & { readonly onFull: () => void }) {
    const mirror = new Mirror(options.onFull)
    super({ ...options, mirror })
    this.#mirror = mirror
    this.#now = () => options.time.now()
  }

  get size(): number {
    return this.#mirror.size
  }

  /** Whether this process has seen no sign that a block from every policy is missing here. */
  override get isWhole(): boolean {
    // Both run from the first decision on, for the reason that `PlanTexts.of` has: the mirror is seldom partial.
    return !this.#mirror.isPartial && super.isWhole
  }

  /**
   * Checks that there is room for the networks among some entries. A network that no process knows would not be
   * enforced.
   *
   * @throws SluiceError `STORE_FULL`, `STORE_UNAVAILABLE`
   */
  async requireRoom(entries: readonly BlockPlace[]): Promise<void> {
    const networks = entries.filter(({ identity }) => isNetwork(identity))
    if (networks.length === 0) return
    await this.loaded()
    const added = networks.filter(({ policy, identity }) => !this.#mirror.get(policy, identity)).length
    if (added === 0 || this.#mirror.networks + added <= MAX_NETWORKS) return
    throw new SluiceError(
      'STORE_FULL',
      `redisStore: at most ${MAX_NETWORKS} networks can be blocked, and there are ${this.#mirror.networks}: ` +
        'end some of their blocks, or use a list',
    )
  }

  /** The entry that refuses a request; if there are several, the one that ends last. */
  find({ plan, identities }: BlockQuestion): KnownBlock | undefined {
    return this.#mirror.size === 0 ? undefined : this.#mirror.find(plan, identities, this.#now)
  }

  /** The block report for a request that an entry refuses. */
  report({ encoded, until }: IndexEntry): { readonly now: number; readonly block: BlockReport } {
    const now = this.#now()
    return { now, block: blockIn(encoded, Math.max(1, until - now)) }
  }
}
