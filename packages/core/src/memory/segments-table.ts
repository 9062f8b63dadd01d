import { instant, isAhead } from '../kernels/clock.js'
import * as window from '../kernels/window.js'
import { type State, States, type Table } from './table.js'

interface SegmentsState extends State {
  segment: number
  total: number
  /** Newest first; the last is the edge. */
  counts: number[]
}

export class SegmentsTable extends States<SegmentsState> implements Table {
  readonly #limit: number
  readonly #windowMs: number
  readonly #segments: number
  readonly #segmentMs: number
  readonly #edge: number

  #segment = 0
  #total = 0
  #counts: number[] = []
  /** How far the decision's instant is into its segment. */
  #offset = 0
  #at = 0

  constructor([limit, windowMs, segments, edge]: readonly number[], graceMs: number) {
    super(graceMs)
    this.#limit = limit as number
    this.#windowMs = windowMs as number
    this.#segments = segments as number
    this.#segmentMs = this.#windowMs / this.#segments
    this.#edge = edge as number
  }

  look(identity: string, now: number, need: number): number {
    const state = this.find(identity, now, need)
    const start = state ? state.segment * this.#segmentMs : now
    this.#at = instant(start, now, this.#windowMs)
    this.#segment = Math.floor(this.#at / this.#segmentMs)
    this.#offset = this.#at - this.#segment * this.#segmentMs
    const by = state ? Math.max(0, this.#segment - state.segment) : this.#segments + 1
    if (state && by <= this.#segments) {
      this.#total = state.total - window.leaving(state.counts, by, this.#segments)
      this.#counts = by === 0 ? state.counts : [...new Array(by).fill(0), ...state.counts.slice(0, -by)]
    } else {
      this.#total = 0
      this.#counts = new Array(this.#segments + 1).fill(0)
    }
    if (state && isAhead(start, now, this.#windowMs)) this.#bringBack()
    return this.#wait(need)
  }

  charge(cost: number): void {
    const edge = window.edgeUnits(this.#counts[this.#segments] as number, this.#offset, this.#segmentMs, this.#edge)
    const units = Math.min(cost, Math.max(0, this.#limit - this.#total - edge))
    this.#counts[0] = (this.#counts[0] as number) + units
    this.#total += units
    this.#write()
  }

  refund(cost: number, receipt: number): void {
    const k = this.#segment - receipt
    if (!this.state || k < 0 || k > this.#segments) return
    const units = Math.min(cost, this.#counts[k] as number)
    this.#counts[k] = (this.#counts[k] as number) - units
    if (k < this.#segments) this.#total -= units
    this.#write()
  }

  heal(): void {
    if (this.state && isAhead(this.state.segment * this.#segmentMs, this.now, this.#windowMs)) this.#write()
  }

  report(values: number[], admitted: boolean): void {
    const edge = window.edgeUnits(this.#counts[this.#segments] as number, this.#offset, this.#segmentMs, this.#edge)
    values.push(
      Math.max(0, this.#limit - this.#total - edge),
      admitted ? 0 : this.#wait(this.need),
      this.#reset(),
      this.#segment,
    )
  }

  protected consumed(state: SegmentsState, now: number): number {
    const by = Math.max(0, Math.floor(now / this.#segmentMs) - state.segment)
    return by > this.#segments ? 0 : (state.total - window.leaving(state.counts, by, this.#segments)) / this.#limit
  }

  /**
   * A state from a future that cannot be is read as if its newest segment were this one. What a weighted
   * edge counts for depends on the instant, so there it moves into the window proper, where it counts in full.
   */
  #bringBack(): void {
    if (this.#edge < window.WEIGHTED_DOWN) return
    const units = Math.min(this.#counts[this.#segments] as number, this.#limit - this.#total)
    this.#counts = [...this.#counts]
    this.#counts[this.#segments] = 0
    this.#counts[this.#segments - 1] = (this.#counts[this.#segments - 1] as number) + units
    this.#total += units
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
    const resetAfterMs = this.#reset()
    if (resetAfterMs === 0) {
      this.states.delete(this.identity)
      return
    }
    const resetAt = this.now + resetAfterMs
    if (this.state) {
      this.state.segment = this.#segment
      this.state.total = this.#total
      this.state.counts = this.#counts
      this.state.resetAt = resetAt
    } else {
      this.states.set(this.identity, { segment: this.#segment, total: this.#total, counts: this.#counts, resetAt })
    }
  }
}
