import { firstMs } from './first-ms.js'
import { capacityOf } from './oracle.js'
import type { LimitSpec } from './spec.js'

export type BucketSpec = Extract<LimitSpec, { algorithm: 'gcra' | 'tokenBucket' | 'leakyBucket' }>

/** The amount that a charge added to a bucket, less its refunds, in unit·ms. */
export interface Kept {
  readonly at: number
  amount: bigint
}

const positive = (a: bigint) => (a > 0n ? a : 0n)

/**
 * A bucket that remembers each of its charges. A refund removes a part of its charge from the past, and everything
 * later is computed again. Slow, and simple enough to be trusted.
 */
export class RememberingBucket {
  readonly #unit: bigint
  readonly #full: bigint
  readonly #paidOff: (from: number, to: number) => bigint
  #charges: Kept[] = []
  #now = 0
  #at = 0
  #changedAt = 0

  constructor(spec: BucketSpec) {
    const { limit, window } = spec
    const stepMs = spec.algorithm === 'tokenBucket' && spec.style === 'interval' ? window : 1
    this.#unit = BigInt(window)
    this.#full = BigInt(capacityOf(spec)) * this.#unit
    const perStep = BigInt(limit) * BigInt(stepMs)
    this.#paidOff = (from, to) => perStep * BigInt(Math.floor(to / stepMs) - Math.floor(from / stepMs))
  }

  /**
   * After a clock stepped back, time stands still until the bucket's last change is reached again, unless it is empty.
   */
  goTo(now: number, isEmpty: boolean): void {
    if (isEmpty) this.#charges = []
    this.#now = now
    this.#at = isEmpty ? now : Math.max(this.#changedAt, now)
  }

  charge(cost: number): Kept {
    return this.#add(BigInt(cost) * this.#unit)
  }

  /** Charges the available room, less the amount that lasts longer than so many ms. */
  fill(paidOffAfterMs: number): void {
    this.#add(positive(this.#full - this.#paidOff(this.#at, this.#now + paidOffAfterMs)))
  }

  /** Refunds, and returns the reduction of the debt in unit·ms. A refund leaves the instant of the last change. */
  refund(charge: Kept, cost: number): bigint {
    const before = this.#debt(this.#at)
    charge.amount = positive(charge.amount - BigInt(cost) * this.#unit)
    return before - this.#debt(this.#at)
  }

  get room(): number {
    return Number((this.#full - this.#debt(this.#at)) / this.#unit)
  }

  get emptyInMs(): number {
    return firstMs((ms) => this.#debt(this.#at + ms) === 0n)
  }

  #add(amount: bigint): Kept {
    const charge = { at: this.#at, amount }
    this.#charges.push(charge)
    this.#changedAt = this.#at
    return charge
  }

  #debt(now: number): bigint {
    let debt = 0n
    let last = 0
    for (const { at, amount } of this.#charges) {
      debt = positive(debt - this.#paidOff(last, at)) + amount
      last = at
    }
    return positive(debt - this.#paidOff(last, now))
  }
}
