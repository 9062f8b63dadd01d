import { createLimiter, type Limit, type Limiter, type Meter, type Store, type Verdict } from '@sluice/core'
import type { StoreRequest, StoreResult } from '@sluice/core/store'
import { CHARGE, CONSUME, DEBIT, REFUND } from '../../../support/inside.js'
import type { Step, World } from './explore.js'
import { Network } from './network.js'

/** A change of a charge: settled to so many tokens, refunded, or, by its meter, used up so far and ended. */
export type Deed = { readonly settle: number } | { readonly add: number } | 'refund' | 'end'

export interface Spender {
  /** The tokens of its estimate. */
  readonly tokens: number
  /** In this order, and each at once: none waits for the one before. */
  readonly deeds: readonly Deed[]
}

export interface SettleOptions {
  /** A store that reads this clock. */
  store(clock: () => number): Store
  readonly limit: Limit<string>
  readonly capacity: number
  readonly spenders: readonly Spender[]
  /** The time until all charges lapse, which passes once. Undefined for none. */
  readonly passMs?: number
  /** The number of calls that fail. @default 0 */
  readonly faults?: number
  /** Whether a debt is counted beyond the limit. */
  readonly countsDebts: boolean
}

/** The charge of a spender, and what was charged and refunded since. */
interface Spent {
  readonly name: string
  readonly spender: Spender
  verdict: Verdict | undefined
  calls: number
  /** Tokens of all its charges less its refunds, by the epoch in which they were charged. */
  readonly net: [number, number]
  hasFailed: boolean
  wasRefused: boolean
}

const STEP = 2
let runs = 0

/** Requests that are settled, refunded and metered, each by its own process, whose calls come at any time. */
export class SettleWorld implements World {
  readonly #options: SettleOptions
  readonly #network: Network
  readonly #store: Store
  readonly #limiter: Limiter
  readonly #spent: readonly Spent[]
  /** Worlds may share a server, so each has its own key. */
  readonly #key = `run-${runs++}`
  /** The tokens that the limit counts. */
  #used = 0
  /** 1 once all earlier charges have lapsed. */
  #epoch: 0 | 1 = 0
  /** The results of charges, by epoch. */
  readonly #epochOf = new WeakMap<StoreResult, 0 | 1>()
  #broken: Error | undefined

