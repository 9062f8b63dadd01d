// Fake timers of a test, installed later, would lose the timer that all entries share, and none would ever end.
const { setTimeout, clearTimeout, setImmediate } = globalThis

/** Something under way that has to be over by a certain time. */
export abstract class Timed {
  /** By the performance clock; not to be changed while it is open. */
  dueAt: number
  /** Where it stands among those that are open; -1 once it does not. */
  place = -1

  constructor(dueAt: number) {
    this.dueAt = dueAt
  }

  /**
   * Called when its time has passed, unless it was ended before; it may be started again. `stalledMs`: of that time, how much
   * this process just now did not get to run.
   */
  abstract late(stalledMs: number): void
}

/** How late a timer is at most, in ms, in a process that was not stalled. */
const ON_TIME_MS = 10

/** Longest that a timer of Node's can be set to, in ms. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/**
 * Ends entries that are not over in time. One timer for all is set for the entry that is due first. Nearly all end long before,
 * and a timer for each costs more than looking, now and then, at those that are left.
 */
export class Deadlines {
  // Unordered, so that any entry can be removed in constant time. Not a Set: it links the tables that it has outgrown, and
  // one of them in V8's old space keeps all later ones from being collected as young garbage.
  readonly #open: Timed[] = []
  #timer: NodeJS.Timeout | undefined
  /** When the timer goes off, by the performance clock. */
  #wakesAt = Number.POSITIVE_INFINITY

  start(timed: Timed): void {
    timed.place = this.#open.push(timed) - 1
    if (timed.dueAt < this.#wakesAt) this.#wakeAt(timed.dueAt)
    else if (timed.place === 0) this.#timer?.ref()
  }

  end(timed: Timed): void {
    if (timed.place < 0) return
    const last = this.#open.pop() as Timed
    if (last !== timed) {
      last.place = timed.place
      this.#open[timed.place] = last
    }
    timed.place = -1
    // The timer stays for later entries, but does not keep the process alive.
    if (this.#open.length === 0) this.#timer?.unref()
  }

  #wakeAt(at: number): void {
    clearTimeout(this.#timer)
    this.#wakesAt = at
    const ms = Math.min(LONGEST_TIMER_MS, Math.max(1, Math.ceil(at - performance.now())))
    this.#timer = setTimeout(this.#wake, ms)
  }

  readonly #wake = (): void => {
    const now = performance.now()
    const stalledMs = Math.max(0, now - this.#wakesAt - ON_TIME_MS)
    // After a blocked event loop timers run before sockets are read: what is due may be over already.
    setImmediate(() => this.#giveUp(now, stalledMs))
  }

  #giveUp(now: number, stalledMs: number): void {
    this.#timer = undefined
    this.#wakesAt = Number.POSITIVE_INFINITY
    for (const timed of this.#open.filter(({ dueAt }) => dueAt <= now)) {
      this.end(timed)
      timed.late(stalledMs)
    }
    const next = this.#open.reduce((earliest, { dueAt }) => Math.min(earliest, dueAt), Number.POSITIVE_INFINITY)
    if (next < this.#wakesAt) this.#wakeAt(next)
  }
}
