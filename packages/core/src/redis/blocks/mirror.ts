import { goesBefore, type RankedBan } from '../../blocks/ban-order.js'
import { BlockedRanges } from '../../blocks/blocked-ranges.js'
import { type Banning, EVERY_POLICY } from '../../store/store.js'
import { Heap } from '../../util/heap.js'
import { decodeBlock } from '../scripts/decode.js'
import type { IndexEntry } from './entry.js'

/** Maximum blocks and bans that a process knows, without networks. */
export const MAX_BLOCKS = 100_000
/** Maximum blocked networks. Redis enforces other blocks by itself, but only processes know networks. */
export const MAX_NETWORKS = 100_000
/** Maximum networks that a process knows. Several processes may add the last ones at once. */
const MAX_KNOWN_NETWORKS = 2 * MAX_NETWORKS
/** IPv4 networks, and IPv6 networks with a prefix shorter than that of a client. */
const NETWORK = /^ip=(?:[\d.]+\/\d+|.+\/(?:[1-5]?\d|6[0-3]))$/
/** Number of entries checked for their end with each entry that is added, and with each check for room. */
const SWEPT_PER_ENTRY = 2
const SWEPT_PER_LOOK = 2000
/** Minimum interval between two reads of the whole index when there is room again, by the performance clock. */
const READ_AGAIN_MS = 600_000

/** A block or ban in the mirror. */
export interface KnownBlock extends IndexEntry {
  times: number
  isUnwritten: true | undefined
  /** When Redis last confirmed it, by the clock of the layer that asks; `-Infinity` if it has not. */
  confirmedAt: number
}

/** A ban has its place in the eviction order. */
interface KnownBan extends KnownBlock, RankedBan {}

/** Whether an identity is a network that only processes enforce. */
export function isNetwork(identity: string): boolean {
  return NETWORK.test(identity)
}

/**
 * The blocks and bans that this process knows. It refuses requests that Redis refuses, or would refuse if it had lost
 * nothing.
 */
export class Mirror {
  /**
   * By identity: usually one entry, or one per policy. With the policy as the first key, a decision would take 0.13 µs
   * more.
   */
  readonly #byIdentity = new Map<string, readonly KnownBlock[]>()
  readonly #bans = new Heap<KnownBan>(goesBefore)
  #onFull: () => void
  readonly #ranges = new BlockedRanges<KnownBlock>()
  #size = 0
  #networks = 0
  #isFull = false
  #isPartial = false
  #readAgainAt = 0
  /** Position of the walk that removes ended entries. */
  #walk: Iterator<readonly KnownBlock[]> = this.#byIdentity.values()

  /** `onFull`: called once, when an entry has no room for the first time. */
  constructor(onFull: () => void = () => {}) {
    this.#onFull = onFull
  }

  get size(): number {
    return this.#size
  }

  get networks(): number {
    return this.#networks
  }

  /** Whether a block from every policy had no room here. Decisions then check for such blocks in Redis. */
  get isPartial(): boolean {
    return this.#isPartial
  }

