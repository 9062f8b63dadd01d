import {
  createLimiter,
  fixedWindow,
  type KeyFunction,
  keyed,
  type Limit,
  type Limiter,
  type RedisClient,
  redisStore,
  type Store,
  type Verdict,
} from '@sluice/core'
import type { Redis } from 'ioredis'
import { vi } from 'vitest'
import { exchangeScript } from '../../../support/inside.js'
import { standIn } from '../../../support/stand-in.js'
import { quiet, type Step, type World } from './explore.js'
import { Network } from './network.js'

const SYNC_MS = 20
const HOUR_MS = 3_600_000

/** The operations of the first process beside decisions, each once. */
export type Deed = 'refund' | 'reset' | 'block' | 'unblock'

export interface RelaxedOptions {
  /** The keys of the requests of each process, in order. */
  readonly requests: readonly (readonly string[])[]
  /** The units of a key. @default 100 */
  readonly limit?: number
  /** The units of all keys together, where they share a limit. */
  readonly shared?: number
  /** The number of decisions of each process on the key `k` before the first step: from 2 on, it counts locally. @default 0 */
  readonly counted?: number
  readonly deeds?: readonly Deed[]
  /** The number of times that an exchange is due. @default 0 */
  readonly rounds?: number
  /** The number of commands that may fail. @default 0 */
  readonly faults?: number
  /** Whether every exchange is charged in Redis a second time, to test the checks. */
  readonly sendsTwice?: boolean
}

interface Decision {
  readonly name: string
  readonly process: Process
  readonly key: string
  /** The number of earlier decisions of its process, and of earlier resets of its key. */
  readonly before: number
  readonly resets: number
  /** Whether a block holds at every moment since its request. */
  isBlocked: boolean
  verdict: Verdict | Error | undefined
  isRefunded: boolean
}

interface Process {
  readonly name: string
  readonly store: Store
  readonly limiter: Limiter<string>
  requested: number
  state: 'open' | 'closing' | 'closed'
}

let runs = 0

/**
 * Processes that count locally on one real Redis, each on a connection in order. The world decides when a command reaches
 * Redis, when its reply comes back, and when an exchange is due. Timers have to be faked.
 */
export class RelaxedWorld implements World {
  readonly #options: RelaxedOptions
  readonly #redis: Redis
  readonly #network: Network
  readonly #processes: readonly Process[]
  readonly #decisions: Decision[] = []
  readonly #limits: readonly Limit<string>[]
  readonly #limit: number
  /** Worlds share a server, so each has its own keys. */
  readonly #prefix = `relaxed-${runs++}:`
  #now = 1e12
  #isReady = false
  #deeds = 0
  #isDoing = false
  #resets = 0
  #isBlocked = false
  #rounds = 0
  #sent = 0
  #broken: Error | undefined

