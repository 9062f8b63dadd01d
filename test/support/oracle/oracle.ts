import { drainingBucket, intervalBucket } from './buckets.js'
import { exactLog } from './exact-log.js'
import { firstMs } from './first-ms.js'
import { clockWindow, openedWindow } from './fixed-window.js'
import { permits } from './permits.js'
import { segmentedWindow } from './segments.js'
import type { Charge, LimitSpec, Room } from './spec.js'

export function capacityOf(spec: LimitSpec): number {
  if (spec.limit === 0) return 0
  return 'capacity' in spec ? spec.capacity : spec.limit
}

export function roomOf(spec: LimitSpec): Room {
  const { limit, window } = spec
  switch (spec.algorithm) {
    case 'slidingLog':
      return exactLog(limit, window)
    case 'fixedWindow':
      return spec.anchor === 'clock' ? clockWindow(limit, window) : openedWindow(limit, window)
    case 'slidingWindow':
      return segmentedWindow(limit, window, spec.segments, spec.edge, spec.rounding ?? 'down')
    case 'tokenBucket':
      return spec.style === 'interval'
        ? intervalBucket(limit, window, capacityOf(spec))
        : drainingBucket(limit, window, capacityOf(spec))
    case 'gcra':
    case 'leakyBucket':
      return drainingBucket(limit, window, capacityOf(spec))
    case 'concurrency':
      return permits(limit, window)
  }
}

/** The verdict by definition. */
export interface Expected {
  readonly allowed: boolean
  readonly reason: 'limited' | 'impossible' | undefined
  readonly remaining: number
  readonly retryAfterMs: number | undefined
  readonly resetAfterMs: number
  readonly delayMs: number
  readonly limits: readonly {
    readonly allowed: boolean
    readonly remaining: number
    readonly retryAfterMs: number | undefined
    readonly resetAfterMs: number
  }[]
}

/** A charge in each limit's list, to find it again for a release or renewal. */
export type Receipt = readonly { readonly list: Charge[]; readonly charge: Charge }[]

const REQUESTS = 'requests'
const PERMITS = 'concurrent-requests'

/** A policy by definition: slow, and simple enough to be trusted. */
export class Oracle {
  readonly #limits: readonly { spec: LimitSpec; room: Room; lists: Map<string, Charge[]> }[]
  readonly #chargesRefusals: boolean
  readonly #units: readonly string[]

  /** `units`: the unit of each limit. @default requests, and permits for `concurrency` */
  constructor(specs: readonly LimitSpec[], onDeny: 'none' | 'charge' = 'none', units?: readonly string[]) {
    this.#limits = specs.map((spec) => ({ spec, room: roomOf(spec), lists: new Map() }))
    this.#chargesRefusals = onDeny === 'charge'
    this.#units = units ?? specs.map(({ algorithm }) => (algorithm === 'concurrency' ? PERMITS : REQUESTS))
  }

