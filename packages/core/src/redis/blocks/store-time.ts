/** The store's clock as this process knows it: its own clock, or Redis's clock by the last reply. */
export class StoreTime {
  readonly #clock: (() => number) | undefined
  /** Redis's time minus that of the performance clock. */
  #ahead = Date.now() - performance.now()

  constructor(clock: (() => number) | undefined) {
    this.#clock = clock
  }

  /**
   * Takes Redis's time from a reply. Time is counted from the reply's arrival, so that no reported wait is too short.
   */
  observe(now: number): void {
    this.#ahead = now - performance.now()
  }

  now(): number {
    return this.#clock ? this.#clock() : Math.floor(performance.now() + this.#ahead)
  }
}
