import { BlockedRanges } from '../../store/blocked-ranges.js'
import { type Banning, EVERY_POLICY } from '../../store/store.js'
import type { IndexEntry } from './entry.js'

/** Most blocks and bans that a process knows, without networks. */
const MOST = 100_000
/** Most networks that can be blocked: Redis decides of the others, but of networks only processes know. */
export const MOST_NETWORKS = 100_000
/** Most networks that a process knows: several processes may add the last ones at once. */
const MOST_KNOWN_NETWORKS = 2 * MOST_NETWORKS
/** Of IPv4, or a shorter prefix than that of any one client of IPv6. */
const NETWORK = /^ip=(?:[\d.]+\/\d+|.+\/(?:[1-5]?\d|6[0-3]))$/
/** How many entries are checked for their end with each one that is added, and with each look for room. */
const SWEPT_PER_ENTRY = 2
const SWEPT_PER_LOOK = 2000
/** So often at most all of the index is read again, by the performance clock, where there is room again. */
const READ_AGAIN_MS = 600_000

/** Whether an identity is a network that decisions look for here. */
export function isNetwork(identity: string): boolean {
  return NETWORK.test(identity)
}

/** The blocks and bans that this process knows. It refuses what Redis refuses, or would refuse if it had lost nothing. */
export class Mirror {
  /** By identity: mostly one, of several policies several. */
  readonly #byIdentity = new Map<string, readonly IndexEntry[]>()
  readonly #ranges = new BlockedRanges<IndexEntry>()
  #size = 0
  #networks = 0
  #isPartial = false
  #readAgainAt = 0
  /** Where the walk for ended ones stands. */
  #walk: Iterator<readonly IndexEntry[]> = this.#byIdentity.values()

  get size(): number {
    return this.#size
  }

  get networks(): number {
    return this.#networks
  }

  /** Whether a block from every policy had no room here: decisions have to look for such blocks in Redis. */
  get isPartial(): boolean {
    return this.#isPartial
  }

  /** Whether all of the index is to be read again, as there is room for what had none. */
  readsAgain(now: () => number): boolean {
    if (!this.#isPartial) return false
    this.#sweep(now(), SWEPT_PER_LOOK)
    const at = performance.now()
    if (this.#size - this.#networks > 0.9 * MOST || at < this.#readAgainAt) return false
    this.#readAgainAt = at + READ_AGAIN_MS
    this.#isPartial = false
    return true
  }

  /** Of what refuses one of these identities at an instant, the one that ends last. */
  find({ policy, banningPolicy }: Banning, identities: readonly string[], now: () => number): IndexEntry | undefined {
    const policies = [policy, banningPolicy ?? policy, EVERY_POLICY]
    let last: IndexEntry | undefined
    for (const identity of identities) {
      const known = this.#byIdentity.get(identity)
      // In their order, so that of two with one end the first is found, as in memory.
      if (known)
        for (const name of policies)
          last = laterOf(
            last,
            known.find(({ policy }) => policy === name),
          )
      if (this.#ranges.size > 0)
        last = this.#ranges.find(policies, identity).reduce<IndexEntry | undefined>(laterOf, last)
    }
    return last && last.until > now() ? last : undefined
  }

  get(policy: string, identity: string): IndexEntry | undefined {
    return this.#byIdentity.get(identity)?.find((entry) => entry.policy === policy)
  }

  /** Takes over what the index says of an identity. */
  set(entry: IndexEntry, now: number): void {
    const { policy, identity, until, isEnded } = entry
    if (isEnded || until <= now) {
      this.delete(policy, identity)
      return
    }
    const before = this.#byIdentity.get(identity)
    const others = before?.filter((other) => other.policy !== policy) ?? []
    const isNew = others.length === (before?.length ?? 0)
    if (isNew && this.#isFull(identity)) {
      this.#sweep(now, 64)
      if (this.#isFull(identity)) {
        if (policy === EVERY_POLICY) this.#isPartial = true
        return
      }
    }
    this.#byIdentity.set(identity, [...others, entry])
    this.#ranges.set(policy, identity, entry)
    if (isNew) this.#count(identity, 1)
    this.#sweep(now, SWEPT_PER_ENTRY)
  }

  delete(policy: string, identity: string): void {
    const before = this.#byIdentity.get(identity)
    const others = before?.filter((entry) => entry.policy !== policy)
    if (!before || !others || others.length === before.length) return
    this.#ranges.delete(policy, identity)
    this.#count(identity, -1)
    if (others.length > 0) this.#byIdentity.set(identity, others)
    else this.#byIdentity.delete(identity)
  }

  *[Symbol.iterator](): Generator<IndexEntry> {
    for (const entries of this.#byIdentity.values()) yield* entries
  }

  #isFull(identity: string): boolean {
    return isNetwork(identity) ? this.#networks >= MOST_KNOWN_NETWORKS : this.#size - this.#networks >= MOST
  }

  #count(identity: string, by: 1 | -1): void {
    this.#size += by
    if (isNetwork(identity)) this.#networks += by
  }

  /** A walk in a circle, a few at a time. */
  #sweep(now: number, most: number): void {
    for (let n = 0; n < most; n++) {
      const { value, done } = this.#walk.next()
      if (done) {
        this.#walk = this.#byIdentity.values()
        return
      }
      for (const { policy, identity, until } of value as readonly IndexEntry[]) {
        if (until <= now) this.delete(policy, identity)
      }
    }
  }
}

function laterOf(one: IndexEntry | undefined, other: IndexEntry | undefined): IndexEntry | undefined {
  return !one || (other && other.until > one.until) ? other : one
}
