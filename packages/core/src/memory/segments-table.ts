import { ceilingOf } from '../kernels/ceiling.js'
import { instant, isAhead } from '../kernels/clock.js'
import * as window from '../kernels/segments.js'
import { STRIDE } from '../store/store.js'
import { Table, type TableTerms } from './table.js'

/** A state's cells: the number of its newest segment; then the total and the counts, two to a cell if they fit. */
const SEGMENT = 0
const LARGEST_INT = 2 ** 31 - 1

export class SegmentsTable extends Table {
  readonly #limit: number
  readonly #windowMs: number
  readonly #segments: number
  readonly #segmentMs: number
  readonly #edge: number
  readonly #withRefusals: boolean
  /** The maximum that the counters hold. */
  readonly #max: number
  readonly #fitsInts: boolean
  readonly #cells: number

  #segment = 0
  #total = 0
  /** The counts at the decision's instant, newest first; the last is the edge. They may differ from the stored ones. */
  readonly #counts: Float64Array
  /** The time from the start of the segment to the decision's instant. */
  #offset = 0
  #at = 0

  constructor([limit, windowMs, segments, edge]: readonly number[], terms: TableTerms) {
    super(terms)
    this.#limit = limit as number
    this.#windowMs = windowMs as number
    this.#segments = segments as number
    this.#segmentMs = this.#windowMs / this.#segments
    this.#withRefusals = ((edge as number) & window.WITH_REFUSALS) !== 0
    this.#edge = (edge as number) % window.WITH_REFUSALS
    // Debts, refusals and larger limits on the same state count beyond the limit.
    this.#max = (edge as number) >= window.WITH_REFUSALS ? ceilingOf(this.#limit, this.#windowMs) : this.#limit
    this.#counts = new Float64Array(this.#segments + 1)
    this.#fitsInts = this.#max <= LARGEST_INT
    const numbers = this.#counts.length + 1
    this.#cells = 1 + (this.#fitsInts ? Math.ceil(numbers / 2) : numbers)
  }

  look(identity: string, now: number, need: number): number {
    const isFound = this.find(identity, now, need)
    const start = isFound ? this.#storedSegment * this.#segmentMs : now
    this.#at = instant(start, now, this.#windowMs)
    this.#segment = Math.floor(this.#at / this.#segmentMs)
    this.#offset = this.#at - this.#segment * this.#segmentMs
    this.#read(isFound ? Math.max(0, this.#segment - this.#storedSegment) : this.#segments + 1)
    if (isFound && isAhead(start, now, this.#windowMs)) this.#bringBack()
    return this.#wait(need)
  }

  charge(cost: number): void {
    this.#add(Math.min(cost, this.#withRefusals ? Math.max(0, this.#max - this.#total) : this.#room()))
  }

  override debit(cost: number): void {
    this.#add(Math.max(0, Math.min(cost, this.#max - this.#total)))
  }

  #add(units: number): void {
    this.#counts[0] = (this.#counts[0] as number) + units
    this.#total += units
    this.#write()
  }

  refund(cost: number, receipt: number): void {
    const k = this.#segment - receipt
    if (!this.hasState || k < 0 || k > this.#segments) return
    const units = Math.min(cost, this.#counts[k] as number)
    this.#counts[k] = (this.#counts[k] as number) - units
    if (k < this.#segments) this.#total -= units
    this.#write()
  }

  heal(): void {
    if (this.hasState && isAhead(this.#storedSegment * this.#segmentMs, this.now, this.#windowMs)) this.#write()
  }

  report(values: number[], from: number, admitted: boolean): number {
    values[from] = this.#room()
    values[from + 1] = admitted ? 0 : this.#wait(this.need)
    values[from + 2] = this.#reset()
    values[from + 3] = this.#segment
    return from + STRIDE
  }

  protected end(): number {
    this.#read(0)
    const start = this.#storedSegment * this.#segmentMs
    return start + window.resetAfter(this.#counts, 0, this.#segments, this.#segmentMs, this.#edge)
  }

  protected consumed(now: number): number {
    this.#read(Math.max(0, Math.floor(now / this.#segmentMs) - this.#storedSegment))
    return this.#total / Math.max(1, this.#limit)
  }

  get #storedSegment(): number {
    return this.cells[this.at + SEGMENT] as number
  }

  /** Reads the total and the counts, moved by `by` segments. */
  #read(by: number): void {
    const counts = this.#counts
    if (by > this.#segments) {
      this.#total = 0
      counts.fill(0)
      return
    }
    const stored = this.#fitsInts ? this.ints : this.cells
    const total = this.#totalAt
    for (let k = this.#segments; k >= 0; k--) counts[k] = stored[total + 1 + k] as number
    this.#total = stored[total] as number
    if (by === 0) return
    this.#total -= window.leaving(counts, by, this.#segments)
    counts.copyWithin(by, 0)
    counts.fill(0, 0, by)
  }

  /** The position of the stored total, in ints or cells; the counts follow it. */
  get #totalAt(): number {
    const at = this.at + SEGMENT + 1
    return this.#fitsInts ? 2 * at : at
  }

  /**
   * Reads a state from an impossible future as if its newest segment were this one. The value of a weighted
   * edge depends on the instant, so it moves into the window proper, where it counts in full.
   */
  #bringBack(): void {
    if (this.#edge < window.WEIGHTED_DOWN) return
    const units = Math.max(0, Math.min(this.#counts[this.#segments] as number, this.#max - this.#total))
    this.#counts[this.#segments] = 0
    this.#counts[this.#segments - 1] = (this.#counts[this.#segments - 1] as number) + units
    this.#total += units
  }

  #edgeUnits(): number {
    return window.edgeUnits(this.#counts[this.#segments] as number, this.#offset, this.#segmentMs, this.#edge)
  }

  #room(): number {
    return Math.max(0, this.#limit - this.#total - this.#edgeUnits())
  }

  #wait(cost: number): number {
    const wait = window.waitFor(
      this.#counts,
      this.#total,
      this.#offset,
      cost,
      this.#limit,
      this.#segments,
      this.#segmentMs,
      this.#edge,
    )
    return wait > 0 ? wait + this.#at - this.now : wait
  }

  #reset(): number {
    const reset = window.resetAfter(this.#counts, this.#offset, this.#segments, this.#segmentMs, this.#edge)
    return reset > 0 ? reset + this.#at - this.now : 0
  }

  #write(): void {
    if (this.#reset() === 0) return this.drop()
    if (!this.hasState) this.keep(0, this.#cells)
    this.cells[this.at + SEGMENT] = this.#segment
    const stored = this.#fitsInts ? this.ints : this.cells
    const total = this.#totalAt
    stored[total] = this.#total
    // `set` takes longer where numbers become ints, and where they are few.
    for (let k = 0; k <= this.#segments; k++) stored[total + 1 + k] = this.#counts[k] as number
  }
}
