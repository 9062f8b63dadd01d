/** Counts values by bounds, in fixed memory. */
export class BoundedCounts {
  readonly #bounds: readonly number[]
  readonly #counts: Float64Array
  #sum = 0

  /** `bounds`: ascending. */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.#counts = new Float64Array(bounds.length + 1)
  }

  add(value: number): void {
    const bounds = this.#bounds
    let i = 0
    while (i < bounds.length && value > (bounds[i] as number)) i++
    ;(this.#counts[i] as number)++
    this.#sum += value
  }

  /** As it is now. */
  read(): { bounds: readonly number[]; counts: readonly number[]; sum: number; count: number } {
    const counts = Array.from(this.#counts)
    return { bounds: this.#bounds, counts, sum: this.#sum, count: counts.reduce((sum, count) => sum + count, 0) }
  }
}
