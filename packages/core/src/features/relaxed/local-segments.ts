import { instant } from '../../kernels/clock.js'
import * as window from '../../kernels/segments.js'
import { type ReplyReader, unreadable } from '../../redis/scripts/reply-reader.js'
import { LocalCount } from './local-count.js'

export class LocalSegments extends LocalCount {
  readonly #limit: number
  readonly #windowMs: number
  readonly #segments: number
  readonly #segmentMs: number
  readonly #edge: number
  /** Newest first; the last is the edge. */
  readonly #counts: number[]
  #total = 0
  #segment = 0
  /** The offset of the present instant in its segment, and the instant. */
  #offset = 0
  #at = 0

  constructor(params: readonly number[]) {
    super()
    const [limit, windowMs, segments, edge] = params as [number, number, number, number]
    this.#limit = limit
    this.#windowMs = windowMs
    this.#segments = segments
    this.#segmentMs = windowMs / segments
    this.#edge = edge - window.WITH_REFUSALS
    this.#counts = new Array<number>(segments + 1).fill(0)
  }

  wait(cost: number, now: number): number {
    this.#bring(now)
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
    return this.#fromNow(wait, now)
  }

  charge(cost: number, now: number, latest: number): void {
    this.assume(cost, now)
    const segment = Math.max(this.#segment, Math.floor(latest / this.#segmentMs))
    if (segment > this.#segment) this.noteNext(segment, cost)
    this.unsent.add(segment, cost)
  }

  assume(cost: number, now: number): void {
    this.#bring(now)
    this.#add(0, cost)
  }

  refund(cost: number, receipt: number, now: number): void {
    this.#bring(now)
    const k = this.#segment - receipt
    if (k < 0 || k > this.#segments) return
    const units = Math.min(cost, this.#counts[k] as number)
    this.#add(k, -units)
    this.unsent.add(receipt, -units)
  }

  protected room(now: number): number {
    this.#bring(now)
    const edge = window.edgeUnits(this.#counts[this.#segments] as number, this.#offset, this.#segmentMs, this.#edge)
    return Math.max(0, this.#limit - this.#total - edge)
  }

  protected get receipt(): number {
    return this.#segment
  }

  resetAfter(now: number): number {
    this.#bring(now)
    return this.#fromNow(
      window.resetAfter(this.#counts, this.#offset, this.#segments, this.#segmentMs, this.#edge),
      now,
    )
  }

  protected read(reply: ReplyReader, now: number): void {
    this.#segment = reply.uint48()
    this.#counts.fill(0)
    this.#total = 0
    for (let left = reply.uint16(); left > 0; left--) {
      const k = reply.uint16()
      if (k > this.#segments) throw unreadable('expected a segment of the window')
      this.#add(k, reply.uint56())
    }
    this.#bring(now)
  }

  protected recount(segment: number, units: number): void {
    const k = this.#segment - segment
    if (k < 0) this.noteNext(segment, units)
    else if (k <= this.#segments) this.#add(k, units)
  }

  /** While the clock catches up with the state, its waits count from the state's instant. */
  #fromNow(ms: number, now: number): number {
    return ms > 0 ? ms + this.#at - now : ms
  }

  /** Adds units to the `k`-th segment before the newest; never below 0. */
  #add(k: number, units: number): void {
    const before = this.#counts[k] as number
    const after = Math.max(0, before + units)
    this.#counts[k] = after
    if (k < this.#segments) this.#total += after - before
  }

  /** Moves on to the segment that contains an instant. */
  #bring(now: number): void {
    this.#at = instant(this.#segment * this.#segmentMs, now, this.#windowMs)
    const segment = Math.floor(this.#at / this.#segmentMs)
    this.#offset = this.#at - segment * this.#segmentMs
    if (segment === this.#segment) return
    const by = Math.max(0, segment - this.#segment)
    this.#total -= window.leaving(this.#counts, by, this.#segments)
    this.#counts.copyWithin(by, 0)
    this.#counts.fill(0, 0, by)
    this.#segment = segment
    const k = segment - this.next
    if (this.nextCount === 0 || k < 0) return
    if (k <= this.#segments) this.#add(k, this.nextCount)
    this.nextCount = 0
  }
}
