import * as bucket from '../kernels/bucket.js'
import { instant, isAhead } from '../kernels/clock.js'
import { STRIDE } from '../store/store.js'
import { Table, type TableTerms } from './table.js'

/** A state's cells: the debt, and its instant. */
const DEBT = 0
const AT = 1
/** More cells while there are refunds: the refunded amount, the instant of the first charge it is for, and the end of its use. */
const REFUNDED = 2
const FROM = 3
const UNTIL = 4

/** The kinds of states, and the number of cells of each. */
const PLAIN = 0
const COUNTED = 1
const CELLS = [2, 5] as const

/** The smallest limit above 0 of all tables with the same states: a state that has ended for it has ended for all. */
interface Slowest {
  limit: number
}

export class BucketTable extends Table {
  readonly #limit: number
  readonly #windowMs: number
  readonly #capacity: number
  readonly #stepMs: number
  readonly #slowest: Slowest

  #debt = 0
  #at = 0
  /** The debt of the current state that each ms pays off. */
  #pace = 0
  #kind: typeof PLAIN | typeof COUNTED = PLAIN
  #from = 0
  /** The time until which the refunded amount is needed: as long as the charges would have counted. */
  #until = 0

  constructor([limit, windowMs, capacity, stepMs]: readonly number[], terms: TableTerms) {
    super(terms)
    this.#limit = limit as number
    this.#windowMs = windowMs as number
    this.#capacity = capacity as number
    this.#stepMs = stepMs as number
    this.#slowest = terms.like instanceof BucketTable ? terms.like.#slowest : { limit: this.#limit }
    if (this.#limit > 0) this.#slowest.limit = Math.min(this.#slowest.limit || this.#limit, this.#limit)
  }

  look(identity: string, now: number, need: number): number {
    this.#at = now
    this.#debt = 0
    this.#pace = this.#limit
    if (this.#kind === COUNTED) this.#forgetRefunds()
    if (this.find(identity, now, need)) {
      if (this.kind === COUNTED) this.#readRefunds()
      const since = this.#storedAt
      this.#at = instant(since, now, this.#windowMs)
      const debt = this.cells[this.at + DEBT] as number
      this.#pace = this.#paceOf(debt)
      this.#debt = this.#left(debt, Math.min(since, this.#at), this.#at, this.#pace)
    }
    return this.#wait(need)
  }

  charge(cost: number): void {
    // Filling the bucket would take from a debt beyond its capacity.
    if (this.#debt > this.#capacity * this.#windowMs) return this.heal()
    this.#debt = bucket.charge(this.#debt, cost, this.#windowMs, this.#capacity)
    this.#pace = this.#limit
    this.#write()
  }

  override debit(cost: number): void {
    const most = bucket.maxDebt(this.#windowMs, this.#capacity)
    // Without the earlier charges, less would have been forgiven: none of them is refunded.
    if (cost * this.#windowMs > most - this.#debt) this.#countRefunds(this.refunded, bucket.fromForgiven(this.#at))
    // By a larger limit on the same state.
    if (this.#debt > most) return this.#rewrite(this.cells[this.at + DEBT] as number)
    this.#debt = bucket.debit(this.#debt, cost, this.#windowMs, this.#capacity)
    this.#pace = this.#limit
    this.#write()
  }

  refund(cost: number, receipt: number, chargedAt: number, _lease: string, before: number): void {
    if (!this.hasState) return
    const stored = this.cells[this.at + DEBT] as number
    // A larger limit on the same state, within its capacity, has drained earlier charges at least twice as fast.
    const pace = this.#pace === this.#limit ? this.#limit : 2 * this.#pace
    const { written, refunded, from } = bucket.refund(
      stored,
      this.#debt,
      this.refunded,
      this.#from,
      this.#at,
      cost,
      receipt,
      before,
      chargedAt,
      pace,
      this.#windowMs,
      this.#capacity,
      this.#stepMs,
    )
    if (written === stored) return
    if (refunded !== this.refunded || from !== this.#from) this.#countRefunds(refunded, from)
    this.#rewrite(written)
  }

  heal(): void {
    if (this.hasState && isAhead(this.#storedAt, this.now, this.#windowMs)) this.#write()
  }

  report(values: number[], from: number, admitted: boolean): number {
    values[from] = Math.max(0, bucket.remaining(this.#debt, this.#windowMs, this.#capacity))
    values[from + 1] = admitted ? 0 : this.#wait(this.need)
    values[from + 2] = this.#wait(this.#capacity)
    values[from + 3] = this.#debt
    return from + STRIDE
  }

  protected end(): number {
    if (this.kind === COUNTED) return this.cells[this.at + UNTIL] as number
    const at = this.#storedAt
    return at + this.#waitAt(this.cells[this.at + DEBT] as number, at, this.#capacity, this.#slowest.limit)
  }

  protected consumed(now: number): number {
    const at = this.#storedAt
    const debt = this.cells[this.at + DEBT] as number
    return this.#left(debt, at, Math.max(at, now), this.#paceOf(debt)) / (Math.max(1, this.#capacity) * this.#windowMs)
  }

  get #storedAt(): number {
    return this.cells[this.at + AT] as number
  }

  #paceOf(debt: number): number {
    return bucket.paceOf(debt, this.#limit, this.#windowMs, this.#capacity)
  }

  /** The part of a stored `debt` that is left at the instant `at`. */
  #left(debt: number, since: number, at: number, pace: number): number {
    return bucket.drain(bucket.atPace(debt, pace, this.#limit, this.#windowMs), since, at, pace, this.#stepMs)
  }

  #wait(cost: number): number {
    const wait = this.#waitAt(this.#debt, this.#at, cost, this.#pace)
    // While the clock catches up with the state, its wait counts from the state's instant.
    return wait > 0 ? wait + this.#at - this.now : wait
  }

  #waitAt(debt: number, at: number, cost: number, pace: number): number {
    return bucket.waitFor(debt, at, cost, pace, this.#windowMs, this.#capacity, this.#stepMs)
  }

  #forgetRefunds(): void {
    this.#kind = PLAIN
    this.refunded = 0
    this.#from = 0
    this.#until = 0
  }

  #readRefunds(): void {
    this.#kind = COUNTED
    this.refunded = this.cells[this.at + REFUNDED] as number
    this.#from = this.cells[this.at + FROM] as number
    this.#until = this.cells[this.at + UNTIL] as number
  }

  /** Keeps a count of refunds for as long as the charges until now would have counted. */
  #countRefunds(refunded: number, from: number): void {
    this.#kind = COUNTED
    this.#until = Math.max(this.#until, this.#paidOffAt())
    this.refunded = refunded
    this.#from = from
  }

  /** Writes another debt as of the instant of the state, from which other limits on the same state drain it. */
  #rewrite(written: number): void {
    const at = this.#at
    const since = Math.min(this.#storedAt, at)
    this.#debt = written
    this.#at = since
    this.#pace = this.#paceOf(written)
    this.#write()
    this.#debt = this.#left(written, since, at, this.#pace)
    this.#at = at
  }

  #paidOffAt(): number {
    return this.#at + this.#waitAt(this.#debt, this.#at, this.#capacity, this.#pace)
  }

  #write(): void {
    if (this.#kind === PLAIN && this.#debt === 0) return this.drop()
    if (!this.hasState || this.kind !== this.#kind) this.keep(this.#kind, CELLS[this.#kind])
    this.cells[this.at + DEBT] = this.#debt
    this.cells[this.at + AT] = this.#at
    if (this.#kind === PLAIN) return
    this.cells[this.at + REFUNDED] = this.refunded
    this.cells[this.at + FROM] = this.#from
    this.cells[this.at + UNTIL] = Math.max(this.#until, this.#paidOffAt())
  }
}
