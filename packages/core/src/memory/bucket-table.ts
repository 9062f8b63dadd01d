import * as bucket from '../kernels/bucket.js'
import { instant, isAhead } from '../kernels/clock.js'
import { type State, States, type Table } from './table.js'

interface BucketState extends State {
  debt: number
  at: number
}

export class BucketTable extends States<BucketState> implements Table {
  readonly #limit: number
  readonly #windowMs: number
  readonly #capacity: number
  readonly #stepMs: number

  #debt = 0
  #at = 0

  constructor([limit, windowMs, capacity, stepMs]: readonly number[], graceMs: number) {
    super(graceMs)
    this.#limit = limit as number
    this.#windowMs = windowMs as number
    this.#capacity = capacity as number
    this.#stepMs = stepMs as number
  }

  look(identity: string, now: number, need: number): number {
    const state = this.find(identity, now, need)
    this.#at = state ? instant(state.at, now, this.#windowMs) : now
    this.#debt = state ? bucket.drain(state.debt, Math.min(state.at, this.#at), this.#at, this.#limit, this.#stepMs) : 0
    return this.#wait(need)
  }

  charge(cost: number): void {
    this.#debt = bucket.charge(this.#debt, cost, this.#windowMs, this.#capacity)
    this.#write()
  }

  refund(cost: number, receipt: number, chargedAt: number): void {
    if (!this.state) return

    this.#debt = bucket.refund(
      this.#debt,
      this.#at,
      cost,
      receipt,
      chargedAt,
      this.#limit,
      this.#windowMs,
      this.#stepMs,
    )
    this.#write()
  }

  heal(): void {
    if (this.state && isAhead(this.state.at, this.now, this.#windowMs)) this.#write()
  }

  report(values: number[], admitted: boolean): void {
    values.push(
      bucket.remaining(this.#debt, this.#windowMs, this.#capacity),
      admitted ? 0 : this.#wait(this.need),
      this.#wait(this.#capacity),
      this.#debt,
    )
  }

  protected consumed(state: BucketState, now: number): number {
    const debt = bucket.drain(state.debt, state.at, Math.max(state.at, now), this.#limit, this.#stepMs)
    return debt / (this.#capacity * this.#windowMs)
  }

  #wait(cost: number): number {
    const wait = bucket.waitFor(this.#debt, this.#at, cost, this.#limit, this.#windowMs, this.#capacity, this.#stepMs)
    // While the clock catches up with the state, its wait counts from the state's instant.
    return wait > 0 ? wait + this.#at - this.now : wait
  }

  #write(): void {
    const resetAfterMs = this.#wait(this.#capacity)
    if (resetAfterMs === 0) {
      this.states.delete(this.identity)
      return
    }
    const resetAt = this.now + resetAfterMs
    if (this.state) {
      this.state.debt = this.#debt
      this.state.at = this.#at
      this.state.resetAt = resetAt
    } else this.states.set(this.identity, { debt: this.#debt, at: this.#at, resetAt })
  }
}