  private constructor(redis: Redis, options: RelaxedOptions) {
    this.#redis = redis
    this.#options = options
    const { limit = 100, shared } = options
    this.#limit = limit
    const all: KeyFunction<string> = keyed('all', () => 'all')
    this.#limits = [
      fixedWindow({ limit, window: HOUR_MS }),
      ...(shared === undefined ? [] : [fixedWindow<string>({ limit: shared, window: HOUR_MS, key: all })]),
    ]
    this.#network = new Network({ ...options, lateReplies: true, inOrder: true })
    this.#processes = options.requests.map((_, i) => this.#process(`process ${i + 1}`))
  }

  static async make(redis: Redis, options: RelaxedOptions): Promise<RelaxedWorld> {
    const world = new RelaxedWorld(redis, options)
    for (let n = 0; n < (options.counted ?? 0); n++) {
      for (const process of world.#processes) await world.#decide(process, 'k')
      // The reply to the exchange with which a second decision fetches the count may come later.
      await until(() => world.#sent === 0)
    }
    world.#isReady = true
    return world
  }

  steps(): Step[] {
    const steps = this.#network.steps()
    const { requests, deeds = [], rounds = 0 } = this.#options
    for (const [i, process] of this.#processes.entries()) {
      const key = requests[i]?.[process.requested - (this.#options.counted ?? 0)]
      if (key !== undefined) {
        const take = () => void this.#decide(process, key)
        steps.push({ name: `${process.name} receives a request for ${key}`, take })
      } else if (process.state === 'open' && this.#deeds === deeds.length && !this.#isDoing) {
        steps.push({ name: `${process.name} closes`, take: () => this.#close(process) })
      }
    }
    const deed = this.#isDoing ? undefined : deeds[this.#deeds]
    if (deed && (deed !== 'refund' || this.#refundable())) {
      steps.push({ name: `process 1 is to ${deed}`, take: () => void this.#do(deed) })
    }
    if (this.#rounds < rounds && this.#processes.some(({ state }) => state === 'open')) {
      steps.push({ name: 'it is time to exchange', take: () => this.#pass() })
    }
    return steps
  }

  state(): string {
    return this.#network.state()
  }

  async quiet(): Promise<void> {
    await quiet(5)
  }

  check(): void {
    if (this.#broken) throw this.#broken
    for (const process of this.#processes) this.#checkProcess(process)
  }

  async end(): Promise<void> {
    const open = this.#decisions.find(({ verdict }) => verdict === undefined)
    if (open) throw new Error(`${open.name} is never decided`)
    for (const key of new Set(this.#decisions.map((decision) => decision.key))) await this.#checkCharges(key)
  }

  async close(): Promise<void> {
    // Pending commands receive no reply.
    for (const { store } of this.#processes) store.close().catch(() => {})
    vi.clearAllTimers()
    const keys = (await this.#redis.call('KEYS', `${this.#prefix}*`)) as string[]
    if (keys.length > 0) await this.#redis.call('DEL', ...keys)
  }

  /**
   * One process alone decides exactly as Redis would, in the order of its requests; several never admit more than the limit
   * each. A block refuses every request that is made and decided while it holds.
   */
  #checkProcess(process: Process): void {
    const own = this.#decisions.filter((decision) => decision.process === process)
    const isAlone = this.#processes.length === 1 && !this.#options.faults
    for (const key of new Set(own.map((decision) => decision.key))) {
      const since = own.filter((decision) => decision.key === key && decision.resets === this.#resets)
      const admitted = since.filter(isAdmitted)
      if (admitted.length > this.#limit + (this.#options.deeds?.includes('refund') ? 1 : 0)) {
        throw new Error(`${process.name} admits ${admitted.length} of ${this.#limit}`)
      }
    }
    for (const decision of own) {
      const { verdict, name, isBlocked } = decision
      if (!(verdict instanceof Object) || isFailure(verdict)) continue
      if (isBlocked && (verdict as Verdict).reason !== 'blocked') throw new Error(`${name} is let through a block`)
      if (isAlone) this.#checkExact(decision, own)
    }
  }

  /** The units that a decision reports as remaining, after the charges of all earlier requests of its process. */
  #checkExact({ name, key, verdict, before, resets }: Decision, own: readonly Decision[]): void {
    const { deeds = [], shared } = this.#options
    // Refusals by a block are not charged, and refunds come between.
    if (deeds.includes('refund') || deeds.includes('block')) return
    const { allowed, limits } = verdict as Verdict
    const counted = own.filter((other) => other.key === key && other.before <= before && other.resets === resets)
    const [reported, left] =
      shared === undefined
        ? [limits[0]?.remaining, Math.max(0, this.#limit - counted.length)]
        : [limits[1]?.remaining, Math.max(0, shared - before - 1)]
    if (reported !== left) throw new Error(`${name} says that ${reported} are left, and ${left} are`)
    if (shared !== undefined && allowed !== before < shared) throw new Error(`${name}: ${allowed}`)
  }

  /** Each unit that was admitted and neither refunded nor reset is charged once when all processes have closed. */
  async #checkCharges(key: string): Promise<void> {
    const of = this.#decisions.filter((decision) => decision.key === key && decision.resets === this.#resets)
    const admitted = of.filter((decision) => isAdmitted(decision) && !decision.isRefunded).length
    const failed = of.filter(({ verdict }) => isFailure(verdict)).length
    const charged = this.#limit - (await this.#left(key))
    const isExact = !this.#options.faults
    const isTold = isExact ? charged === Math.min(admitted, this.#limit) : charged <= admitted + failed
    if (!isTold) throw new Error(`${admitted} are admitted for ${key}, ${failed} failed, and ${charged} charged`)
  }

  async #left(key: string): Promise<number> {
    const store = redisStore(this.#passing(), { clock: () => this.#now, prefix: this.#prefix, timeout: '1h' })
    const limiter = this.#limiter(store)
    if (this.#isBlocked) await limiter.unblock(key)
    const verdict = await limiter.peek(key)
    return verdict.limits[0]?.remaining as number
  }

  #process(name: string): Process {
    const store = redisStore(this.#client(name), {
      clock: () => this.#now,
      prefix: this.#prefix,
      timeout: '1h',
    })
    return { name, store, limiter: this.#limiter(store), requested: 0, state: 'open' }
  }

  #limiter(store: Store): Limiter<string> {
    return createLimiter<string>({
      name: 'relaxed',
      store,
      limits: this.#limits,
      consistency: { syncEvery: SYNC_MS },
    })
  }

  /** Its commands wait until the world sends them, once it is ready. */
  #client(name: string): RedisClient {
    let calls = 0
    return standIn((command, args) => {
      if (!this.#isReady) return this.#passed(command, args)
      const call = `command ${++calls} of ${name}, ${command},`
      return this.#network.call(name, 'Redis', call, () => this.#run(command, args))
    })
  }

  async #passed(command: string, args: readonly string[]): Promise<unknown> {
    this.#sent++
    try {
      return await this.#redis.callBuffer(command, ...args)
    } finally {
      this.#sent--
    }
  }

  async #run(command: string, args: readonly string[]): Promise<unknown> {
    const isExchange = args[0] === exchangeScript.sha1 || args[0] === exchangeScript.source
    if (this.#options.sendsTwice && isExchange) await this.#redis.callBuffer(command, ...args)
    return this.#redis.callBuffer(command, ...args)
  }

  #passing(): RedisClient {
    return standIn((command, args) => this.#redis.callBuffer(command, ...args))
  }

  async #decide(process: Process, key: string): Promise<void> {
    const before = process.requested++
    const name = `decision ${before + 1} of ${process.name}`
    const decision: Decision = {
      name,
      process,
      key,
      before,
      resets: this.#resets,
      isBlocked: this.#isBlocked,
      verdict: undefined,
      isRefunded: false,
    }
    this.#decisions.push(decision)
    if (this.#isReady) this.#network.note(process.name, `receives a request for ${key}`)
    try {
      decision.verdict = await process.limiter.consume(key)
    } catch (error) {
      decision.verdict = error as Error
    }
  }

  #refundable(): Decision | undefined {
    const [first] = this.#processes
    return this.#decisions.find((decision) => decision.process === first && isAdmitted(decision))
  }

  async #do(deed: Deed): Promise<void> {
    this.#deeds++
    this.#isDoing = true
    const { limiter, name } = this.#processes[0] as Process
    this.#network.note(name, deed)
    try {
      if (deed === 'refund') await this.#refund(this.#refundable() as Decision)
      if (deed === 'reset') {
        this.#resets++
        await limiter.reset('k')
      }
      if (deed === 'block') {
        await limiter.block('k', { for: '1h', reason: 'scraping' })
        this.#isBlocked = true
      }
      if (deed === 'unblock') {
        this.#isBlocked = false
        for (const decision of this.#decisions) decision.isBlocked &&= decision.verdict !== undefined
        await limiter.unblock('k')
      }
    } catch (error) {
      if (!this.#options.faults) this.#broken = error as Error
    }
    this.#isDoing = false
  }

  async #refund(decision: Decision): Promise<void> {
    const { limiter } = this.#processes[0] as Process
    decision.isRefunded = true
    if (!(await limiter.refund(decision.key, decision.verdict as Verdict))) throw new Error('a refund is none')
  }

  #close(process: Process): void {
    process.state = 'closing'
    this.#network.note(process.name, 'closes')
    process.store.close().then(
      () => {
        process.state = 'closed'
      },
      (error) => {
        this.#broken = error
      },
    )
  }

  #pass(): void {
    this.#rounds++
    for (const { name } of this.#processes) this.#network.note(name, 'it is time to exchange')
    vi.advanceTimersByTime(SYNC_MS)
  }
}

function isAdmitted({ verdict }: Decision): boolean {
  return verdict !== undefined && !isFailure(verdict) && (verdict as Verdict).allowed
}

/** Whether the decision was not made by counts. */
function isFailure(verdict: Verdict | Error | undefined): boolean {
  return verdict instanceof Error || verdict?.kind !== 'decided'
}

async function until(condition: () => boolean): Promise<void> {
  do await quiet(5)
  while (!condition())
}
