import { drainingBucket, intervalBucket } from '../../support/oracle/buckets.js'
import { exactLog } from '../../support/oracle/exact-log.js'
import { firstMs } from '../../support/oracle/first-ms.js'
import { clockWindow, openedWindow } from '../../support/oracle/fixed-window.js'
import { permits } from '../../support/oracle/permits.js'
import { segmentedWindow } from '../../support/oracle/segments.js'
import type { Charge, Room } from '../../support/oracle/spec.js'
import { capacityOf, isBucket, type LimitOf, partOf } from './case.js'

/** The least and the most of something. Equal where it is exact. */
export type Range = readonly [least: number, most: number]

/** A charge of one limit, as it counts at most and at least. */
export interface Entry {
  readonly most: Charge & { cost: number }
  readonly least: Charge & { cost: number }
  /** Whether an older charge was refunded since. */
  isPassed: boolean
  /** Whether a part of a later settlement may have been forgiven: such a charge is not refunded. docs/settle.md, Settle units by name. */
  mayBeForgiven: boolean
  /** Whether a reset has failed since: docs/when-redis-fails.md, Other operations. */
  mayBeForgotten: boolean
  /** The process whose reset has cleared it. */
  clearedBy: number | undefined
  /** Units that had room. A refusal that is charged fills a bucket, and no more is charged later: docs/guarantees.md, Charged refusals. */
  readonly fitting: number
}

const DAY_MS = 86_400_000

/** What a process knows of a count by a reply of the store. */
export interface Known {
  readonly at: number
  readonly room: Range
  /** The time until all units are back. */
  readonly resetMs: Range
  /** The charges that count at most and at least. */
  readonly most: readonly Charge[]
  readonly least: readonly Charge[]
}

/** `lease`: of a limit that is tightened for it: docs/fewer-round-trips.md, Costs. */
function roomOf(limit: LimitOf, lease: LimitOf['lease'], share: number): Room {
  const { algorithm, window = 0, every = 0, segments = 1, edge = 'weighted' } = limit
  const amount = amountOf(limit, share)
  const windowMs = (window === 'day' ? DAY_MS : window) + (algorithm === 'slidingLog' && lease ? lease.ttl : 0)
  const capacity = partOf(capacityOf({ ...limit, lease }), share)
  switch (algorithm) {
    case 'slidingLog':
      return exactLog(amount, windowMs)
    case 'fixedWindow':
      return limit.anchor === 'first-request' ? openedWindow(amount, windowMs) : clockWindow(amount, windowMs)
    case 'slidingWindow':
      return segmentedWindow(amount, windowMs, segments, edge, 'down')
    case 'gcra':
      return drainingBucket(amount, windowMs, capacity)
    case 'tokenBucket':
      return limit.style === 'interval'
        ? intervalBucket(amount, every, capacity)
        : drainingBucket(amount, every, capacity)
    case 'leakyBucket':
      return drainingBucket(amount, every, capacity)
    case 'concurrency':
      return permits(amount, limit.ttl as number)
  }
}

function amountOf({ limit, refill, leak }: LimitOf, share: number): number {
  return partOf((limit ?? refill ?? leak) as number, share)
}

/** What no verdict showed, although the model cannot know it: the rest of a case says nothing. */
export class Undecided extends Error {}

/** What one limit counts of one identity: each charge, and what is left of it. */
export class Count {
  readonly limit: LimitOf
  readonly identity: string
  /** Of the limit in its case, and of the identity. */
  readonly id: string
  readonly capacity: number
  readonly #room: Room
  /** Without the lease: what the tightened limit keeps to. */
  readonly #loose: Room
  /** The units that processes may hold by leases. */
  readonly #leased: number
  readonly #share: number
  protected readonly entries: Entry[] = []
  /** Whether a process has refunded units of others. Each refund may do so then. */
  protected isMixed = false
  /** Whether units were charged that had no room. Processes spend those that they hold nevertheless: docs/fewer-round-trips.md, Costs. */
  #isExceeded = false
  /** Units of leases that processes may return after another one's reset: docs/fewer-round-trips.md, Costs. */
  #returned = 0

