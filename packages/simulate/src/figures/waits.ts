/** Waits in ms, by buckets that are 2 % wide: percentiles without keeping each. */
export class Waits {
  readonly #buckets = new Map<number, number>()
  #count = 0
  #max = 0

  add(ms: number): void {
    const bucket = Math.ceil(Math.log(Math.max(1, ms)) / WIDTH)
    this.#buckets.set(bucket, (this.#buckets.get(bucket) ?? 0) + 1)
    this.#count++
    if (ms > this.#max) this.#max = ms
  }

  /** Undefined if nothing waited. */
  report(): { readonly count: number; readonly p50: number; readonly p99: number; readonly max: number } | undefined {
    if (this.#count === 0) return undefined
    return { count: this.#count, p50: this.#percentile(0.5), p99: this.#percentile(0.99), max: this.#max }
  }

  #percentile(share: number): number {
    let left = share * this.#count
    for (const bucket of [...this.#buckets.keys()].sort((a, b) => a - b)) {
      left -= this.#buckets.get(bucket) as number
      if (left <= 0) return Math.min(this.#max, Math.round(Math.exp(bucket * WIDTH)))
    }
    return this.#max
  }
}

const WIDTH = Math.log(1.02)