  constructor(options: SettleOptions) {
    this.#options = options
    this.#network = new Network(options)
    this.#store = options.store(() => 1e12 + this.#epoch * (options.passMs ?? 0))
    this.#limiter = this.#limiterOf(this.#store)
    this.#spent = options.spenders.map((spender, i): Spent => {
      const name = `spender ${i + 1}`
      return { name, spender, verdict: undefined, calls: 0, net: [0, 0], hasFailed: false, wasRefused: false }
    })
    for (const spent of this.#spent) this.#live(spent).catch((error) => this.#failed(spent, error))
  }

  steps(): Step[] {
    const steps = this.#network.steps()
    if (this.#options.passMs !== undefined && this.#epoch === 0 && steps.length > 0) {
      steps.push({ name: 'all charges lapse', take: () => this.#pass() })
    }
    return steps
  }

  state(): string {
    return this.#network.state()
  }

  async check(): Promise<void> {
    if (this.#broken) throw this.#broken
    for (const { name, net } of this.#spent) {
      if (net.some((tokens) => tokens < 0)) throw new Error(`${name} was refunded ${net} beyond its charges`)
    }
    const { remaining } = await this.#limiter.peek(this.#key, { cost: { tokens: 0 } })
    const expected = Math.max(0, this.#options.capacity - this.#used)
    if (remaining !== expected) throw new Error(`${remaining} tokens are left, and should be ${expected}`)
  }

  /** Each request that nothing disturbed was charged what the first of its corrections says. */
  async end(): Promise<void> {
    await this.check()
    for (const { name, spender, verdict, net, hasFailed, wasRefused } of this.#spent) {
      if (hasFailed || wasRefused || !verdict?.allowed || this.#options.passMs !== undefined) continue
      const [charged] = net
      const expected = totalOf(spender)
      if (charged !== expected) throw new Error(`${name} was charged ${charged} in all, instead of ${expected}`)
    }
  }

  close(): unknown {
    return this.#store.close()
  }

  #failed(spent: Spent, error: unknown): void {
    if (/(lost|late|unreported)$/.test(String(error))) spent.hasFailed = true
    else this.#broken = error as Error
  }

  async #live(spent: Spent): Promise<void> {
    const store = {
      decide: (request: StoreRequest) => {
        const name = `${spent.name}: call ${spent.calls++}`
        const called = this.#network.call(spent.name, 'the store', name, () => this.#decide(request, spent))
        called.catch(() => {
          spent.hasFailed = true
        })
        return called
      },
    } as unknown as Store
    const limiter = this.#limiterOf(store)
    const { tokens, deeds } = spent.spender
    const verdict = await limiter.consume(this.#key, { cost: { tokens } })
    spent.verdict = verdict
    const isMetered = deeds.some((deed) => deed === 'end' || (typeof deed === 'object' && 'add' in deed))
    const meter = isMetered ? verdict.meter('tokens', { step: STEP, onExhausted: 'finish' }) : undefined
    for (const deed of deeds) {
      this.#do(limiter, verdict, meter, deed).catch((error) => this.#failed(spent, error))
    }
  }

  async #do(limiter: Limiter, verdict: Verdict, meter: Meter | undefined, deed: Deed): Promise<unknown> {
    if (deed === 'refund') return limiter.refund(this.#key, verdict)
    if (deed === 'end') return meter?.end()
    return 'add' in deed ? meter?.add(deed.add) : verdict.settle({ tokens: deed.settle })
  }

  async #decide(request: StoreRequest, spent: Spent): Promise<StoreResult> {
    const { capacity, countsDebts } = this.#options
    const { op } = request
    const cost = request.costs[0] as number
    const epoch = this.#epoch
    const hasRoom = this.#used + cost <= capacity
    const chargedIn = request.charge && this.#epochOf.get(request.charge)
    const result = await this.#store.decide(request)
    this.#epochOf.set(result, epoch)
    if (op === CONSUME || op === CHARGE) {
      if (result.allowed !== hasRoom) throw new Error(`room: ${hasRoom}; admitted: ${result.allowed}`)
      if (hasRoom) this.#add(spent, cost)
      else if (op === CHARGE) {
        // As far as there is room: that was not counted as charged.
        spent.wasRefused = true
        this.#used = Math.max(this.#used, capacity)
      }
    } else if (op === DEBIT) {
      this.#add(spent, cost)
      if (!countsDebts) this.#used = Math.min(this.#used, capacity)
    } else if (op === REFUND) {
      spent.net[chargedIn as 0 | 1] -= cost
      if (chargedIn === epoch) this.#used = Math.max(0, this.#used - cost)
    }
    return result
  }

  #add(spent: Spent, tokens: number): void {
    this.#used += tokens
    spent.net[this.#epoch] += tokens
  }

  #limiterOf(store: Store): Limiter {
    return createLimiter<string>({ name: 'spend', store, limits: [this.#options.limit] })
  }

  #pass(): void {
    this.#epoch = 1
    this.#used = 0
    this.#network.note('the store', 'all charges lapse')
  }
}

/** The tokens that a spender is charged in all, where nothing was refused. */
function totalOf({ tokens, deeds }: Spender): number {
  let metered = 0
  for (const deed of deeds) {
    if (deed === 'refund') return 0
    if (deed === 'end') return metered
    if ('settle' in deed) return deed.settle
    metered += deed.add
  }
  return Math.max(tokens, tokens + Math.floor(Math.max(0, metered - tokens) / STEP) * STEP)
}
