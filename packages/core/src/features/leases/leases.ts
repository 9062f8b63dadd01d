import type { Change, Layer } from '../../redis/layers/layer.js'
import { UnderWay } from '../../redis/layers/under-way.js'
import type { KeySlots } from '../../redis/slots/key-slots.js'
import {
  CHARGE,
  CONSUME,
  PEEK,
  type Plan,
  REFUND,
  resultOf,
  STRIDE,
  type StoreRequest,
  type StoreResult,
} from '../../store/store.js'
import { outsideRequests } from '../../util/outside-requests.js'
import { whenKnown } from '../../util/when-known.js'
import { Lease, Spent } from './lease.js'
import { LeaseClock } from './lease-clock.js'
import { PlanPools, Pool, type Waiting } from './lease-pool.js'

export interface LeasesOptions {
  /**
   * Determines whether one script can decide for the identities.
   *
   * Requests that need several scripts have no leases.
   */
  readonly slots: Pick<KeySlots, 'areOne'>
  readonly clock: (() => number) | undefined
}

/** Maximum keys with a lease, or that may soon have one. The store decides for further keys. */
const MAX_POOLS = 10_000
/** Interval of the search for expired leases. */
const SWEEP_EVERY_MS = 100

/**
 * Decides for plans with a lease. Takes units of a key from the next layer, for all cells at once, and spends them here
 * without a promise. Deducted units are spent, refunded, or stranded until they expire; they are never spent twice or
 * too late. The cells' parameters ensure that limits hold at the time of spending (limits/lease.ts).
 * `test/deep/interleavings/leases.test.ts` tries every order of requests, results, time, resets and ends of processes.
 */
export class Leases implements Layer {
  readonly #options: LeasesOptions
  readonly #next: Pick<Layer, 'decide'>
  readonly #clock: LeaseClock
  readonly #byPlan = new Map<Plan, PlanPools>()
  readonly #underWay = new UnderWay()
  #pools = 0
  #isClosed = false
  #timer: NodeJS.Timeout | undefined

  constructor(options: LeasesOptions, next: Pick<Layer, 'decide'>) {
    this.#options = options
    this.#next = next
    this.#clock = new LeaseClock(options.clock)
  }

  decide(request: StoreRequest): StoreResult | Promise<StoreResult> {
    const { op, plan } = request
    if (plan.cells[0]?.lease === undefined) return this.#next.decide(request)
    if (op === REFUND) return this.#takeBack(request)
    const pool = this.#byPlan.get(plan)?.get(nameOf(request.identities))
    if (op === PEEK) return this.#peek(pool, request)
    if (op !== CONSUME && op !== CHARGE) return this.#next.decide(request)
    const lease = pool?.lease
    if (lease !== undefined) {
      const cost = request.costs[0] as number
      if (needOf(request) <= lease.left) {
        const elapsedMs = this.#clock.since(lease.began)
        if (elapsedMs < lease.lifeMs) return spend(pool as Pool, lease, cost, elapsedMs)
      }
    }
    return this.#request(pool ?? this.#newPool(request), request)
  }

  change(what: Change): undefined {
    if (what.kind === 'reset') {
      const { plan, identities } = what
      // The state after a reset does not contain the deducted units, so they must neither be spent nor refunded.
      const isHit = (other: Plan) => other.cells.some(({ id }) => plan.cells.some((cell) => cell.id === id))
      this.#drop(plan.policy, identities, isHit, true)
    } else if (what.kind === 'block' || what.kind === 'unblock') {
      // From now on, Redis decides.
      this.#drop(what.policy, [what.identity], () => true, false)
    }
  }

