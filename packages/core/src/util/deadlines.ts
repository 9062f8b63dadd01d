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

/** A timer of a process that runs is no later than that, in ms. */
const ON_TIME_MS = 10

/** Longest that a timer of Node's can be set to, in ms. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/**
 * Gives up what is not over in time. One timer for all, set for whichever is due first: nearly everything ends long
 * before, and to set a timer for each and clear it costs more than to look, now and then, at what is left.
 */
export class Deadlines {
  // In no order, so that any can leave at once. Not a Set: that leaves the tables behind that it has outgrown, each with
  // the next, and through one that has grown old nothing which came after would be young garbage any more.
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
    // The timer stays as it is for those to come, and the process does not stay for it.
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
