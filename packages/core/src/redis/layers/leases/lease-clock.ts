/** An instant by the clocks of this process. */
export interface Moment {
  readonly ms: number
  /** How far the clock on the wall was ahead of that. */
  readonly aheadMs: number
  /** How often the user's clock had stepped back. */
  readonly steps: number
}

/**
 * How old what is known of the clock on the wall may be, in ms that the monotonic one has counted. No machine falls
 * asleep and wakes within that: it takes a thousand times as long, on either side of the time that is not counted.
 */
const KNOWN_FOR_MS = 0.01

/**
 * What the life of leases is measured by: never less than has passed for the store.
 *
 * Whichever clock has moved further counts. The monotonic one stands still while a machine sleeps, and when a
 * frozen one goes on elsewhere; the one on the wall may be set back. A clock of the user's is asked alone,
 * since the store goes by it, too; what began before it stepped back is over.
 *
 * The monotonic clock is read each time. What the wall adds to it is how far it has come ahead since: nothing, but for
 * a sleep or a step. That is read again once the other has moved on by 10 µs, so that of many decisions in a row one
 * pays for it. What a decision then does not see happened less than that before it, as what comes between its reading
 * any clock and any action on it is not seen either.
 */
export class LeaseClock {
  readonly #own: (() => number) | undefined
  // Not looked up each time: the global is an accessor of Node's, for a tenth of what a decision costs.
  readonly #performance = performance
  #latestMs = Number.NEGATIVE_INFINITY
  #steps = 0
  /** How far the clock on the wall was ahead of the monotonic one, and until when by that one this holds. */
  #aheadMs = 0
  #knownUntilMs = Number.NEGATIVE_INFINITY

  constructor(own: (() => number) | undefined) {
    this.#own = own
  }

  now(): Moment {
    // What is measured from here must not begin with a step that was not seen yet.
    this.#knownUntilMs = Number.NEGATIVE_INFINITY
    const ms = this.#own ? this.#readOwn(this.#own) : this.#read()
    return { ms, aheadMs: this.#aheadMs, steps: this.#steps }
  }

  /** Milliseconds since `began`; infinite if that is not known. */
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
