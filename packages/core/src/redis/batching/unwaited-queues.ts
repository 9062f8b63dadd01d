/** How long after none was seen to wait decisions do not look again: they may see a waiter as much later. */
export const ASSUME_UNWAITED_MS = 50
/** Queues that are over go when there are so many. */
const MOST = 1000

/** The queues in which none was seen to wait a moment ago, by the keys of their records; and so the marker of all. */
export class UnwaitedQueues {
  /** Until when, by the performance clock. */
  readonly #until = new Map<string, number>()

  /** A command that was sent at an instant by the performance clock has found none. */
  add(key: string, sentAt: number): void {
    if (this.#until.size > MOST) this.#until.clear()
    this.#until.set(key, sentAt + ASSUME_UNWAITED_MS)
  }

  delete(key: string): void {
    this.#until.delete(key)
  }

  has(key: string): boolean {
    const until = this.#until.get(key)
    return until !== undefined && until > performance.now()
  }

  hasAll(keys: readonly string[]): boolean {
    return keys.every((key) => this.has(key))
  }
}