  /** `processes`: how many take units by leases. None in memory. `share`: of the limit, in an outage. */
  constructor(id: string, limit: LimitOf, identity: string, processes = 0, share = 1) {
    this.id = id
    this.limit = limit
    this.identity = identity
    this.#share = share
    this.capacity = partOf(capacityOf(limit), share)
    this.#room = roomOf(limit, limit.lease, share)
    this.#leased = (limit.lease?.size ?? 0) * processes
    this.#loose = this.#leased > 0 ? roomOf(limit, undefined, share) : this.#room
  }

  /** What a reply of the store at this moment says. */
  known(now: number): Known {
    // A charge that is refunded may have opened the window.
    const isKept = ({ cost }: Charge) => cost > 0 || this.limit.anchor === 'first-request'
    const copies = (of: 'most' | 'least') =>
      this.charges(of).flatMap((charge) => (isKept(charge) ? [{ ...charge }] : []))
    return {
      at: now,
      room: this.room(now),
      resetMs: isBucket(this.limit) || this.limit.anchor ? this.wait(now, this.capacity) : [0, 0],
      most: copies('most'),
      least: copies('least'),
    }
  }

  /**
   * Goes on from what a process knows of the whole limit, if a client had used more than half of it: docs/when-redis-fails.md, Local
   * decisions. It knows one of these replies. `units`: of other limits that share a log, at most. `isSure`: whether it goes on with this limit.
   */
  goOn(known: readonly Known[], units: number, isSure: boolean): void {
    const whole = capacityOf(this.limit)
    const { algorithm, anchor, window } = this.limit
    if (known.length === 0 || algorithm === 'concurrency' || whole === 0) return
    const charges = isSure && this.entries.length === 0 ? this.#leastOf(known, whole) : []
    for (const charge of charges) this.#add({ ...charge }, { ...charge, cost: 0 })
    if (units === 0) return
    let at = Math.max(...known.map((each) => each.at))
    if (anchor === 'first-request') {
      // A window that may have begun at several moments.
      const [only] = known
      if (charges.length === 0 || known.length > 1 || only?.resetMs[0] !== only?.resetMs[1]) throw new Undecided()
      at += (only?.resetMs[1] ?? 0) - (window as number)
    }
    this.#add({ at, cost: 0 }, { at, cost: units, isDebt: true })
  }

