import type { ParsedLine } from '../formats/parsed-line.js'

/** Waiting records survive collections of garbage, each of which costs half as much as reading a line. */
const FIRST_SIZE = 8192

/** Puts requests in the order of their starts: over as many lines as turns out to be needed, up to a bound. */
export class Sorter {
  /** Records that came after later ones had left. They start with the last of those. */
  late = 0
  /** The longest time by which one was late, in ms. */
  latestByMs = 0
  readonly #maxSize: number
  #size: number
  #waiting: ParsedLine[] = []
  #isSorted = true
  #newestMs = Number.NEGATIVE_INFINITY
  #leftMs = Number.NEGATIVE_INFINITY

  /** @param maxSize records that wait at most, of which half leave at once */
  constructor(maxSize: number) {
    this.#maxSize = maxSize
    this.#size = Math.min(FIRST_SIZE, maxSize)
  }

  /** Takes records, and returns those whose place is sure. */
  push(records: readonly ParsedLine[]): ParsedLine[] {
    for (const record of records) {
      if (record.startMs < this.#newestMs) this.#isSorted = false
      else this.#newestMs = record.startMs
      this.#waiting.push(record)
    }
    return this.#waiting.length < this.#size ? [] : this.#leave(this.#waiting.length - (this.#size >>> 1))
  }

  /** Returns the rest. */
  end(): ParsedLine[] {
    return this.#leave(this.#waiting.length)
  }

  #leave(count: number): ParsedLine[] {
    // Stable: requests of the same time remain in the order of their lines.
    if (!this.#isSorted) this.#waiting.sort((a, b) => a.startMs - b.startMs)
    const leaving = this.#waiting.slice(0, count)
    this.#waiting = this.#waiting.slice(count)
    // The rest is in order.
    this.#isSorted = true
    this.#newestMs = this.#waiting.at(-1)?.startMs ?? this.#newestMs
    const lateBefore = this.late
    for (const record of leaving) {
      if (record.startMs >= this.#leftMs) break
      this.late++
      this.latestByMs = Math.max(this.latestByMs, this.#leftMs - record.startMs)
      // The clock of the replay never goes back, as that of a store.
      record.startMs = this.#leftMs
    }
    if (this.late > lateBefore) this.#size = Math.min(this.#size * 2, this.#maxSize)
    this.#leftMs = leaving.at(-1)?.startMs ?? this.#leftMs
    return leaving
  }
}
