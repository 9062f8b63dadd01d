/** An instant by the clocks of this process. */
export interface Moment {
  readonly ms: number
  readonly wallMs: number
  /** How often the user's clock had stepped back. */
  readonly steps: number
}

/**
 * What the life of leases is measured by: never less than has passed for the store.
 *
 * Whichever clock has moved further counts. The monotonic one stands still while a machine sleeps, and when a
 * frozen one goes on elsewhere; the one on the wall may be set back. A clock of the user's is asked alone,
 * since the store goes by it, too; what began before it stepped back is over.
 */
export class LeaseClock {
  readonly #own: (() => number) | undefined
  #latestMs = Number.NEGATIVE_INFINITY
  #steps = 0

  constructor(own: (() => number) | undefined) {
    this.#own = own
  }

  now(): Moment {
    const ms = this.#own ? this.#readOwn(this.#own) : performance.now()
    return { ms, wallMs: Date.now(), steps: this.#steps }
  }

  /** Milliseconds since `began`; infinite if that cannot be told. */
  since(began: Moment): number {
    if (this.#own) {
      const ms = this.#readOwn(this.#own) - began.ms
      return began.steps === this.#steps ? ms : Number.POSITIVE_INFINITY
    }
    return Math.max(performance.now() - began.ms, Date.now() - began.wallMs)
  }

  #readOwn(own: () => number): number {
    const ms = own()
    if (ms < this.#latestMs) this.#steps++
    this.#latestMs = ms
    return ms
  }
}
