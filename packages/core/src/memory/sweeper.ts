import { outsideRequests } from '../util/outside-requests.js'
/** A collection whose entries end by themselves. */
export interface Swept {
  /** The number of entries. */
  readonly size: number
  /** Visits up to `max` entries, removes those that have ended, and returns the number of visits. */
  sweep(now: number, max: number): number
}

/** The number of visits per tick, and the intervals of the timer: shorter where many entries have ended. */
const SWEPT_PER_TICK = 2000
const SWEEP_EVERY_MS = 100
const SWEEP_SOON_MS = 10

/** One timer for all entries that end, active only while there are any. It does not prevent the process from ending. */
export class Sweeper {
  readonly #now: () => number
  readonly #swept: readonly (() => Swept)[]
  #timer: NodeJS.Timeout | undefined

  /** `swept`: each collection leaves its unused visits to the next ones. */
  constructor(now: () => number, swept: readonly (() => Swept)[]) {
    this.#now = now
    this.#swept = swept
  }

  later(afterMs = SWEEP_EVERY_MS): void {
    this.#timer ??= outsideRequests(() => setTimeout(() => this.#sweep(), afterMs).unref())
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** Visits a bounded number of entries, so that it does not delay requests. */
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
