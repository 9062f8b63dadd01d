import { randomFrom } from '../../contract/policies.js'
import {
  type Case,
  capacityOf,
  type Event,
  type LimitOf,
  limitsOf,
  type PolicyOf,
  type Request,
  type Sent,
  UNITS,
  type Unit,
  type Units,
  unitOf,
  unitsOf,
} from './case.js'

/** A random case for each seed. `where`: what its requests come through. */
export function caseOf(seed: number, ways: readonly Case['way'][], where: Pick<Case, 'server' | 'processes'>): Case {
  return new Generator(seed).case(ways, where)
}

const AMOUNTS = ['limit', 'refill', 'leak', 'burst', 'capacity'] as const

class Generator {
  readonly #below: (below: number) => number

  constructor(seed: number) {
    this.#below = randomFrom(seed)
  }

  case(ways: readonly Case['way'][], where: Pick<Case, 'server' | 'processes'>): Case {
    const way = this.#one(ways)
    const count = way === 'document' ? 1 + this.#below(3) : 1
    const policies = this.#times(count, () => this.#leased(this.#policy(way), way))
    const keep = this.#maybe(6, () => this.#one([5000, 3_600_000]))
    const unavailable = this.#maybe(4, () =>
      this.#one([
        { decide: 'allow' as const },
        { decide: 'deny' as const },
        { share: 1 },
        { share: 1 },
        { share: 0.5 },
        { share: 0.3 },
      ]),
    )
    const hasCache = where.processes !== undefined && this.#isOne(3)
    const made = {
      way,
      policies,
      ...(keep !== undefined && { keep }),
      ...(unavailable && { unavailable }),
      ...(hasCache && { denyCache: true }),
      ...where,
    }
    const { processes = 1 } = where
    const at = () => (processes > 1 ? { at: this.#below(processes) } : {})
    return { ...made, events: this.#times(4 + this.#below(30), () => ({ ...this.#event(made), ...at() })) }
  }

  #policy(way: Case['way']): PolicyOf {
    const isRelaxed = this.#isOne(10)
    const units = isRelaxed ? [] : (this.#maybe(2, () => UNITS.slice(0, 1 + this.#below(2))) ?? [])
    const hasReserve = way !== 'document' && !isRelaxed && this.#isOne(4)
    const limits = () =>
      this.#times(this.#one([1, 1, 2, 3]), (l) => this.#limit(way, units, hasReserve, l > 0, isRelaxed))
    const hasTiers = this.#isOne(8)
    return {
      ...(hasTiers ? { tiers: { free: limits(), pro: limits() } } : { limits: limits() }),
      ...(isRelaxed && { consistency: { syncEvery: 10 } }),
      ...this.#optional(7, { sharedTurns: true as const }),
      ...this.#optional(7, { onDeny: 'charge' as const }, way !== 'document'),
      ...this.#optional(7, {
        ban: { after: 1 + this.#below(3), within: this.#one([1000, 20_000]), for: [2000, 30_000] },
      }),
      ...this.#optional(
        5,
        { count: { only: this.#one(['success', 'failure'] as const), within: 1 } },
        way !== 'limiter',
      ),
      ...this.#optional(
        6,
        { enforce: this.#one([{ mode: 'report' as const }, { percent: 0 }, { percent: 100 }]) },
        way !== 'limiter',
      ),
      ...this.#optional(8, { anonymous: 'skip' as const }, way !== 'limiter'),
      ...this.#optional(2, { times: 1 + this.#below(4) }, way === 'document'),
      ...this.#optional(10, { allow: ['eve'] }),
      ...this.#optional(10, { deny: ['eve', 'bob'] }),
    }
  }

  /** Some policies with a lease, if all of their limits can have one. */
  #leased(policy: PolicyOf, way: Case['way']): PolicyOf {
    const lease = { size: this.#one([3, 10, 30]), ttl: this.#one([1, 100, 1000]) }
    const canHave = limitsOf(policy).every((limit) => {
      const { algorithm, window = limit.every, queue } = limit
      const isLong = window === 'day' || (window as number) >= lease.ttl
      return algorithm !== 'concurrency' && !queue && isLong && capacityOf({ ...limit, lease }) >= 1
    })
    if (way === 'document' || policy.consistency || !this.#isOne(4) || !canHave) return policy
    // All count the same unit.
    const unit = unitsOf(policy)[0]
    // A process takes at most half of the units that are left.
    const more = (of: LimitOf) =>
      Object.fromEntries(AMOUNTS.flatMap((name) => (of[name] === undefined ? [] : [[name, of[name] * 8]])))
    const leased = (limits: readonly LimitOf[]) =>
      limits.map((each) => ({ ...each, ...more(each), ...(unit && { unit }), lease }))
    // Most without what excludes leases.
    const { ban: _, onDeny: __, sharedTurns: ___, ...others } = policy
    const { limits, tiers, ...rest } = this.#isOne(4) ? policy : others
    return {
      ...rest,
      ...(limits && { limits: leased(limits) }),
      ...(tiers && { tiers: { free: leased(tiers.free), pro: leased(tiers.pro) } }),
    }
  }

  #limit(
    way: Case['way'],
    units: readonly Unit[],
    hasReserve: boolean,
    mayHaveKey: boolean,
    isRelaxed: boolean,
  ): LimitOf {
    const made = this.#algorithm(way, isRelaxed)
    const ownKey = mayHaveKey ? this.#maybe(4, () => this.#one(['tenant', 'everyone'] as const)) : undefined
    const isConcurrency = made.algorithm === 'concurrency'
    const unit = isConcurrency || units.length === 0 ? undefined : this.#maybe(2, () => this.#one(units))
    const capacity = capacityOf(made)
    return {
      ...made,
      ...(ownKey && { key: ownKey }),
      ...(unit && { unit }),
      ...this.#optional(3, { estimate: 'cap' as const }, !isConcurrency),
      ...this.#optional(2, { reserve: { 1: Math.floor(capacity / 3) || 1 } }, hasReserve && capacity > 2),
    }
  }

  #algorithm(way: Case['way'], isRelaxed: boolean): LimitOf {
    const limit = this.#one([1, 2, 3, 5, 8, 20])
    const window = this.#one([10, 1000, 7000, 60_000])
    const bucket = { capacity: this.#one([1, limit, limit, 4]) }
    const windows: (() => LimitOf)[] = [
      () => ({ algorithm: 'fixedWindow', limit, window }),
      () => ({ algorithm: 'fixedWindow', limit, window, anchor: 'first-request' }),
      () => ({
        algorithm: 'slidingWindow',
        limit,
        window,
        segments: this.#one([1, 2, 5]),
        edge: this.#one(['weighted', 'strict', 'dropped']),
      }),
    ]
    const others: (() => LimitOf)[] = [
      () => ({ algorithm: 'slidingLog', limit, window }),
      () => ({ algorithm: 'fixedWindow', limit, window: 'day' }),
      () => ({ algorithm: 'gcra', limit, window, burst: bucket.capacity }),
      () => ({ algorithm: 'tokenBucket', refill: limit, every: window, ...bucket }),
      () => ({ algorithm: 'tokenBucket', refill: limit, every: window, ...bucket, style: 'interval' }),
      () => ({ algorithm: 'leakyBucket', leak: limit, every: window, ...bucket }),
      () => ({
        algorithm: 'leakyBucket',
        leak: limit,
        every: window,
        ...bucket,
        ...(way === 'limiter' && { queue: true }),
      }),
      () => ({ algorithm: 'concurrency', limit, ttl: way === 'limiter' ? window : 3_600_000 }),
    ]
    return this.#one(isRelaxed ? windows : [...windows, ...others])()
  }

  #event(of: Omit<Case, 'events'>): Event {
    const which = this.#below(50)
    const byId = of.keep === undefined || this.#isOne(2) ? {} : { byId: true as const }
    const client = this.#one(['ann', 'ann', 'bob', 'eve'])
    const units = [...new Set(of.policies.flatMap(limitsOf).flatMap(({ unit }) => unit ?? []))]
    const others: (() => Event)[] = [
      () => ({ do: 'refund', which, ...byId }),
      () => ({ do: 'release', which, ...byId }),
      () => ({ do: 'renew', which, ...byId }),
      () => ({ do: this.#one(['reset', 'unblock']), client }),
      () => ({ do: 'block', client, ms: this.#one([10, 1000, 10_000]) }),
      () => ({ do: 'peek', ...this.#request(of), client }),
    ]
    const status = () => this.#one([200, 302, 401, 404, 429, 500])
    if (of.processes && of.policies.some(({ consistency }) => consistency)) {
      const exchange = (): Event => ({ do: 'exchange' })
      others.push(exchange, exchange, exchange)
    }
    if (of.unavailable) {
      const turn = (): Event => ({ do: this.#one(['outage', 'return']) })
      others.push(turn, turn, turn)
    }
    if (of.server) {
      const end = (): Event => this.#end(which)
      const begin = (): Event => ({ do: 'begin', which, status: status() })
      const leave = (): Event => ({ do: 'leave', which, ...this.#optional(3, { reset: true as const }) })
      others.push(end, end, end, begin, leave, leave)
    } else if (of.way !== 'limiter') {
      const end = (): Event => ({ do: 'end', which, status: status() })
      others.push(end, end, end)
    }
    if (of.way !== 'document' && of.policies.some(({ ban }) => ban)) {
      const strike = (): Event => ({ do: 'strike', client })
      others.push(strike, strike, strike)
    }
    if (units.length > 0) {
      others.push(() => ({ do: 'settle', which, units: this.#units(units), ...byId }))
      others.push(() => ({ do: 'settle', which, units: this.#units(units), ...byId }))
      others.push(() => ({ do: 'meter', which, ...this.#stream(units) }))
      others.push(() => ({ do: 'meter', which, ...this.#stream(units) }))
    } else others.push(() => ({ do: 'settle', which, units: 0, ...byId }))
    const kind = this.#below(10)
    if (kind < 5) {
      const hasLease = of.policies.flatMap(limitsOf).some(({ lease }) => lease)
      const times = this.#maybe(hasLease ? 1 : 10, () => 1 + this.#below(hasLease ? 12 : 4))
      return { do: 'request', ...this.#request(of), ...(times && { times }), ...(of.server && this.#sent()) }
    }
    if (kind < 7)
      return {
        do: 'wait',
        ...this.#one([
          { ms: this.#below(20) },
          { ms: this.#below(3000) },
          { ms: this.#below(90_000) },
          { ms: 'retry' as const, early: this.#below(2) },
        ]),
      }
    return this.#one(others)()
  }

  #request(of: Omit<Case, 'events'>): Request {
    const units = [...new Set(of.policies.flatMap(limitsOf).map(unitOf))]
    const own = units.filter((unit) => unit !== 'requests' && unit !== 'concurrent-requests')
    const cost =
      of.way === 'document'
        ? own.length > 0
          ? this.#units(own)
          : 1
        : own.length > 0
          ? this.#units(units)
          : this.#one([1, 1, 1, units.includes('requests') ? 2 : 1, units.includes('requests') ? 5 : 1, 0])
    return {
      ...(of.way !== 'limiter' && this.#isOne(15) ? {} : { client: this.#one(['ann', 'ann', 'ann', 'bob', 'eve']) }),
      tenant: this.#one(['t1', 't2']),
      tier: this.#one(['free', 'pro']),
      priority: this.#below(2),
      cost,
    }
  }

  #sent(): Sent {
    if (this.#isOne(8)) return { upgrade: true }
    const behind = this.#maybe(2, () => this.#below(50))
    return { ...this.#optional(2, { raw: true as const }), ...(behind !== undefined && { behind }) }
  }

  #end(which: number): Event {
    const by = this.#maybe(3, () => this.#one(['error', 'destroy'] as const))
    if (by === 'error') return { do: 'end', which, by, status: this.#one([401, 404, 429, 500]) }
    return { do: 'end', which, status: this.#one([200, 302, 401, 404, 429, 500]), ...(by && { by }) }
  }

  #units(units: readonly string[]): Units {
    const named = units.filter(() => !this.#isOne(4))
    return Object.fromEntries(named.map((unit) => [unit, this.#one([0, 1, 1, 2, 4, this.#below(30)])]))
  }

  #stream(units: readonly Unit[]) {
    return {
      unit: this.#one(units),
      length: this.#one([1, 5, this.#below(40)]),
      step: this.#one([1, 4, 64]),
      onExhausted: this.#one(['cut', 'finish'] as const),
      ...this.#optional(3, { total: this.#below(40) }),
    }
  }

  #one<T>(all: readonly T[]): T {
    return all[this.#below(all.length)] as T
  }

  /** Once in so many. */
  #isOne(of: number): boolean {
    return this.#below(of) === 0
  }

  #maybe<T>(of: number, make: () => T): T | undefined {
    return this.#isOne(of) ? make() : undefined
  }

  #optional<T extends object>(of: number, value: T, isPossible = true): T | Record<string, never> {
    return this.#isOne(of) && isPossible ? value : {}
  }

  #times<T>(count: number, make: (i: number) => T): T[] {
    return Array.from({ length: count }, (_, i) => make(i))
  }
}
