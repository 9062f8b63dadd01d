import { trimCounts } from '@sluice/core/internal'

/**
 * The largest counts of names, in room for twice `kept` of them: a summary of Misra and Gries, with the merge of Agarwal et al.
 * (see `trimCounts`). No count is too high. Each is too low by at most `error`, which is at most `total / (kept + 1)`, and so is the
 * count of a name that is missing. All of them together are too low by `lost`. All of this holds for sums of summaries, too.
 */
export class TopCounts {
  readonly #kept: number
  #counts = new Map<string, number>()
  #total = 0
  #error = 0

  constructor(kept: number) {
    this.#kept = kept
  }

  /** Everything that was counted, also of names that are missing. */
  get total(): number {
    return this.#total
  }

  get error(): number {
    return this.#error
  }

  get lost(): number {
    let left = this.#total
    for (const count of this.#counts.values()) left -= count
    return left
  }

  get entries(): ReadonlyMap<string, number> {
    return this.#counts
  }

  add(name: string, count: number): void {
    this.#total += count
    this.#put(name, count)
  }

  /** Adds another summary. `error`: of its counts. */
  merge({ entries, total, error }: Pick<TopCounts, 'entries' | 'total' | 'error'>): void {
    this.#total += total
    this.#error += error
    for (const [name, count] of entries) this.#put(name, count)
  }

  /** Drops names, whose counts are then lost. */
  drop(isDropped: (name: string) => boolean): void {
    for (const [name, count] of [...this.#counts]) {
      if (!isDropped(name)) continue
      this.#counts.delete(name)
      this.#total -= count
    }
  }

  /** The largest entries alone. */
  largest(most: number): TopCounts {
    const ordered = [...this.#counts].sort(([, one], [, other]) => other - one)
    const part = new TopCounts(this.#kept)
    part.#counts = new Map(ordered.slice(0, most))
    part.#total = this.#total
    part.#error = this.#error + (ordered[most]?.[1] ?? 0)
    return part
  }

  #put(name: string, count: number): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + count)
    // In large steps, as each sorts all counts.
    if (this.#counts.size > 2 * this.#kept) this.#error += trimCounts(this.#counts, this.#kept)
  }
}
