/** The store's clock as this process knows it: its own, or Redis's by the last reply. */
export class StoreTime {
  readonly #clock: (() => number) | undefined
  /** Redis's time less that of the performance clock. */
  #ahead = Date.now() - performance.now()

  constructor(clock: (() => number) | undefined) {
    this.#clock = clock
  }

  /** Counted from when the reply came, so that no reported wait is too short. */
  observe(now: number): void {
    this.#ahead = now - performance.now()
  }

  now(): number {
    return this.#clock ? this.#clock() : Math.floor(performance.now() + this.#ahead)
  }
}
