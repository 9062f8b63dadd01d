import type { StoreResult, Writable } from '../store/store.js'

// Read once: the global is an accessor of Node's, whose call would be a tenth of a decision.
const REAL = performance
const ORIGIN = REAL.timeOrigin
const REAL_NOW = Date.now

/** Wall-clock time at the start of the process, plus the time measured by a monotonic clock since. Whole ms that never step back. */
function monotonicNow(): number {
  return Math.floor(ORIGIN + REAL.now())
}

/** A clock for one store. It follows fake timers that a test has installed earlier. */
export function monotonicClock(): () => number {
  const clock = performance
  return clock === REAL ? monotonicNow : () => Math.floor(ORIGIN + clock.now())
}

/**
 * The wall clock beside the monotonic clock of a store. Lengths of time follow the monotonic one. Dates follow this one, which is
 * corrected while the process runs, and goes on while the machine is suspended.
 */
export class WallClock {
  readonly #now: () => number
  readonly #isGiven: boolean
  #ahead = 0
  /** When that was read. */
  #readAt = Number.NaN

  /** `isGiven`: a clock of the user is both. */
  constructor(now: () => number, isGiven: boolean) {
    this.#now = now
    this.#isGiven = isGiven
  }

  /**
   * How far it is ahead at an instant of the monotonic clock. It is read once in a millisecond, as that takes a quarter of a
   * decision; a clock that a test has installed each time.
   */
  aheadAt(now: number): number {
    return this.#isGiven || (now === this.#readAt && Date.now === REAL_NOW) ? this.#ahead : this.#read(now)
  }

  #read(now: number): number {
    this.#readAt = now
    // The process may be interrupted between two of these, so that the difference is known within bounds alone.
    const before = this.#now()
    const date = Date.now()
    const after = this.#now()
    // Both are whole ms, so that they differ by one at times: all of a decision has one date.
    if (this.#ahead < date - after - 1 || this.#ahead > date - before + 1) this.#ahead = date - after
    return this.#ahead
  }

  /** The date at an instant of the monotonic clock. */
  at(now: number): number {
    return now + this.aheadAt(now)
  }
}

/** Adds the date to the result of a decision. */
export function dated(result: Writable<StoreResult>, wall: WallClock): StoreResult {
  result.date = wall.at(result.now)
  return result
}