  #leastOf(known: readonly Known[], whole: number): readonly Charge[] {
    const [only] = known
    if (known.length > 1 || !only || Math.floor(only.room[1]) >= whole / 2) return []
    const { at, room, resetMs, least } = only
    const used = Math.ceil(((whole - Math.floor(room[1])) * this.capacity) / whole)
    const { algorithm, window, every = window, style, anchor, edge } = this.limit
    // A sliding window goes on without the units beyond its limit, so those of the last segment are back earlier.
    if (edge === 'weighted' && least.reduce((sum, { cost }) => sum + cost, 0) > whole) return []
    if (isBucket(this.limit) && style !== 'interval') {
      const drained = Math.floor((resetMs[0] * amountOf(this.limit, this.#share)) / (every as number))
      return [{ at, cost: Math.min(used, drained) }]
    }
    if (style === 'interval' || (algorithm === 'fixedWindow' && anchor === undefined)) return [{ at, cost: used }]
    let before = 0
    return least.map((charge) => {
      const upTo = (units: number) => Math.floor((units * this.capacity) / whole)
      const cost = upTo(before + charge.cost) - upTo(before)
      before += charge.cost
      return { ...charge, cost }
    })
  }

  /** The units that it goes on with at most. */
  mostKnown(known: readonly Known[]): number {
    const whole = capacityOf(this.limit)
    const used = known.map(({ room: [least], most }) => {
      if (least >= whole / 2) return 0
      return least > 0
        ? whole - least
        : Math.max(
            whole,
            most.reduce((sum, { cost }) => sum + cost, 0),
          )
    })
    return Math.ceil((Math.max(0, ...used) * this.capacity) / whole)
  }

  #add(least: Charge & { cost: number }, most: Charge & { cost: number }): void {
    this.entries.push({
      most,
      least,
      isPassed: true,
      clearedBy: undefined,
      mayBeForgiven: false,
      mayBeForgotten: false,
      fitting: 0,
    })
  }

  room(now: number): Range {
    const most = this.#isExceeded && this.isLeased ? this.capacity : this.#loose(this.charges('least'), now)
    return [this.#room(this.#mostAt(now), now), Math.min(this.capacity, most + this.#returned)]
  }

  /** Whether a verdict may have numbers of an earlier lease: docs/fewer-round-trips.md, Costs. */
  get isLeased(): boolean {
    return this.#leased > 0
  }

  /** All charges, and the units that processes have taken and not spent, be it before a debt. */
  #mostAt(now: number): readonly Charge[] {
    const charges = this.charges('most')
    return this.#leased > 0 ? [...charges, { at: now, cost: this.#leased, isDebt: true as const }] : charges
  }

  /** The time until there is room for so many units. */
  wait(now: number, units: number): Range {
    const until = (room: Room, charges: readonly Charge[]) => firstMs((ms) => room(charges, now + ms) >= units)
    const isSoon = this.isLeased && (this.#isExceeded || this.#returned > 0)
    return [isSoon ? 0 : until(this.#loose, this.charges('least')), until(this.#room, this.#mostAt(now))]
  }

  /** `isDebt`: charged whatever room there is. */
  charge(now: number, cost: number, isDebt = false): Entry {
    const entry: Entry = {
      fitting: isDebt || !isBucket(this.limit) ? cost : Math.min(cost, this.room(now)[0]),
      most: { at: now, cost, ...(isDebt && { isDebt }) },
      least: { at: now, cost, ...(isDebt && { isDebt }) },
      isPassed: false,
      clearedBy: undefined,
      mayBeForgiven: false,
      mayBeForgotten: false,
    }
    const earlier = [...this.entries]
    this.#isExceeded ||= isDebt
    this.entries.push(entry)
    if (isDebt && isBucket(this.limit) && this.#isFull(entry, now))
      for (const each of earlier) each.mayBeForgiven = true
    if (this.limit.algorithm === 'slidingLog') this.#trim(now)
    return entry
  }

  /**
   * Charges the rest of a stream as far as there is room: a bucket for fractions of a unit, too. In a log, units without room replace
   * the oldest: docs/settle.md, Meter a stream. With `onDeny: 'charge'`, windows count what is left after the last step in full, up to their limit.
   * `reserved`: undefined if the policy has no reserves.
   */
  fill(now: number, units: number, reserved: number | undefined, chargesRefusals: boolean): void {
    this.#isExceeded ||= units > 0
    if (reserved === undefined && (chargesRefusals || isBucket(this.limit) || this.limit.algorithm === 'slidingLog')) {
      if (this.capacity === 0) return
      const { least } = this.charge(now, units)
      least.cost = Math.min(least.cost, this.capacity)
      return
    }
    const [least, most] = this.room(now).map((room) => Math.min(units, Math.max(0, room - (reserved ?? 0)))) as [
      number,
      number,
    ]
    if (most === 0) return
    const entry = this.charge(now, most)
    // Limits that share a log are charged alike, as far as all of them have room: docs/settle.md, Meter a stream.
    entry.least.cost = this.limit.algorithm === 'slidingLog' ? 0 : least
  }

  /** Charges at most so many units, as there is room. */
  fillPartly(now: number, units: number): void {
    const most = Math.min(units, Math.ceil(this.room(now)[1]))
    if (most > 0) this.charge(now, most).least.cost = 0
  }

  /** Refunds so many units of a charge, by the process that made it. */
  refund(entry: Entry, units: number, now: number, by: number): void {
    if (units === 0) return
    const at = this.entries.indexOf(entry)
    this.isMixed ||= at < 0 && entry.clearedBy !== undefined && entry.clearedBy !== by
    if (this.isMixed) this.refundOthers(entry, units)
    if (at < 0) return
    const later = this.entries.slice(at + 1)
    let left = units
    // A log does not tell units of one ms apart. Where later units have replaced these, it may refund the later ones: docs/guarantees.md, Refunds and resets.
    const alike = this.limit.algorithm === 'slidingLog' ? later.filter(({ least }) => least.at === entry.least.at) : []
    for (const { least } of [entry, ...alike]) {
      const refunded = Math.min(left, least.cost)
      least.cost -= refunded
      left -= refunded
    }
    // A refund of leased units may return fewer: docs/fewer-round-trips.md, Costs.
    if (!this.isLeased && !entry.mayBeForgotten && (!isBucket(this.limit) || this.#isExact(entry, later, now)))
      entry.most.cost = Math.max(0, entry.most.cost - units)
    for (const each of later) {
      each.isPassed = true
      each.least.cost = Math.min(each.least.cost, each.fitting)
    }
    // A window without units is over: the next request begins another. docs/windows.md, Where windows start.
    if (this.limit.anchor !== 'first-request' || this.room(now)[this.isLeased ? 1 : 0] !== this.capacity) return
    // It is over when its lease has returned the unit: docs/fewer-round-trips.md, Costs.
    if (this.isLeased) throw new Undecided()
    this.reset(undefined)
  }

  /** The process that has spent units may spend them again while their lease lives, also without the store: docs/fewer-round-trips.md, Costs. */
  returnToLease({ least }: Entry, units: number, now: number): void {
    if (this.isLeased && now < least.at + (this.limit.lease?.ttl as number))
      least.cost = Math.max(0, least.cost - units)
  }

  /**
   * A process does not know of resets by others. Its refund of a charge that one has cleared may return units that were charged later:
   * docs/guarantees.md, Refunds and resets.
   */
  protected refundOthers({ least: { at } }: Entry, units: number): void {
    const { algorithm, anchor } = this.limit
    // A log knows the ms of a charge.
    const alike = this.entries.filter(({ least }) => algorithm !== 'slidingLog' || least.at === at)
    if (algorithm === 'concurrency' || alike.length === 0) return
    if (anchor === 'first-request') throw new Undecided()
    for (const { least } of alike) least.cost = Math.max(0, least.cost - units)
  }

  /**
   * A bucket stores one number, so a refund may return less than is left of a charge. It returns all if it comes before the next charge,
   * of the newest charge first, or at the instant of the charge: docs/guarantees.md, Several refunds of a bucket.
   */
  #isExact(entry: Entry, later: readonly Entry[], now: number): boolean {
    if (entry.mayBeForgiven) return false
    return entry.most.at === now || (!entry.isPassed && later.every(({ most }) => most.cost === 0))
  }

  /** Whether a bucket may owe all that it can owe after a debt: a unit less makes no difference. */
  #isFull({ most, least }: Entry, now: number): boolean {
    const [, before] = this.wait(now, this.capacity)
    most.cost -= 1
    least.cost -= 1
    const [, after] = this.wait(now, this.capacity)
    most.cost += 1
    least.cost += 1
    return before === after
  }

  /** The permits of a charge are held for another `ttl`. */
  renew(entry: Entry, now: number): void {
    const ttl = this.limit.ttl as number
    for (const charge of [entry.most, entry.least]) {
      if (now < (charge.until ?? charge.at + ttl)) charge.until = now + ttl
    }
  }

  reset(by: number | undefined): void {
    if (this.entries.length > 0) this.#returned = this.#leased
    for (const entry of this.entries.splice(0)) entry.clearedBy = by
    this.isMixed = false
    this.#isExceeded = false
  }

  /** A reset by the process that has charged has failed. */
  failReset(): void {
    for (const entry of this.entries) entry.mayBeForgotten = true
  }

  /** In a log, units beyond the limit replace the oldest: docs/settle.md, Settle units by name. */
  #trim(now: number): void {
    for (const of of ['most', 'least'] as const) {
      const young = this.charges(of).filter(({ at }) => now - at < (this.limit.window as number))
      let over = young.reduce((sum, { cost }) => sum + cost, 0) - this.capacity
      for (const charge of young) {
        if (over <= 0) break
        const gone = Math.min(over, charge.cost)
        charge.cost -= gone
        over -= gone
      }
    }
  }

  /** The charges as they count at most and at least. */
  protected charges(of: 'most' | 'least'): (Charge & { cost: number })[] {
    return this.entries.map((entry) => entry[of])
  }
}
