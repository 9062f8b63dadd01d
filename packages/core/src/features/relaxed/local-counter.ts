import { instant } from '../../kernels/clock.js'
import * as counter from '../../kernels/counter.js'
import type { ReplyReader } from '../../redis/scripts/reply-reader.js'
import { LocalCount } from './local-count.js'

export class LocalCounter extends LocalCount {
  readonly #limit: number
  readonly #windowMs: number
  readonly #byClock: boolean
  #count = 0
  #start = 0

  constructor(params: readonly number[]) {
    super()
    const [limit, windowMs, , byClock] = params as [number, number, number, number]
    this.#limit = limit
    this.#windowMs = windowMs
    this.#byClock = byClock === 1
  }

  wait(cost: number, now: number): number {
    this.#bring(now)
    return counter.waitFor(this.#count, this.#start + this.#windowMs - now, cost, this.#limit)
  }

  charge(cost: number, now: number, latest: number): void {
    this.assume(cost, now)
    const isOver = latest >= this.#start + this.#windowMs
    if (isOver) this.noteNext(counter.startOf(latest, this.#windowMs, this.#byClock), cost)
    this.unsent.add(isOver ? this.next : this.#start, cost)
  }

  assume(cost: number, now: number): void {
    this.#bring(now)
    this.#count = Math.max(0, this.#count + cost)
  }

  /** The window of a first request may have begun slightly later than this process assumed. */
  override observeReceipt(start: number): void {
    if (!this.#byClock && this.#count > 0) this.#start = start
  }

  refund(cost: number, receipt: number, now: number): void {
    this.#bring(now)
    if (receipt !== this.#start) return
    const units = Math.min(cost, this.#count)
    this.#count -= units
    this.unsent.add(receipt, -units)
  }

  protected room(): number {
    return Math.max(0, this.#limit - this.#count)
  }

  protected get receipt(): number {
    return this.#start
  }

  resetAfter(now: number): number {
    this.#bring(now)
    return this.#count === 0 ? 0 : this.#start + this.#windowMs - now
  }

  protected read(reply: ReplyReader): void {
    this.#count = reply.uint56()
    this.#start = reply.uint48()
  }

  protected recount(start: number, units: number, now: number): void {
    if (start + this.#windowMs <= now) return
    if (start >= this.#start + this.#windowMs) this.noteNext(start, units)
    else if (this.#count === 0 && !this.#byClock) this.#open(Math.min(start, now), units)
    else this.#count = Math.max(0, this.#count + units)
  }

  /** Moves on to the window that contains an instant. */
  #bring(now: number): void {
    // The first unit opens a window.
    if (this.#count === 0 && this.nextCount === 0 && !this.#byClock) this.#start = now
    const at = instant(this.#start, now, this.#windowMs)
    // A clock that stepped back implausibly far does not refund.
    if (at < this.#start) this.#start = counter.startOf(at, this.#windowMs, this.#byClock)
    if (at < this.#start + this.#windowMs) return
    const isNext = this.nextCount > 0 && at >= this.next && at < this.next + this.#windowMs
    if (isNext) this.#open(this.next, this.nextCount)
    else this.#open(counter.startOf(at, this.#windowMs, this.#byClock), 0)
    this.nextCount = 0
  }

  #open(start: number, units: number): void {
    this.#start = start
    this.#count = Math.max(0, units)
  }
}