  /** Returns unspent units. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#timer)
    this.#timer = undefined
    for (const pools of this.#byPlan.values()) for (const [, pool] of pools) this.#shut(pool)
    this.#byPlan.clear()
    this.#pools = 0
    await this.#underWay.over()
  }

  #request(pool: Pool | undefined, request: StoreRequest): StoreResult | Promise<StoreResult> {
    if (!pool) return this.#next.decide(request)
    const { waiting } = pool
    if (waiting) return new Promise((resolve, reject) => waiting.push({ request, resolve, reject }))
    this.#end(pool)
    const cost = request.costs[0] as number
    const units = cost === 0 ? 0 : pool.unitsFor(cost, cost, this.#clock)
    if (units === cost) return this.#passOn(pool, request)
    return new Promise((resolve, reject) => this.#refill(pool, [{ request, resolve, reject }], units))
  }

  #passOn(pool: Pool, request: StoreRequest): StoreResult | Promise<StoreResult> {
    return whenKnown(this.#next.decide(request), (result) => {
      pool.observe(request, result)
      if (result.allowed) pool.admitted += request.costs[0] as number
      else pool.cool()
      return result
    })
  }

  #refill(pool: Pool, waiting: Waiting[], units: number): void {
    pool.waiting = waiting
    this.#underWay.note(this.#refilled(pool, waiting, units))
  }

  /** Requests `units` and serves the waiting requests, in order. */
  async #refilled(pool: Pool, waiting: Waiting[], units: number): Promise<void> {
    const { request } = waiting[0] as Waiting
    const costs = request.costs.map(() => units)
    const charge: StoreRequest = { ...request, op: CONSUME, costs, needs: undefined }
    // Taken before the charge is sent, so that the life by local clocks ends no later than by the store's.
    const began = this.#clock.now()
    let result: StoreResult
    try {
      result = await this.#next.decide(charge)
    } catch (error) {
      // The charge may have happened, so the next lease needs as much traffic as the first one.
      pool.cool()
      for (const { reject } of waiting) reject(error)
      return
    } finally {
      pool.waiting = undefined
    }
    pool.observe(charge, result)
    if (result.allowed) this.#serve(pool, new Lease(charge, result, began, this.#clock.since(began)), waiting)
    else {
      // The charge was larger than any request, so its refusal refuses none of them.
      pool.cool()
      this.#serveEach(pool, waiting)
    }
  }

  #serve(pool: Pool, lease: Lease, waiting: readonly Waiting[]): void {
    const { repliedAfterMs } = lease
    const isAlive = repliedAfterMs < lease.lifeMs
    let served = 0
    for (const { request, resolve } of waiting) {
      const cost = request.costs[0] as number
      // The store has decided the first request, however long ago.
      if (served > 0 && !(isAlive && needOf(request) <= lease.left)) break
      resolve(spend(pool, lease, cost, repliedAfterMs, served === 0))
      served++
    }
    pool.lease = lease
    // Leases are useless if their life is shorter than the round trip.
    if (!isAlive) pool.cool()
    const rest = waiting.slice(served)
    if (!isAlive || !pool.isOpen || rest.length > 0) this.#end(pool)
    if (rest.length === 0) return
    const units = rest.reduce((sum, { request }) => sum + needOf(request), 0)
    if (!isAlive || !pool.isOpen || !pool.hasRoom(units)) this.#serveEach(pool, rest)
    else this.#refill(pool, rest, pool.unitsFor(units, needOf((rest[0] as Waiting).request), this.#clock))
  }

  #serveEach(pool: Pool, waiting: readonly Waiting[]): void {
    for (const { request, resolve } of waiting) {
      // A thrown error rejects.
      resolve(new Promise((decided) => decided(this.#passOn(pool, request))))
    }
  }

  /** Ends a pool's lease. Unspent units are returned before any later request. */
  #end(pool: Pool): void {
    const { lease } = pool
    if (!lease) return
    pool.lease = undefined
    lease.isOpen = false
    lease.isForgotten = pool.isForgotten
    const { left } = lease
    lease.left = 0
    if (left > 0) this.#returnUnits(lease, left).catch(() => {})
  }

  async #returnUnits(lease: Lease, units: number): Promise<void> {
    if (!lease.isForgotten) await this.#next.decide(lease.refund(units))
  }

  /** Refunds units to their lease while that lives, otherwise to the store, as a part of the lease's charge. */
  #takeBack(request: StoreRequest): StoreResult | Promise<StoreResult> {
    const { charge } = request
    if (!(charge instanceof Spent)) return this.#next.decide(request)
    const units = request.costs[0] as number
    const { lease } = charge
    if (lease.isOpen && this.#clock.since(lease.began) < lease.lifeMs) {
      lease.left += units
      return charge
    }
    return this.#returnUnits(lease, units).then(() => charge)
  }

  /** The store's result plus this process's unspent units. */
  #peek(pool: Pool | undefined, request: StoreRequest): StoreResult | Promise<StoreResult> {
    const cost = needOf(request)
    if (!pool?.lease) return this.#next.decide(request)
    // A request of this cost would not be served from the lease either.
    if (cost > this.#leftOf(pool)) this.#end(pool)
    return whenKnown(this.#next.decide(request), (result): StoreResult => {
      const left = result.block ? 0 : this.#leftOf(pool)
      if (left === 0) return result
      const { now, allowed, offset } = result
      const values = result.values.slice(offset, offset + request.plan.reports * STRIDE)
      const capacities = request.plan.cells.flatMap(({ limits }) => limits.map(({ capacity }) => capacity))
      for (const [l, capacity] of capacities.entries()) {
        const i = l * STRIDE
        // After a reset by another process, the store no longer counts the units of the lease.
        values[i] = Math.min(capacity, (values[i] as number) + left)
        if (cost <= left) values[i + 1] = 0
      }
      return resultOf(now, allowed || cost <= left, values, 0)
    })
  }

  /** Units of a pool's lease that may be spent now. */
  #leftOf({ lease }: Pool): number {
    return lease && this.#clock.since(lease.began) < lease.lifeMs ? lease.left : 0
  }

  #newPool(request: StoreRequest): Pool | undefined {
    const { plan, identities } = request
    if (this.#isClosed || !this.#options.slots.areOne(identities)) return undefined
    let pools = this.#byPlan.get(plan)
    if (this.#pools >= MAX_POOLS) {
      if (!pools?.evict()) return undefined
      this.#pools--
    }
    if (!pools) {
      pools = new PlanPools()
      this.#byPlan.set(plan, pools)
    }
    const pool = new Pool(request, this.#clock)
    pools.set(nameOf(identities), pool)
    this.#pools++
    this.#timer ??= outsideRequests(() => setInterval(() => this.#sweep(), SWEEP_EVERY_MS).unref())
    return pool
  }

  #drop(policy: string, identities: readonly string[], isHit: (plan: Plan) => boolean, isForgotten: boolean): void {
    for (const [plan, pools] of this.#byPlan) {
      if (plan.policy !== policy || !isHit(plan)) continue
      for (const [name, pool] of pools) {
        if (!pool.identities.some((identity) => identities.includes(identity))) continue
        pools.delete(name)
        this.#pools--
        pool.isForgotten = isForgotten
        this.#shut(pool)
      }
    }
  }

  #shut(pool: Pool): void {
    pool.isOpen = false
    this.#end(pool)
  }

  #sweep(): void {
    for (const [plan, pools] of this.#byPlan) {
      for (const [name, pool] of pools) {
        if (pool.lease && this.#clock.since(pool.lease.began) >= pool.lease.lifeMs) this.#end(pool)
        if (!pool.isIdle(this.#clock)) continue
        pools.delete(name)
        this.#pools--
      }
      if (pools.size === 0) this.#byPlan.delete(plan)
      // Nothing is evicted while there is room.
      else if (this.#pools < MAX_POOLS) pools.rewind()
    }
    if (this.#pools > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

/** The units that a request needs of its lease: 1 where it names none that its limits count. */
function needOf({ costs, needs = costs }: StoreRequest): number {
  return needs[0] as number
}

function spend(pool: Pool, lease: Lease, cost: number, elapsedMs: number, isFirst = false): StoreResult {
  lease.left -= cost
  pool.admitted += cost
  return new Spent(lease, elapsedMs, isFirst)
}

/** Identities as one text. Different identities never give the same text. */
function nameOf(identities: readonly string[]): string {
  if (identities.length === 1) return identities[0] as string
  return identities.map((identity) => `${identity.length}:${identity}`).join('')
}
