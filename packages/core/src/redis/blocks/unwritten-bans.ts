import { type Change, MAX_CHANGES } from './block-index.js'
import { fieldOf } from './entry.js'
import type { Shard } from './shards.js'

/** Maximum bans that wait to be written to the index. */
const MAX_UNWRITTEN = 10_000

/** Bans that began just now, by field. Redis has their block keys, but they are not yet in the index. */
export class UnwrittenBans extends Map<string, Change> {
  readonly #write: (changes: readonly Change[]) => Promise<unknown>
  #isWriting = false

  constructor(write: (changes: readonly Change[]) => Promise<unknown>) {
    super()
    this.#write = write
  }

  /** Returns whether there was room. */
  add(change: Change): boolean {
    if (this.size >= MAX_UNWRITTEN) return false
    this.set(fieldOf(change.policy, change.identity), change)
    return true
  }

  /** Whether a ban that waits began after an instant, so that an entry of that instant is outdated. */
  hasLater(field: string, since: number): boolean {
    const waiting = this.get(field)
    return waiting !== undefined && waiting.numbers[1] > since
  }

  /** Drops bans of identities that were forgotten since. */
  deleteErased(shard: Shard): void {
    for (const [field, change] of this) {
      const end = shard.erasedEnd(field, change)
      if (end && change.numbers[1] <= end.since) this.delete(field)
    }
  }

  /** Writes all bans, unless a write is under way. Rejects on failure; the remaining bans wait for the next call. */
  async write(): Promise<void> {
    if (this.#isWriting) return
    this.#isWriting = true
    try {
      while (this.size > 0) {
        const some = [...this].slice(0, MAX_CHANGES)
        await this.#write(some.map(([, change]) => change))
        for (const [field, change] of some) if (this.get(field) === change) this.delete(field)
      }
    } finally {
      this.#isWriting = false
    }
  }
}