  /** Whether the whole index must be read again, as there is room for entries that had none. */
  readsAgain(now: () => number): boolean {
    if (!this.#isFull) return false
    this.#sweep(now(), SWEPT_PER_LOOK)
    const at = performance.now()
    if (this.#size - this.#networks > 0.9 * MAX_BLOCKS || at < this.#readAgainAt) return false
    this.#readAgainAt = at + READ_AGAIN_MS
    this.#isFull = false
    this.#isPartial = false
    return true
  }

  /** The entry that refuses one of these identities; if there are several, the one that ends last. */
  find({ policy, banningPolicy }: Banning, identities: readonly string[], now: () => number): KnownBlock | undefined {
    let last: KnownBlock | undefined
    for (const identity of identities) {
      const known = this.#byIdentity.get(identity)
      if (!known && this.#ranges.size === 0) continue
      // Policies in their order: of two entries with the same end, the first is found, as in memory.
      const policies = [policy, banningPolicy ?? policy, EVERY_POLICY]
      if (known) {
        for (const name of policies) {
          last = laterOf(
            last,
            known.find(({ policy }) => policy === name),
          )
        }
      }
      last = this.#ranges.find(policies, identity).reduce<KnownBlock | undefined>(laterOf, last)
    }
    return last && last.until > now() ? last : undefined
  }

  get(policy: string, identity: string): IndexEntry | undefined {
    return this.#byIdentity.get(identity)?.find((entry) => entry.policy === policy)
  }

  /** Applies the index's entry of an identity. */
  set(entry: IndexEntry, now: number): void {
    const { policy, identity, until, isEnded } = entry
    if (isEnded || until <= now) {
      this.delete(policy, identity)
      return
    }
    const before = this.#byIdentity.get(identity)
    const replaced = before?.find((other) => other.policy === policy)
    if (replaced && isSame(replaced, entry)) {
      // A ban is back from the index, or was read again: what Redis has confirmed of it holds.
      replaced.times = entry.times
      replaced.isUnwritten = entry.isUnwritten
      return
    }
    const known = knownOf(entry)
    if (!replaced && !this.#makeRoom(known, now)) return
    // Making room may have removed other entries of this identity.
    const others = this.#byIdentity.get(identity)?.filter((other) => other.policy !== policy) ?? []
    this.#byIdentity.set(identity, [...others, known])
    this.#ranges.set(policy, identity, known)
    if (!replaced) this.#count(identity, 1)
    if (replaced && isBan(replaced)) this.#bans.delete(replaced)
    if (isBan(known)) this.#bans.add(known)
    this.#sweep(now, SWEPT_PER_ENTRY)
  }

  delete(policy: string, identity: string): void {
    const before = this.#byIdentity.get(identity)
    const known = before?.find((entry) => entry.policy === policy)
    if (!before || !known) return
    const others = before.filter((entry) => entry !== known)
    if (isBan(known)) this.#bans.delete(known)
    this.#ranges.delete(policy, identity)
    this.#count(identity, -1)
    if (others.length > 0) this.#byIdentity.set(identity, others)
    else this.#byIdentity.delete(identity)
  }

  *[Symbol.iterator](): Generator<IndexEntry> {
    for (const entries of this.#byIdentity.values()) yield* entries
  }

  /** Returns whether there is room for one more entry. Bans of the lowest rung that end soonest are evicted first. */
  #makeRoom(entry: KnownBlock, now: number): boolean {
    if (this.#hasRoom(entry)) return true
    this.#sweep(now, 64)
    if (this.#hasRoom(entry)) return true
    const first = isNetwork(entry.identity) ? undefined : this.#bans.first
    const goes = first && !(isBan(entry) && goesBefore(entry, first)) ? first : entry
    this.#isFull = true
    if (goes.policy === EVERY_POLICY) this.#isPartial = true
    this.#onFull()
    this.#onFull = () => {}
    if (goes === entry) return false
    this.delete(goes.policy, goes.identity)
    return true
  }

  #hasRoom({ identity }: KnownBlock): boolean {
    return isNetwork(identity) ? this.#networks < MAX_KNOWN_NETWORKS : this.#size - this.#networks < MAX_BLOCKS
  }

  #count(identity: string, by: 1 | -1): void {
    this.#size += by
    if (isNetwork(identity)) this.#networks += by
  }

  /** Walks in a circle, a few identities at a time. */
  #sweep(now: number, max: number): void {
    for (let n = 0; n < max; n++) {
      const { value, done } = this.#walk.next()
      if (done) {
        this.#walk = this.#byIdentity.values()
        return
      }
      for (const { policy, identity, until } of value as readonly KnownBlock[]) {
        if (until <= now) this.delete(policy, identity)
      }
    }
  }
}

function isSame(one: IndexEntry, other: IndexEntry): boolean {
  return one.since === other.since && one.until === other.until && one.encoded === other.encoded
}

function knownOf(entry: IndexEntry): KnownBlock | KnownBan {
  const { ban } = decodeBlock(entry.encoded)
  const known = { ...entry, confirmedAt: Number.NEGATIVE_INFINITY }
  return ban && !isNetwork(entry.identity) ? { ...known, rung: ban.rung, place: 0 } : known
}

function isBan(entry: KnownBlock): entry is KnownBan {
  return Object.hasOwn(entry, 'rung')
}

function laterOf(one: KnownBlock | undefined, other: KnownBlock | undefined): KnownBlock | undefined {
  return !one || (other && other.until > one.until) ? other : one
}
