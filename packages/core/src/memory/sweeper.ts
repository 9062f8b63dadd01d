/** Something whose entries end by themselves. */
export interface Swept {
  /** How many there are. */
  readonly size: number
  /** Looks at up to `most` entries, removes those that have ended, and returns how many it looked at. */
  sweep(now: number, most: number): number
}

/** How many the timer looks at each time, and when it comes again: sooner where many have ended. */
const SWEPT_PER_TICK = 2000
const SWEEP_EVERY_MS = 100
const SWEEP_SOON_MS = 10

/** One timer for all that ends, only while there is any. It does not keep the process alive. */
export class Sweeper {
  readonly #now: () => number
  readonly #swept: readonly (() => Swept)[]
  #timer: NodeJS.Timeout | undefined

  /** `swept`: each leaves to those after it what it does not look at. */
  constructor(now: () => number, swept: readonly (() => Swept)[]) {
    this.#now = now
    this.#swept = swept
  }

  later(afterMs = SWEEP_EVERY_MS): void {
    this.#timer ??= setTimeout(() => this.#sweep(), afterMs).unref()
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** Looks at a bounded number, so that it does not delay requests. */
  #sweep(): void {
    this.#timer = undefined
    const now = this.#now()
    const before = this.#size
    let left = SWEPT_PER_TICK
    for (const swept of this.#swept) left -= swept().sweep(now, left)
    const size = this.#size
    if (size > 0) this.later(before - size > SWEPT_PER_TICK / 4 ? SWEEP_SOON_MS : SWEEP_EVERY_MS)
  }

  get #size(): number {
    return this.#swept.reduce((sum, swept) => sum + swept().size, 0)
  }
}
