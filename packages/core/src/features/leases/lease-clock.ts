/** An instant by the clocks of this process. */
export interface Moment {
  readonly ms: number
  /** How far the wall clock was ahead of `ms`. */
  readonly aheadMs: number
  /** How often the user's clock had stepped back by then. */
  readonly steps: number
}

/**
 * How long a reading of the wall clock is reused, in ms of the monotonic clock. No machine falls asleep and wakes
 * within that: each takes a thousand times as long.
 */
const KNOWN_FOR_MS = 0.01

/**
 * The clock for the life of leases. It never measures less time than has passed for the store.
 *
 * The clock that has advanced further counts. The monotonic clock stands still while a machine sleeps, and when a
 * frozen machine resumes elsewhere; the wall clock may be set back. A user's clock is used alone, as the store uses it,
 * too. Leases that began before it stepped back are over.
 *
 * The monotonic clock is read each time. The wall clock adds the time by which it has come ahead since then: none,
 * except for a sleep or a step. It is read again once the monotonic clock has advanced by 10 µs, so that one of many
 * consecutive decisions pays for it. A decision may miss a step less than 10 µs before it. A step between reading any
 * clock and acting on it would be missed as well.
 */
export class LeaseClock {
  readonly #own: (() => number) | undefined
  // Stored once, as the global is an accessor in Node that costs a tenth of a decision.
  readonly #performance = performance
  #latestMs = Number.NEGATIVE_INFINITY
  #steps = 0
  /**
   * How far the wall clock was ahead of the monotonic clock, and until when, by the monotonic clock, this is reused.
   */
  #aheadMs = 0
  #knownUntilMs = Number.NEGATIVE_INFINITY

  constructor(own: (() => number) | undefined) {
    this.#own = own
  }

  now(): Moment {
    // A measurement from here must not include an earlier, unnoticed step.
    this.#knownUntilMs = Number.NEGATIVE_INFINITY
    const ms = this.#own ? this.#readOwn(this.#own) : this.#read()
    return { ms, aheadMs: this.#aheadMs, steps: this.#steps }
  }

  /** Milliseconds since `began`; infinite if unknown. */
  since(began: Moment): number {
    if (this.#own) {
      const ms = this.#readOwn(this.#own) - began.ms
      return began.steps === this.#steps ? ms : Number.POSITIVE_INFINITY
    }
    const ms = this.#read() - began.ms
    return ms + Math.max(0, this.#aheadMs - began.aheadMs)
  }

  #read(): number {
    const ms = this.#performance.now()
    if (ms >= this.#knownUntilMs) {
      this.#aheadMs = Date.now() - ms
      this.#knownUntilMs = ms + KNOWN_FOR_MS
    }
    return ms
  }

  #readOwn(own: () => number): number {
    const ms = own()
    if (ms < this.#latestMs) this.#steps++
    this.#latestMs = ms
    return ms
  }
}