  /** What a request takes from each limit, and the room that it needs there. */
  #needsOf(cost: number | Readonly<Record<string, number>>): readonly { cost: number; need: number }[] {
    return this.#units.map((unit) => {
      const named = typeof cost === 'number' ? cost : cost[unit]
      if (named !== undefined) return { cost: named, need: named }
      return unit === REQUESTS || unit === PERMITS ? { cost: 1, need: 1 } : { cost: 0, need: 1 }
    })
  }

  /** The units left of requests, else of the smallest share left, else of equal shares: the fewest. */
  #remaining(limits: readonly { remaining: number }[]): number {
    const ofRequests = limits.filter((_, i) => this.#units[i] === REQUESTS)
    if (ofRequests.length > 0) return Math.min(...ofRequests.map(({ remaining }) => remaining))
    const shares = limits.map(
      ({ remaining }, i) => remaining / Math.max(1, capacityOf(this.#limits[i]?.spec as LimitSpec)),
    )
    const smallest = Math.min(...shares)
    return Math.min(...limits.filter((_, i) => shares[i] === smallest).map(({ remaining }) => remaining))
  }

  /**
   * `keys`: the key of each limit. `given`: a number is the cost of every unit. The receipt is for `release` and `renew`.
   */
  consume(
    now: number,
    given: number | Readonly<Record<string, number>>,
    keys: readonly string[],
  ): Expected & { receipt: Receipt } {
    const needs = this.#needsOf(given)
    const lists = this.#limits.map(({ lists }, i) => {
      const key = keys[i] as string
      if (!lists.has(key)) lists.set(key, [])
      return lists.get(key) as Charge[]
    })
    const each = this.#limits.map(({ spec, room }, i) => {
      const list = lists[i] as Charge[]
      const { need } = needs[i] as { need: number }
      const possible = need <= capacityOf(spec)
      const fits = room(list, now) >= need
      const emptyIn = firstMs((ms) => room(list, now + ms) >= capacityOf(spec))
      return { fits, possible, emptyIn }
    })
    const allowed = each.every(({ fits }) => fits)
    const possible = each.every(({ possible }) => possible)
    const delayMs = allowed
      ? Math.max(0, ...each.map(({ emptyIn }, i) => (isQueue(this.#limits[i]?.spec) ? emptyIn : 0)))
      : 0

    const receipt = []
    if (allowed || (this.#chargesRefusals && possible)) {
      for (const [i, { spec }] of this.#limits.entries()) {
        const { cost } = needs[i] as { cost: number }
        if (cost === 0) continue
        const list = lists[i] as Charge[]
        // A refused request is not in flight.
        const charge = { at: now, cost: allowed || spec.algorithm !== 'concurrency' ? cost : 0 }
        list.push(charge)
        receipt.push({ list, charge })
      }
    }

    const limits = this.#limits.map(({ spec, room }, i) => {
      const list = lists[i] as Charge[]
      const { possible } = each[i] as (typeof each)[number]
      // A charged refusal delays the next chance, so the wait is counted from the state after it.
      const { need } = needs[i] as { need: number }
      const wait = possible ? firstMs((ms) => room(list, now + ms) >= need) : undefined
      const retryAfterMs = allowed ? 0 : wait
      return {
        allowed: retryAfterMs === 0,
        remaining: room(list, now),
        retryAfterMs,
        resetAfterMs: firstMs((ms) => room(list, now + ms) >= capacityOf(spec)),
      }
    })
    return {
      allowed,
      reason: allowed ? undefined : possible ? 'limited' : 'impossible',
      remaining: this.#remaining(limits),
      retryAfterMs: possible ? Math.max(...limits.map(({ retryAfterMs }) => retryAfterMs ?? 0)) : undefined,
      resetAfterMs: Math.max(...limits.map(({ resetAfterMs }) => resetAfterMs)),
      delayMs,
      limits,
      receipt,
    }
  }

  /** Charges units of every limit, whatever room there is. */
  debit(now: number, cost: number, keys: readonly string[]): void {
    for (const [i, { lists }] of this.#limits.entries())
      lists.get(keys[i] as string)?.push({ at: now, cost, isDebt: true })
  }

  /** The holder of these permits is done. */
  release(receipt: Receipt): void {
    for (const { list, charge } of receipt) {
      const place = list.indexOf(charge)
      if (place >= 0) list.splice(place, 1)
    }
  }

  /** The holder needs these permits for longer. Released or lapsed ones are not taken again. */
  renew(now: number, receipt: Receipt): void {
    for (const [i, { list, charge }] of receipt.entries()) {
      const ttl = this.#limits[i]?.spec.window as number
      const until = charge.until ?? charge.at + ttl
      if (list.includes(charge) && now < until) charge.until = now + ttl
    }
  }
}

function isQueue(spec: LimitSpec | undefined): boolean {
  return spec?.algorithm === 'leakyBucket' && spec.queue
}
