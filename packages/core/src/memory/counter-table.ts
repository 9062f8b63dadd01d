import { instant, isAhead } from '../kernels/clock.js'
import * as counter from '../kernels/counter.js'
import { type State, States, type Table } from './table.js'

interface CounterState extends State {
  start: number
  count: number
}

/** One counter per window; the window starts by the clock or with a key's first request. */
export class CounterTable extends States<CounterState> implements Table {
  readonly #limit: number
  readonly #windowMs: number
  readonly #byClock: boolean

  #start = 0
  #count = 0

  constructor([limit, windowMs, , byClock]: readonly number[], graceMs: number) {
    super(graceMs)
    this.#limit = limit as number
    this.#windowMs = windowMs as number
    this.#byClock = byClock === 1
  }

  look(identity: string, now: number, need: number): number {
    const state = this.find(identity, now, need)
    const at = state ? instant(state.start, now, this.#windowMs) : now
    const isOver = !state || at >= state.start + this.#windowMs
    this.#count = state && !isOver ? state.count : 0
    this.#start =
      state && !isOver && state.start <= at ? state.start : counter.startOf(at, this.#windowMs, this.#byClock)
    return this.#wait(need)
  }

  charge(cost: number): void {
    this.#count = Math.min(this.#limit, this.#count + cost)
    this.#write()
  }

  refund(cost: number, receipt: number): void {
    if (!this.state || this.#start !== receipt) return
    this.#count = Math.max(0, this.#count - cost)
    this.#write()
  }

  heal(): void {
    if (this.state && isAhead(this.state.start, this.now, this.#windowMs)) this.#write()
  }

  report(values: number[], admitted: boolean): void {
    values.push(
      this.#limit - this.#count,
      admitted ? 0 : this.#wait(this.need),
      this.#count === 0 ? 0 : this.#endsIn(),
      this.#start,
    )
  }

  protected consumed(state: CounterState, now: number): number {
    return now >= state.start + this.#windowMs ? 0 : state.count / this.#limit
  }

  #endsIn(): number {
    return this.#start + this.#windowMs - this.now
  }

  #wait(cost: number): number {
    return counter.waitFor(this.#count, this.#endsIn(), cost, this.#limit)
  }

  #write(): void {
    if (this.#count === 0) {
      this.states.delete(this.identity)
      return
    }
    const resetAt = this.#start + this.#windowMs
    if (this.state) {
      this.state.start = this.#start
      this.state.count = this.#count
      this.state.resetAt = resetAt
    } else this.states.set(this.identity, { start: this.#start, count: this.#count, resetAt })
  }
}
