import { concurrency, type Limiter, type Store, type Verdict } from '@sluice/core'
import type { StoreRequest, StoreResult } from '@sluice/core/store'
import { createLimiter } from '../../../contract/create-limiter.js'
import { CONSUME, RENEW } from '../../../support/inside.js'
import type { Step, World } from './explore.js'
import { Network } from './network.js'

const TTL_MS = 1000

/** The operations of a holder on its permits, in order. */
export type Deed = 'renew' | 'release' | 'refund'

export interface Holder {
  readonly permits?: number
  readonly deeds: readonly Deed[]
}

export interface ConcurrencyOptions {
  /** A store that reads this clock. */
  store(clock: () => number): Store
  readonly limit: number
  readonly holders: readonly Holder[]
  /** The number of times that half a `ttl` passes. */
  readonly halves: number
  /** The number of calls that fail; a holder is dead after its call fails. @default 0 */
  readonly faults?: number
}

interface Held {
  readonly name: string
  readonly holder: Holder
  /** The end of the permits by the clock of the store. */
  until: number
}

let runs = 0

/** Holders of permits, each in its own process, whose calls come at any time and who may die at any time. */
export class ConcurrencyWorld implements World {
  readonly #options: ConcurrencyOptions
  readonly #network: Network
  readonly #store: Store
  readonly #limiter: Limiter
  readonly #held: readonly Held[]
  /** Worlds may share a server, so each has its own key. */
  readonly #key = `run-${runs++}`
  #now = 1e12
  #halves: number
  #broken: Error | undefined

  constructor(options: ConcurrencyOptions) {
    this.#options = options
    this.#network = new Network(options)
    this.#halves = options.halves
    this.#store = options.store(() => this.#now)
    this.#limiter = this.#limiterOf(this.#store)
    this.#held = options.holders.map((holder, i) => ({ name: `holder ${i + 1}`, holder, until: 0 }))
    for (const held of this.#held) {
      this.#live(held).catch((error) => {
        if (!/(lost|late|unreported)$/.test(String(error))) this.#broken = error
      })
    }
  }

  steps(): Step[] {
    const steps = this.#network.steps()
    if (this.#halves > 0 && steps.length > 0) {
      steps.push({ name: `${TTL_MS / 2} ms pass`, take: () => this.#pass() })
    }
    return steps
  }

  state(): string {
    return this.#network.state()
  }

  async check(): Promise<void> {
    if (this.#broken) throw this.#broken
    const taken = this.#taken()
    const { limit } = this.#options
    if (taken > limit) throw new Error(`${taken} permits are held, of ${limit}`)
    const { remaining } = await this.#limiter.peek(this.#key)
    if (remaining !== limit - taken) throw new Error(`${remaining} permits are free, and ${taken} of ${limit} are held`)
  }

  /** The permits of all holders end. */
  async end(): Promise<void> {
    this.#now += TTL_MS
    await this.check()
    if (this.#taken() > 0) throw new Error('permits are held for ever')
  }

  close(): unknown {
    return this.#store.close()
  }

  async #live(held: Held): Promise<void> {
    const limiter = this.#limiterOf({
      decide: (ask: StoreRequest) => {
        const name = `${held.name}: call ${this.#calls++}`
        return this.#network.call(held.name, 'the store', name, () => this.#decide(ask, held))
      },
    } as unknown as Store)
    const verdict = await limiter.consume(this.#key, { cost: held.holder.permits ?? 1 })
    if (!verdict.allowed) return
    for (const deed of held.holder.deeds) await this.#do(limiter, verdict, deed)
  }

  #calls = 0

  async #do(limiter: Limiter, verdict: Verdict, deed: Deed): Promise<void> {
    if (deed === 'refund') await limiter.refund(this.#key, verdict)
    else await limiter[deed](verdict)
  }

  async #decide(ask: StoreRequest, held: Held): Promise<StoreResult> {
    const permits = held.holder.permits ?? 1
    const hasRoom = this.#taken() + permits <= this.#options.limit
    const answer = await this.#store.decide(ask)
    if (ask.op === CONSUME) {
      if (answer.allowed !== hasRoom) throw new Error(`room: ${hasRoom}; admitted: ${answer.allowed}`)
      if (answer.allowed) held.until = this.#now + TTL_MS
    } else if (ask.op === RENEW) {
      if (held.until > this.#now) held.until = this.#now + TTL_MS
    } else held.until = 0
    return answer
  }

  #taken(): number {
    return this.#held.reduce((sum, { holder, until }) => sum + (until > this.#now ? (holder.permits ?? 1) : 0), 0)
  }

  #limiterOf(store: Store): Limiter {
    return createLimiter({ name: 'permits', store, limits: [concurrency({ limit: this.#options.limit, ttl: TTL_MS })] })
  }

  #pass(): void {
    this.#halves--
    this.#now += TTL_MS / 2
    this.#network.note('the store', 'time passes')
  }
}
