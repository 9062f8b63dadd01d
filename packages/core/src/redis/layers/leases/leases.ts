import {
  CHARGE,
  CONSUME,
  PEEK,
  type Plan,
  REFUND,
  STRIDE,
  type StoreRequest,
  type StoreResult,
} from '../../../store/store.js'
import { whenKnown } from '../../../util/when-known.js'
import type { KeySlots } from '../../slots/key-slots.js'
import type { Change, Layer } from '../layer.js'
import { UnderWay } from '../under-way.js'
import { Lease, Spent } from './lease.js'
import { LeaseClock } from './lease-clock.js'
import { PlanPools, Pool, type Waiting } from './lease-pool.js'

export interface LeasesOptions {
  /** Says which identities one script decides for: what takes several is decided without leases. */
  readonly slots: Pick<KeySlots, 'areOne'>
  readonly clock: (() => number) | undefined
}

/** Most keys with a lease, or that may soon have one; what comes beyond is decided by the store. */
const MAX_POOLS = 10_000
/** How often leases are looked for that are over. */
const SWEEP_EVERY_MS = 100

/**
 * Decides for plans with a lease: takes units of a key from the next layer, all cells at once, and spends them here
 * without a promise. What was deducted is spent, refunded or stranded until it lapses, never spent twice or
 * after its time; that the limits hold for when it is spent is up to the cells' parameters (limits/lease.ts).
 * Tried in every order of requests, results, time, resets and ends of processes by `test/deep/interleavings/leases.test.ts`.
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
      if (cost <= lease.left) {
        const elapsedMs = this.#clock.since(lease.began)
        if (elapsedMs < lease.lifeMs) return spend(pool as Pool, lease, cost, elapsedMs)
      }
    }
    return this.#request(pool ?? this.#newPool(request), request)
  }

  change(what: Change): undefined {
    if (what.kind === 'reset') {
      const { plan, identities } = what
      // What was deducted is not in the state that comes after, and must neither be spent nor refunded.
      const isHit = (other: Plan) => other.cells.some(({ id }) => plan.cells.some((cell) => cell.id === id))
      this.#drop(plan.policy, identities, isHit, true)
    } else if (what.kind === 'block' || what.kind === 'unblock') {
      // From now on Redis is asked.
      this.#drop(what.policy, [what.identity], () => true, false)
    }
  }

  /** Returns what is left. */
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
    const units = pool.unitsFor(cost, cost, this.#clock)
    if (units === cost) return this.#decidePlainly(pool, request)
    return new Promise((resolve, reject) => this.#refill(pool, [{ request, resolve, reject }], units))
  }

  #decidePlainly(pool: Pool, request: StoreRequest): StoreResult | Promise<StoreResult> {
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

  /** Takes `units` and serves the waiters for them, in order. */
  async #refilled(pool: Pool, waiting: Waiting[], units: number): Promise<void> {
    const { request } = waiting[0] as Waiting
    const charge: StoreRequest = { ...request, op: CONSUME, costs: request.costs.map(() => units) }
    // Before it is sent, so that its life by the clocks here ends no later than by the store's.
    const began = this.#clock.now()
    let result: StoreResult
    try {
      result = await this.#next.decide(charge)
    } catch (error) {
      // It may have been charged, so the next lease is taken only after as much traffic as the first one.
      pool.cool()
      for (const { reject } of waiting) reject(error)
      return
    } finally {
      pool.waiting = undefined
    }
    pool.observe(charge, result)
    if (result.allowed) this.#serve(pool, new Lease(charge, result, began, this.#clock.since(began)), waiting)
    else {
      // A refusal of more than was asked for refuses no request.
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
      // The first was decided by the store, however long ago.
      if (served > 0 && !(isAlive && cost <= lease.left)) break
      resolve(spend(pool, lease, cost, repliedAfterMs, served === 0))
      served++
    }
    pool.lease = lease
    // With a life shorter than the way to the store, leases are in vain.
    if (!isAlive) pool.cool()
    const rest = waiting.slice(served)
    if (!isAlive || !pool.isOpen || rest.length > 0) this.#end(pool)
    if (rest.length === 0) return
    const units = rest.reduce((sum, { request }) => sum + (request.costs[0] as number), 0)
    if (!isAlive || !pool.isOpen || !pool.hasRoom(units)) this.#serveEach(pool, rest)
    else this.#refill(pool, rest, pool.unitsFor(units, rest[0]?.request.costs[0] as number, this.#clock))
  }

  #serveEach(pool: Pool, waiting: readonly Waiting[]): void {
    for (const { request, resolve } of waiting) {
      // What is thrown rejects.
      resolve(new Promise((decided) => decided(this.#decidePlainly(pool, request))))
    }
  }

  /** Ends a pool's lease: what is left goes back, before anything that is asked from now on. */
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

  /** What a verdict refunds: to its lease while that lives, else to the store, of what the lease was charged. */
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

  /** The store's result, with the units that this process holds added. */
  #peek(pool: Pool | undefined, request: StoreRequest): StoreResult | Promise<StoreResult> {
    const cost = Math.max(...request.costs)
    if (!pool?.lease) return this.#next.decide(request)
    // Neither would this request be met from it.
    if (cost > this.#leftOf(pool)) this.#end(pool)
    return whenKnown(this.#next.decide(request), (result): StoreResult => {
      const left = result.block ? 0 : this.#leftOf(pool)
      if (left === 0) return result
      const { now, allowed, offset } = result
      const values = result.values.slice(offset, offset + request.plan.reports * STRIDE)
      for (let i = 0; i < values.length; i += STRIDE) {
        values[i] = (values[i] as number) + left
        if (cost <= left) values[i + 1] = 0
      }
      return { now, allowed: allowed || cost <= left, values, offset: 0 }
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
    this.#timer ??= setInterval(() => this.#sweep(), SWEEP_EVERY_MS).unref()
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
      // While there is room, nothing is evicted.
      else if (this.#pools < MAX_POOLS) pools.rewind()
    }
    if (this.#pools > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

function spend(pool: Pool, lease: Lease, cost: number, elapsedMs: number, isFirst = false): StoreResult {
  lease.left -= cost
  pool.admitted += cost
  return new Spent(lease, elapsedMs, isFirst)
}

/** Identities as one text: different ones never as the same. */
function nameOf(identities: readonly string[]): string {
  if (identities.length === 1) return identities[0] as string
  return identities.map((identity) => `${identity.length}:${identity}`).join('')
}
