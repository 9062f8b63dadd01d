import * as bucket from '../kernels/bucket.js'
import { instant, isAhead } from '../kernels/clock.js'
import { States, type Table } from './table.js'

/** A state's cells: the debt, and as of when. */
const DEBT = 0
const AT = 1
const CELLS = 2

export class BucketTable extends States implements Table {
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
    this.#at = now
    this.#debt = 0
    if (this.find(identity, now, need)) {
      const since = this.#storedAt
      this.#at = instant(since, now, this.#windowMs)
      this.#debt = this.#drained(Math.min(since, this.#at), this.#at)
    }
    return this.#wait(need)
  }

  charge(cost: number): void {
    this.#debt = bucket.charge(this.#debt, cost, this.#windowMs, this.#capacity)
    this.#write()
  }

  refund(cost: number, receipt: number, chargedAt: number): void {
    if (!this.isKept) return
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
    if (this.isKept && isAhead(this.#storedAt, this.now, this.#windowMs)) this.#write()
  }

  report(values: number[], from: number, admitted: boolean): void {
    values[from] = bucket.remaining(this.#debt, this.#windowMs, this.#capacity)
    values[from + 1] = admitted ? 0 : this.#wait(this.need)
    values[from + 2] = this.#wait(this.#capacity)
    values[from + 3] = this.#debt
  }

  protected end(): number {
    const at = this.#storedAt
    return at + this.#waitAt(this.cells[this.at + DEBT] as number, at, this.#capacity)
  }

  protected consumed(now: number): number {
    const at = this.#storedAt
    return this.#drained(at, Math.max(at, now)) / (this.#capacity * this.#windowMs)
  }

  get #storedAt(): number {
    return this.cells[this.at + AT] as number
  }

  #drained(since: number, at: number): number {
    return bucket.drain(this.cells[this.at + DEBT] as number, since, at, this.#limit, this.#stepMs)
  }

  #wait(cost: number): number {
    const wait = this.#waitAt(this.#debt, this.#at, cost)
    // While the clock catches up with the state, its wait counts from the state's instant.
    return wait > 0 ? wait + this.#at - this.now : wait
  }

  #waitAt(debt: number, at: number, cost: number): number {
    return bucket.waitFor(debt, at, cost, this.#limit, this.#windowMs, this.#capacity, this.#stepMs)
  }

  #write(): void {
    if (this.#wait(this.#capacity) === 0) return this.drop()
    if (!this.isKept) this.keep(0, CELLS)
    this.cells[this.at + DEBT] = this.#debt
    this.cells[this.at + AT] = this.#at
  }
}
