import { BATCH_BOUNDS, type Histogram } from '../../store/health.js'
import { BoundedCounts } from '../../util/bounded-counts.js'
import { watchers } from '../../util/listeners.js'
import type { Batch } from './batch.js'

/** Maximum decisions that may wait for a connection. More would get their results too late, and all at once. */
export const MAX_UNSENT = 10_000

/** The batches that wait for a connection or for a reply. */
export class InFlight {
  /** Number of decisions in batches without a result or failure. */
  #decisions = 0
  /** Number of decisions in batches that wait for a connection. */
  #unsent = 0
  /** Decisions per batch while counting was on. */
  readonly #sizes = new BoundedCounts(BATCH_BOUNDS)
  /** Callers that wait until no decision is in flight. */
  #drained: (() => void)[] = []

  get decisions(): number {
    return this.#decisions
  }

  /** Decisions per batch. */
  get sizes(): Histogram {
    return this.#sizes.read()
  }

  /** Returns whether the batch may be sent; false if too many decisions wait. */
  begin({ entries }: Batch): boolean {
    this.#decisions += entries.length
    if (watchers.isCounting) this.#sizes.add(entries.length)
    if (this.#unsent >= MAX_UNSENT) return false
    this.#unsent += entries.length
    return true
  }

  /** Call it when the batch is sent, or fails before that. */
  sent(batch: Batch): void {
    if (batch.isSent) return
    batch.isSent = true
    batch.sentAt = performance.now()
    this.#unsent -= batch.entries.length
  }

  /** Call it when all decisions of the batch have a result or have failed. */
  end({ entries }: Batch): void {
    this.#decisions -= entries.length
    if (this.#decisions > 0) return
    for (const resolve of this.#drained.splice(0)) resolve()
  }

  /** Resolves when no decision is in flight. */
  over(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#decisions === 0) resolve()
      else this.#drained.push(resolve)
    })
  }
}
