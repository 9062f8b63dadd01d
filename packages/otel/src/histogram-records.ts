import type { Histogram } from '@opentelemetry/api'
import type { HistogramPoint } from '@sluice/core/metrics'

/** Most records of one histogram and set of labels in one collection: each takes some 2 µs, all of them at once. */
const MAX_RECORDS = 500

/**
 * Records what a histogram has counted since the last collection. OpenTelemetry has no histogram that is read when it is
 * collected, so values are recorded one by one: for each bucket a value in the middle of it. Where there are more than
 * `MAX_RECORDS`, every bucket keeps its share, and at least one.
 */
export class HistogramRecords {
  readonly #instrument: Histogram
  readonly #bounds: readonly number[]
  /** Counts at the last collection, by labels; of these there is a bounded number. */
  readonly #before = new Map<string, readonly number[]>()

  constructor(instrument: Histogram, bounds: readonly number[]) {
    this.#instrument = instrument
    this.#bounds = bounds
  }

  /** Leaves out the counts so far. */
  skip(points: readonly HistogramPoint[]): void {
    for (const { labels, counts } of points) this.#before.set(JSON.stringify(labels), counts)
  }

  record(points: readonly HistogramPoint[]): void {
    for (const { labels, counts } of points) {
      const before = this.#before.get(JSON.stringify(labels)) ?? []
      const fresh = counts.map((count, i) => Math.max(0, count - (before[i] ?? 0)))
      const total = fresh.reduce((sum, count) => sum + count, 0)
      const share = Math.min(1, MAX_RECORDS / total)
      for (const [bucket, count] of fresh.entries()) {
        const records = count === 0 ? 0 : Math.max(1, Math.round(count * share))
        for (let n = 0; n < records; n++) this.#instrument.record(this.#valueIn(bucket), labels)
      }
    }
    this.skip(points)
  }

  #valueIn(bucket: number): number {
    const above = this.#bounds[bucket - 1] ?? 0
    const max = this.#bounds[bucket]
    return max === undefined ? above * 2 : (above + max) / 2
  }
}
