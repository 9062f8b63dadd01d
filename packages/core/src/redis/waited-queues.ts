/** How long after a waiter was seen decisions bring their turn without asking first. */
const ASSUME_WAITED_MS = 1000
/** Queues that are over go when there are so many. */
const MOST = 1000

/** The queues in which a waiter was seen a moment ago, by the keys of their records; and so the marker of all. */
export class WaitedQueues {
  /** Until when, by the performance clock. */
  readonly #until = new Map<string, number>()

  note(keys: readonly string[], anyWaits: boolean): void {
    const now = performance.now()
    if (this.#until.size > MOST) {
      for (const [key, until] of this.#until) if (until < now) this.#until.delete(key)
    }
    for (const key of keys) {
      if (anyWaits) this.#until.set(key, now + ASSUME_WAITED_MS)
      else this.#until.delete(key)
    }
  }

  get isEmpty(): boolean {
    return this.#until.size === 0
  }

  hasAny(keys: readonly string[]): boolean {
    if (this.isEmpty) return false
    const now = performance.now()
    return keys.some((key) => (this.#until.get(key) ?? 0) > now)
  }
}
