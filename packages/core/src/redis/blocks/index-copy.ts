import { setImmediate } from 'node:timers/promises'
import { fieldOf, type IndexEntry, isNewer, SHARDS, shardOf } from './entry.js'
import { Shard } from './shards.js'
import type { StoreTime } from './store-time.js'

/** This process's copy of the entries of an index. */
export interface EntryMirror extends Iterable<IndexEntry> {
  readonly size: number
  get(policy: string, identity: string): IndexEntry | undefined
  /** Applies the index's entry of an identity, which may be an end. */
  set(entry: IndexEntry, now: number): void
  delete(policy: string, identity: string): void
  /** Whether the whole index must be read again. */
  readsAgain?(now: () => number): boolean
}

/** Number of entries that are scanned without a pause. */
const LOOKED_AT_ONCE = 2000

/** This process's copy of an index: the entries in its mirror, and the ends in its shards. */
export class IndexCopy {
  readonly mirror: EntryMirror
  readonly shards: readonly Shard[] = Array.from({ length: SHARDS }, () => new Shard())
  readonly #time: StoreTime

  constructor(mirror: EntryMirror, time: StoreTime) {
    this.mirror = mirror
    this.#time = time
  }

  /** The shard of a field or a number. */
  shard(of: string | number): Shard {
    return this.shards[typeof of === 'number' ? of : shardOf(of)] as Shard
  }

  /** Applies an entry of the index. */
  take(shard: Shard, field: string, entry: IndexEntry, now: number): void {
    const end = shard.endOf(field, entry)
    if (end && isNewer(end, entry)) {
      shard.startAnew()
      return
    }
    shard.take(field, entry)
    this.mirror.set(entry, now)
  }

  /** Drops entries of forgotten identities. `seen`: the fields in the index. */
  async dropErased(number: number, seen: ReadonlySet<string>, lost: Map<string, IndexEntry>): Promise<void> {
    const shard = this.shard(number)
    for (const [field, entry] of await this.in(number)) {
      const end = shard.erasedEnd(field, entry)
      if (!end || entry.since > end.since) continue
      this.mirror.delete(entry.policy, entry.identity)
      shard.forget(field)
      // A process without knowledge of the end has written the entry again.
      if (seen.has(field)) lost.set(field, end)
      else lost.delete(field)
    }
  }

  /** The known entries and ends of a shard, by field. */
  async in(shard: number): Promise<Map<string, IndexEntry>> {
    const known = new Map<string, IndexEntry>()
    const copied = this.shard(shard)
    if (!copied.isKnown) return known
    const now = this.#time.now()
    for (const [field, entry] of copied.ends) {
      if (entry.until > now) known.set(field, entry)
      else copied.forget(field)
    }
    let looked = 0
    for (const entry of this.mirror) {
      // Lets requests run in between.
      if (++looked % LOOKED_AT_ONCE === 0) await setImmediate()
      const field = fieldOf(entry.policy, entry.identity)
      if (entry.until > now && shardOf(field) === shard) known.set(field, entry)
    }
    return known
  }

  /** Drops all entries up to an epoch. */
  async forgetUntil(number: number, epoch: number, lost?: Map<string, IndexEntry>): Promise<void> {
    const shard = this.shard(number)
    for (const [field, { policy, identity, since }] of await this.in(number)) {
      if (since > epoch) continue
      this.mirror.delete(policy, identity)
      shard.forget(field)
      lost?.delete(field)
    }
    shard.epoch = Math.max(shard.epoch, epoch)
    shard.isKnown = true
  }
}
