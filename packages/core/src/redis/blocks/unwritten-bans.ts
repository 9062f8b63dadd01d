import { type Change, MOST_CHANGES } from './block-index.js'
import { fieldOf } from './entry.js'
import type { Shard } from './shards.js'

/** Most bans that wait to be written to the index. */
const MOST_UNWRITTEN = 10_000

/** Bans that began just now, which Redis has under their block keys alone: those that are not in the index yet. */
export class UnwrittenBans {
  readonly #write: (changes: readonly Change[]) => Promise<unknown>
  readonly #byField = new Map<string, Change>()
  #isWriting = false

  constructor(write: (changes: readonly Change[]) => Promise<unknown>) {
    this.#write = write
  }

  /** Whether there was room for it. */
  add(change: Change): boolean {
    if (this.#byField.size >= MOST_UNWRITTEN) return false
    this.#byField.set(fieldOf(change.policy, change.identity), change)
    return true
  }

  delete(field: string): void {
    this.#byField.delete(field)
  }

  /** Drops those of identities that were forgotten since. */
  deleteErased(shard: Shard): void {
    for (const [field, { policy, identity, numbers }] of this.#byField) {
      const end = shard.erasedEnd(field, { policy, identity })
      if (end && numbers[1] <= end.since) this.#byField.delete(field)
    }
  }

  clear(): void {
    this.#byField.clear()
  }

  [Symbol.iterator](): Iterator<readonly [field: string, change: Change]> {
    return this.#byField.entries()
  }

  /** Writes them all, unless that is under way. Rejects where that fails: the others wait for the next time. */
  async write(): Promise<void> {
    if (this.#isWriting) return
    this.#isWriting = true
    try {
      while (this.#byField.size > 0) {
        const some = [...this.#byField].slice(0, MOST_CHANGES)
        await this.#write(some.map(([, change]) => change))
        for (const [field, change] of some) if (this.#byField.get(field) === change) this.#byField.delete(field)
      }
    } finally {
      this.#isWriting = false
    }
  }
}
