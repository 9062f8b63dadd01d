import type { Counting, Snapshot } from '@sluice/core/metrics'

/** One snapshot for all metrics of a scrape, which prom-client reads in one go: they agree, and are put together once. */
export class SnapshotOfScrape {
  readonly #counting: Counting
  #snapshot: Snapshot | undefined

  constructor(counting: Counting) {
    this.#counting = counting
  }

  /** Bound, as it is handed on. */
  readonly read = <Points>(read: (snapshot: Snapshot) => Points): Points => {
    if (!this.#snapshot) {
      this.#snapshot = this.#counting.read()
      queueMicrotask(() => {
        this.#snapshot = undefined
      })
    }
    return read(this.#snapshot)
  }
}
