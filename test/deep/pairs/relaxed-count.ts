import type { Charge } from '../../support/oracle/spec.js'
import type { LimitOf } from './case.js'
import { Count, type Entry, Undecided } from './count.js'

/** What other processes know of a charge: docs/fewer-round-trips.md, How a process decides. */
interface Shared {
  readonly process: number
  /** The units that others count of it, at least and at most. */
  least: number
  most: number
  /** Whether all processes have made an exchange since. */
  isExchanged: boolean
  /** The process that has cleared it by a reset. Others follow with their next exchange. */
  clearedBy: number | undefined
}

/** A count of several processes. Each counts its own charges at once, and those of others from the next exchange on, or earlier. */
export class RelaxedCount extends Count {
  readonly #viewer: () => number
  readonly #shared = new Map<Entry, Shared>()

  /** `viewer`: the process that decides. */
  constructor(id: string, limit: LimitOf, identity: string, viewer: () => number) {
    super(id, limit, identity)
    this.#viewer = viewer
  }

  override charge(now: number, cost: number): Entry {
    const process = this.#viewer()
    // When a window begins depends on what a process knows.
    const isOfOthers = [...this.#shared.values()].some((shared) => shared.process !== process)
    if (this.limit.anchor === 'first-request' && isOfOthers) throw new Undecided()
    const entry = super.charge(now, cost)
    this.#shared.set(entry, { process, least: 0, most: cost, isExchanged: false, clearedBy: undefined })
    return entry
  }

  /** Charges for a request that another policy then refuses. Others learn of the refund with the next exchange. */
  chargeForMoment(now: number, cost: number): void {
    const entry = this.charge(now, cost)
    entry.least.cost = 0
    entry.most.cost = 0
  }

  override refund(entry: Entry, units: number, now: number, by: number): void {
    const shared = this.#shared.get(entry)
    if (shared === undefined || entry.clearedBy === undefined) super.refund(entry, units, now, by)
    else if (entry.clearedBy !== by) {
      this.isMixed = true
      this.refundOthers(entry, units)
    }
    if (shared) shared.least = Math.min(shared.least, entry.least.cost)
  }

  /** What others have not sent by then, they send later: docs/fewer-round-trips.md, How a process decides. */
  override reset(by: number | undefined): void {
    if (this.limit.anchor === 'first-request' && this.entries.length > 0) throw new Undecided()
    for (const [entry, shared] of this.#shared) {
      // A refund on its way may return units that are charged later: docs/guarantees.md, Refunds and resets.
      if (shared.process !== by && shared.most > entry.most.cost) throw new Undecided()
      entry.clearedBy = by
      entry.least.cost = 0
      shared.least = 0
      if (shared.isExchanged || shared.process === by) shared.clearedBy = by
    }
  }

  /** All processes have sent what they have counted, and have taken over what the others have. */
  exchange(): void {
    for (const [entry, shared] of this.#shared) {
      shared.isExchanged = true
      shared.least = entry.least.cost
      shared.most = entry.most.cost
      if (shared.clearedBy === undefined) continue
      this.#shared.delete(entry)
      this.entries.splice(this.entries.indexOf(entry), 1)
    }
  }

  protected override charges(of: 'most' | 'least'): (Charge & { cost: number })[] {
    const viewer = this.#viewer()
    return this.entries.map((entry) => {
      const { process, clearedBy, [of]: cost } = this.#shared.get(entry) as Shared
      if (clearedBy === viewer) return { ...entry[of], cost: 0 }
      return process === viewer ? entry[of] : { ...entry[of], cost }
    })
  }
}
