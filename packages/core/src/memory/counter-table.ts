import { ceilingOf } from '../kernels/ceiling.js'
import { instant, isAhead } from '../kernels/clock.js'
import * as counter from '../kernels/counter.js'
import { STRIDE } from '../store/store.js'
import type { WallClock } from './clock.js'
import { Table, type TableTerms } from './table.js'

/** A state's cells: the start of its window, and its count. */
const START = 0
const COUNT = 1
const CELLS = 2

/** One counter per window; the window starts by the clock or with a key's first request. */
export class CounterTable extends Table {
  readonly #limit: number
  readonly #windowMs: number
  readonly #byClock: boolean
  /** The bounds of windows of the calendar. Undefined for other windows. */
  readonly #bounds: readonly number[] | undefined
  /** The maximum count. */
  readonly #max: number
  /** Undefined if windows start with a key's first request. */
  readonly #wall: WallClock | undefined

  #start = 0
  #count = 0

  constructor(params: readonly number[], terms: TableTerms) {
    super(terms)
    const [limit, windowMs, withRefusals, start] = params
    this.#limit = limit as number
    this.#windowMs = windowMs as number
    this.#byClock = start === counter.BY_CLOCK
    this.#wall = this.#byClock || start === counter.BY_CALENDAR ? terms.wall : undefined
    // Without bounds for a plan that only shows what is stored.
    const bounds = params.slice(counter.FIRST_BOUND)
    this.#bounds = bounds.length > 0 ? bounds : undefined
    this.#max = withRefusals === 1 ? ceilingOf(this.#limit, this.#windowMs) : this.#limit
  }

  look(identity: string, instant: number, need: number): number {
    const now = this.timeAt(instant)
    this.#count = 0
    if (this.find(identity, now, need)) {
      const start = this.#storedStart
      // The common case: the current window.
      if (start <= now && now < start + this.#windowMs) this.#read(start)
      else this.#readOther(start, now)
    } else this.#start = this.#startOf(now)
    return this.#wait(need)
  }

  #read(start: number): void {
    this.#start = start
    this.#count = this.cells[this.at + COUNT] as number
  }

  /** Reads a window that is over, or one that has not begun for a clock that stepped back. */
  #readOther(start: number, now: number): void {
    const at = instant(start, now, this.#windowMs)
    const isOver = at >= start + this.#windowMs
    if (!isOver) this.#read(start)
    if (isOver || start > at) this.#start = this.#startOf(at)
  }

  #startOf(at: number): number {
    if (this.#bounds) return counter.startIn(at, this.#windowMs, this.#bounds)
    return counter.startOf(at, this.#windowMs, this.#byClock)
  }

  charge(cost: number): void {
    this.#add(cost, this.#max)
  }

  override debit(cost: number): void {
    this.#add(cost, ceilingOf(this.#limit, this.#windowMs))
  }

  #add(cost: number, max: number): void {
    // Never less than before: it may exceed the limit by a debt, or by charges of a larger limit.
    this.#count = Math.max(this.#count, Math.min(max, this.#count + cost))
    this.#write()
  }

  refund(cost: number, receipt: number): void {
    if (!this.hasState || this.#start !== receipt) return
    this.#count = Math.max(0, this.#count - cost)
    this.#write()
  }

  heal(): void {
    if (this.hasState && isAhead(this.#storedStart, this.now, this.#windowMs)) this.#write()
  }

  report(values: number[], from: number, admitted: boolean): number {
    values[from] = Math.max(0, this.#limit - this.#count)
    values[from + 1] = admitted ? 0 : this.#wait(this.need)
    values[from + 2] = this.#count === 0 ? 0 : this.#endsIn()
    values[from + 3] = this.#start
    return from + STRIDE
  }

  protected override timeAt(now: number): number {
    return this.#wall ? this.#wall.at(now) : now
  }

  protected end(): number {
    return this.#storedStart + this.#windowMs
  }

  protected consumed(): number {
    return (this.cells[this.at + COUNT] as number) / Math.max(1, this.#limit)
  }

  get #storedStart(): number {
    return this.cells[this.at + START] as number
  }

  #endsIn(): number {
    return this.#start + this.#windowMs - this.now
  }

  #wait(cost: number): number {
    return counter.waitFor(this.#count, this.#endsIn(), cost, this.#limit)
  }

  #write(): void {
    if (this.#count === 0) return this.drop()
    if (!this.hasState) this.keep(0, CELLS)
    this.cells[this.at + START] = this.#start
    this.cells[this.at + COUNT] = this.#count
  }
}
