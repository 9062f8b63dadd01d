import * as bucket from '../../kernels/bucket.js'
import { instant } from '../../kernels/clock.js'
import type { ReplyReader } from '../scripts/reply-reader.js'
import type { LocalCount, Unsent } from './local-count.js'

/**
 * What was charged to a bucket, so that it can be told late: all of it, and what it would have left in an empty bucket. Whatever
 * else was in the bucket, the debt is the larger of the two: what was there, less what has drained, plus all of it; or what
 * it leaves by itself.
 */
class BucketCharges implements Unsent {
  units = 0
  alone = 0
  asOf = 0
  /** What Redis said last before it, and when; negative where it has said nothing. */
  base = -1
  debtThen = 0
  /** Whether there is anything to send. It may be 0 units: what was refunded before it had drained, and charged after. */
  #isChanged = false
  readonly #params: readonly number[]

  constructor(params: readonly number[]) {
    this.#params = params
  }

  get isEmpty(): boolean {
    return !this.#isChanged
  }

  add(debt: number, at: number): void {
    this.#isChanged = true
    this.units += debt
    this.#addAlone(debt, at)
  }

  /** What was owed of a charge, of which `own` is what time has left of it alone. */
  refund(owed: number, own: number): void {
    this.#isChanged = true
    this.units -= owed
    // What it would leave by itself is less by no more than that.
    this.alone = Math.max(0, this.alone - Math.min(owed, own))
  }

  /** What Redis was asked for meanwhile, which this process may be alone to know of once it has drained there. */
  addAsked(debt: number, at: number): void {
    this.debtThen = Math.max(0, this.debtThen + debt)
    this.#addAlone(debt, at)
  }

  #addAlone(debt: number, at: number): void {
    const asOf = Math.max(this.asOf, at)
    this.alone = Math.max(0, this.aloneAt(asOf) + debt)
    this.asOf = asOf
  }

  aloneAt(at: number): number {
    const [limit, , , stepMs] = this.#params as [number, number, number, number]
    return bucket.drain(this.alone, Math.min(this.asOf, at), at, limit, stepMs)
  }

  push(args: string[]): void {
    const { units, alone, asOf, base, debtThen } = this
    if (this.isEmpty) args.push('0')
    else args.push('5', String(units), String(alone), String(asOf), String(base < 0 ? asOf : base), String(debtThen))
  }

  addEarlier(charges: this): void {
    const { units, alone, asOf, base, debtThen } = charges
    if (!charges.isEmpty) this.#isChanged = true
    const at = Math.max(this.asOf, asOf)
    const [limit, , , stepMs] = this.#params as [number, number, number, number]
    const earlier = bucket.drain(alone, asOf, at, limit, stepMs)
    this.alone = Math.max(earlier + Math.max(0, this.units), this.aloneAt(at))
    this.units += units
    this.asOf = at
    this.base = base
    this.debtThen = debtThen
  }
}

export class LocalBucket implements LocalCount<BucketCharges> {
  readonly #params: readonly number[]
  readonly #limit: number
  readonly #windowMs: number
  readonly #capacity: number
  readonly #stepMs: number
  #debt = 0
  #at = 0
  /** How much was refunded here, in unit·ms, of charges from when on. */
  #refunded = 0
  #givenFrom = -1
  #unsent: BucketCharges

  constructor(params: readonly number[]) {
    const [limit, windowMs, capacity, stepMs] = params as [number, number, number, number]
    this.#params = params
    this.#limit = limit
    this.#windowMs = windowMs
    this.#capacity = capacity
    this.#stepMs = stepMs
    this.#unsent = new BucketCharges(params)
  }

  get refunded(): number {
    return this.#refunded
  }

  get hasUnsent(): boolean {
    return !this.#unsent.isEmpty
  }

  wait(cost: number, now: number): number {
    this.#bring(now)
    const pace = this.#paceOf(this.#debt)
    const ms = bucket.waitFor(this.#debt, this.#at, cost, pace, this.#windowMs, this.#capacity, this.#stepMs)
    // While the clock catches up with the state, its waits count from the state's instant.
    return ms > 0 ? ms + this.#at - now : ms
  }

  charge(cost: number, now: number, latest: number): void {
    this.#bring(now)
    this.#add(cost * this.#windowMs, latest)
  }

  chargeRefusal(cost: number, now: number, latest: number): void {
    this.#bring(now)
    const full = bucket.charge(this.#debt, cost, this.#windowMs, this.#capacity)
    this.#add(Math.max(0, full - this.#debt), latest)
  }

  assume(cost: number, now: number): void {
    this.#bring(now)
    this.#debt = Math.max(0, this.#debt + cost * this.#windowMs)
    this.#unsent.addAsked(cost * this.#windowMs, this.#at)
  }

  refund(cost: number, receipt: number, before: number, chargedAt: number, now: number): void {
    this.#bring(now)
    const after = bucket.refund(
      this.#debt,
      this.#refunded,
      this.#givenFrom,
      this.#at,
      cost,
      receipt,
      before,
      chargedAt,
      this.#limit,
      this.#windowMs,
      this.#capacity,
      this.#stepMs,
    )
    const owed = this.#debt - after.debt
    this.#debt = after.debt
    this.#refunded = after.refunded
    this.#givenFrom = after.from
    const own = bucket.drain(cost * this.#windowMs, Math.min(chargedAt, this.#at), this.#at, this.#limit, this.#stepMs)
    this.#unsent.refund(owed, own)
  }

  report(values: number[], now: number, need: number | undefined): void {
    const remaining = Math.max(0, bucket.remaining(this.#debt, this.#windowMs, this.#capacity))
    const reset = this.wait(this.#capacity, now)
    if (need === undefined) values.push(remaining, 0, reset, this.#debt)
    else values.push(remaining, this.wait(need, now), reset, this.wait(remaining + 1, now))
  }

  resetAfter(now: number): number {
    return this.wait(this.#capacity, now)
  }

  takeUnsent(): BucketCharges {
    const taken = this.#unsent
    this.#unsent = new BucketCharges(this.#params)
    this.#unsent.base = taken.base
    this.#unsent.debtThen = taken.debtThen
    return taken
  }

  putBack(sent: BucketCharges): void {
    this.#unsent.addEarlier(sent)
  }

  hear(reply: ReplyReader, saidAt: number, now: number, underWay: readonly BucketCharges[]): void {
    const debt = reply.uint56()
    const since = reply.uint48()
    this.#at = Math.max(since, now)
    // Below 0 where it has been idle: what was charged meanwhile may have used that.
    let sum = debt - bucket.elapsed(since, this.#at, this.#stepMs) * this.#paceOf(debt)
    for (const charges of [...underWay, this.#unsent]) {
      sum = Math.max(sum + charges.units, charges.aloneAt(Math.max(this.#at, charges.asOf)))
    }
    this.#debt = Math.max(0, sum)
    // What was refunded since of charges from before is not known here.
    if (this.#givenFrom < 0) this.#givenFrom = saidAt
    this.#unsent.base = saidAt
    this.#unsent.debtThen = debt
  }

  #bring(now: number): void {
    const at = instant(this.#at, now, this.#windowMs)
    this.#debt = bucket.drain(this.#debt, Math.min(this.#at, at), at, this.#paceOf(this.#debt), this.#stepMs)
    this.#at = at
  }

  #paceOf(debt: number): number {
    return bucket.paceOf(debt, this.#limit, this.#windowMs, this.#capacity)
  }

  #add(debt: number, latest: number): void {
    this.#debt += debt
    this.#unsent.add(debt, Math.max(latest, this.#at))
  }
}
