// Fake timers of a test, installed later, would show freezes where there are none.
const { now: wallClock } = Date
const [every, stopEvery] = [setInterval, clearInterval]

/** Interval of the beats that show that this process runs. */
const BEAT_MS = 500
/** Without a sign of life for this long, this process was frozen, or its event loop was blocked. */
const FREEZE_MS = 1000
/**
 * Without a sign of life for this long, this process was idle, or frozen for a moment. A shorter one would cost each request
 * of a quiet server some turns of the event loop, and connections are closed because they were idle for longer.
 */
const PAUSE_MS = 100

/**
 * Notices that this process did not run for a while: a function between two requests, a suspended machine. Read it
 * before what depends on it, as a request may come before a timer of this process is called.
 */
class Freezes {
  #freezes = 0
  #pauses = 0
  /** By the wall clock: a monotonic clock may stand still with its machine. */
  #ranAt = wallClock()
  #timer: NodeJS.Timeout | undefined
  #users = 0

  /** The number of freezes so far. */
  get count(): number {
    this.#look()
    return this.#freezes
  }

  /** The number of times so far that this process was idle or frozen, if only for a moment. */
  get pauses(): number {
    this.#look()
    return this.#pauses
  }

  /** Freezes are noticed until the returned function is called. */
  watch(): () => void {
    if (this.#users++ === 0) {
      this.#ranAt = wallClock()
      this.#timer = every(() => this.#look(), BEAT_MS).unref()
    }
    return () => {
      if (--this.#users === 0) stopEvery(this.#timer)
    }
  }

  #look(): void {
    const now = wallClock()
    const idleMs = now - this.#ranAt
    this.#ranAt = now
    if (idleMs <= PAUSE_MS || this.#users === 0) return
    this.#pauses++
    if (idleMs > FREEZE_MS) this.#freezes++
  }
}

export const freezes = new Freezes()
