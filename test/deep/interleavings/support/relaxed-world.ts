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

/** What the first process does beside decisions, each once. */
export type Deed = 'refund' | 'reset' | 'block' | 'unblock'

export interface RelaxedOptions {
  /** The keys that each process is asked for, in this order. */
  readonly asks: readonly (readonly string[])[]
  /** How many units a key has. @default 100 */
  readonly limit?: number
  /** How many units all keys have together, where they share a limit. */
  readonly shared?: number
  /** How many decisions each process has made on the key `k` before anything is a step: from 2 on it counts by itself. @default 0 */
  readonly counted?: number
  readonly deeds?: readonly Deed[]
  /** How often the time of an exchange comes. @default 0 */
  readonly rounds?: number
  /** How many commands may go wrong. @default 0 */
  readonly faults?: number
  /** Whether processes charge in Redis whatever an exchange carries a second time: for a check of the checks. */
  readonly sendsTwice?: boolean
}

interface Decision {
  readonly name: string
  readonly process: Process
  readonly key: string
  /** How many decisions of its process, and resets of its key, were asked for before it. */
  readonly before: number
  readonly resets: number
  /** Whether a block is there at every moment since it was asked for. */
  isBlocked: boolean
  verdict: Verdict | Error | undefined
  isRefunded: boolean
}

interface Process {
  readonly name: string
  readonly store: Store
  readonly limiter: Limiter<string>
  asked: number
  state: 'open' | 'closing' | 'closed'
}

let runs = 0

/**
 * Processes that count by themselves on one real Redis, each on a connection that keeps its order; when a command reaches Redis, when
 * its reply comes back, and when the time of an exchange comes, is decided here. Timers have to be faked.
 */
export class RelaxedWorld implements World {
  readonly #options: RelaxedOptions
  readonly #redis: Redis
  readonly #network: Network
  readonly #processes: readonly Process[]
  readonly #decisions: Decision[] = []
  readonly #limits: readonly Limit<string>[]
  readonly #limit: number
  /** Worlds share a server. */
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
    this.#network = new Network({ ...options, lateAnswers: true, inOrder: true })
    this.#processes = options.asks.map((_, i) => this.#process(`process ${i + 1}`))
  }

  static async make(redis: Redis, options: RelaxedOptions): Promise<RelaxedWorld> {
    const world = new RelaxedWorld(redis, options)
    for (let n = 0; n < (options.counted ?? 0); n++) {
      for (const process of world.#processes) await world.#decide(process, 'k')
      // The exchange that a second decision fetches the count with may be replied to later.
      await until(() => world.#sent === 0)
    }
    world.#isReady = true
    return world
  }

  steps(): Step[] {
    const steps = this.#network.steps()
    const { asks, deeds = [], rounds = 0 } = this.#options
    for (const [i, process] of this.#processes.entries()) {
      const key = asks[i]?.[process.asked - (this.#options.counted ?? 0)]
      if (key !== undefined) {
        const take = () => void this.#decide(process, key)
        steps.push({ name: `${process.name} is asked for ${key}`, take })
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
    // What they still ask for is not answered any more.
    for (const { store } of this.#processes) store.close().catch(() => {})
    vi.clearAllTimers()
    const keys = (await this.#redis.call('KEYS', `${this.#prefix}*`)) as string[]
    if (keys.length > 0) await this.#redis.call('DEL', ...keys)
  }

  /**
   * One process alone decides as exactly as Redis would, in the order in which it is asked; several never admit more than the limit
   * each. A block holds for what is asked for and decided while it is there.
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

  /** What a decision says is left: all that its process was asked for before it is charged then. */
  #checkExact({ name, key, verdict, before, resets }: Decision, own: readonly Decision[]): void {
    const { deeds = [], shared } = this.#options
    // What is refused for a block is not charged, and refunds come in between.
    if (deeds.includes('refund') || deeds.includes('block')) return
    const { allowed, limits } = verdict as Verdict
    const counted = own.filter((other) => other.key === key && other.before <= before && other.resets === resets)
    const [said, left] =
      shared === undefined
        ? [limits[0]?.remaining, Math.max(0, this.#limit - counted.length)]
        : [limits[1]?.remaining, Math.max(0, shared - before - 1)]
    if (said !== left) throw new Error(`${name} says that ${said} are left, and ${left} are`)
    if (shared !== undefined && allowed !== before < shared) throw new Error(`${name}: ${allowed}`)
  }

  /** Each unit that was admitted, and was not refunded or reset, is charged once when all processes have closed. */
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
    return { name, store, limiter: this.#limiter(store), asked: 0, state: 'open' }
  }

  #limiter(store: Store): Limiter<string> {
    return createLimiter<string>({
      name: 'relaxed',
      store,
      limits: this.#limits,
      consistency: { syncEvery: SYNC_MS },
    })
  }

  /** Its commands wait until they are let through, once the world is ready. */
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
    const before = process.asked++
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
    if (this.#isReady) this.#network.note(process.name, `is asked for ${key}`)
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

/** Whether it is not by what is counted that was decided. */
function isFailure(verdict: Verdict | Error | undefined): boolean {
  return verdict instanceof Error || verdict?.kind !== 'decided'
}

async function until(condition: () => boolean): Promise<void> {
  do await quiet(5)
  while (!condition())
}
