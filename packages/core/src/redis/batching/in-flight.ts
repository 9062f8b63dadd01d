import { BATCH_BOUNDS, type Histogram } from '../../store/health.js'
import { BoundedCounts } from '../../util/bounded-counts.js'
import { watchers } from '../../util/listeners.js'
import type { Batch } from './batch.js'

/** So many decisions may wait for a connection. More would be answered too late to be of use, and all at once. */
export const MAX_UNSENT = 10_000

/** The batches that wait: for a connection, or for their replies. */
export class InFlight {
  /** How many decisions are in batches that are neither answered nor given up. */
  #decisions = 0
  /** How many decisions are in batches that wait for a connection. */
  #unsent = 0
  /** How many decisions batches have had, of those while counting was on. */
  readonly #sizes = new BoundedCounts(BATCH_BOUNDS)
  /** Callers that wait until there are none. */
  #drained: (() => void)[] = []

  get decisions(): number {
    return this.#decisions
  }

  /** Decisions per batch. */
  get sizes(): Histogram {
    return this.#sizes.read()
  }

  /** Returns whether it may be sent; else too many wait. */
  begin({ entries }: Batch): boolean {
    this.#decisions += entries.length
    if (watchers.isCounting) this.#sizes.add(entries.length)
    if (this.#unsent >= MAX_UNSENT) return false
    this.#unsent += entries.length
    return true
  }

  /** It was sent, or failed before that. */
  sent(batch: Batch): void {
    if (batch.isSent) return
    batch.isSent = true
    batch.sentAt = performance.now()
    this.#unsent -= batch.entries.length
  }

  /** All its decisions were answered or given up. */
  end({ entries }: Batch): void {
    this.#decisions -= entries.length
    if (this.#decisions > 0) return
    for (const resolve of this.#drained.splice(0)) resolve()
  }

  /** Resolves when all that is in flight was answered or given up. */
  over(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#decisions === 0) resolve()
      else this.#drained.push(resolve)
    })
  }
}
