/** How long after none was seen to wait decisions do not look again: they may see a waiter as much later. */
export const ASSUME_UNWAITED_MS = 50
/** How long after a waiter was seen decisions bring their turn without asking first. */
const ASSUME_WAITED_MS = 1000
/** Queues that are over go when there are so many. */
const MOST = 1000

/** The queues in which a waiter was seen a moment ago, or none, by the keys of their records; and so the marker of all. */
export class WaitedQueues {
  /** Until when, by the performance clock. */
  readonly #until = new Map<string, number>()
  /** Likewise where none was seen. */
  readonly #unwaitedUntil = new Map<string, number>()

  note(keys: readonly string[], anyWaits: boolean): void {
    const now = performance.now()
    if (this.#until.size > MOST) {
      for (const [key, until] of this.#until) if (until < now) this.#until.delete(key)
    }
    for (const key of keys) {
      if (!anyWaits) this.#until.delete(key)
      else {
        this.#until.set(key, now + ASSUME_WAITED_MS)
        this.#unwaitedUntil.delete(key)
      }
    }
  }

  /** A command that was sent at an instant by the performance clock has found none. */
  noteUnwaited(keys: readonly string[], sentAt: number): void {
    if (this.#unwaitedUntil.size > MOST) this.#unwaitedUntil.clear()
    for (const key of keys) this.#unwaitedUntil.set(key, sentAt + ASSUME_UNWAITED_MS)
  }

  isUnwaited(key: string): boolean {
    const until = this.#unwaitedUntil.get(key)
    return until !== undefined && until > performance.now()
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
