import {
  concurrency,
  createLimiter,
  type Limiter,
  type RedisClient,
  redisStore,
  type Store,
  type Verdict,
} from '@sluice/core'
import type { Redis } from 'ioredis'
import { vi } from 'vitest'
import { standIn } from '../../../support/stand-in.js'
import { quiet, type Step, type World } from './explore.js'
import { Network } from './network.js'

export interface TurnsOptions {
  /** The process of each waiter and its priority, in the order of arrival. */
  readonly waiters: readonly { readonly process: 0 | 1; readonly priority: number; readonly leaves?: boolean }[]
  /** The number of requests to the second process that do not wait. @default 0 */
  readonly beside?: number
  /** Whether the first process may die. Its reports and permits lapse later. */
  readonly dies?: boolean
  /** The number of commands that may fail. @default 0 */
  readonly faults?: number
  /** The number of times that time may advance to the next timer during commands. @default 0 */
  readonly slow?: number
  /** Whether Redis decides as if there were no waiters elsewhere, to test the checks. */
  readonly ignoresWaiters?: boolean
}

type Outcome = 'away' | 'waits' | 'admitted' | 'done' | 'left' | 'died'

interface Waiting {
  readonly name: string
  readonly process: 0 | 1
  readonly priority: number
  readonly leaves: boolean
  readonly leaving: AbortController
  outcome: Outcome
  verdict: Verdict | undefined
}

/** An entry of the record of waiters, see lua/shared/turns.lua. */
interface Entry {
  readonly bytes: Buffer
  readonly process: string
  readonly headStartMs: number
}

const ENTRY = 34
const HOUR_MS = 3_600_000
/** A request that still waits after this many timers, with room and no command pending, waits for ever. */
const PATIENCE = 12

let runs = 0

/**
 * Two processes on one real Redis with requests that wait for one permit. The world decides when a command reaches Redis,
 * when its reply comes back, and when time passes. Entries of the record live for a minute of Redis time, longer than a world.
 */
export class TurnsWorld implements World {
  readonly #options: TurnsOptions
  readonly #redis: Redis
  readonly #network: Network
  readonly #stores: readonly Store[]
  readonly #limiters: readonly Limiter[]
  readonly #waiting: readonly Waiting[]
  readonly #prefix = `turns-world-${runs++}:`
  readonly #cell = `${this.#prefix}v1:{key=k}:turns:concurrency.1.${HOUR_MS}`
  readonly #start = performance.now()
  /** The names under which each process reports its waiters. */
  readonly #reported: [Set<string>, Set<string>] = [new Set(), new Set()]
  /** Permits that the first process has taken. */
  readonly #taken = new Set<string>()
  #record: readonly Entry[] = []
  #isHeld = true
  #isDead = false
  #hasLapsed = false
  #beside = 0
  /** The number of permits that are taken in Redis. */
  #inUse = 1
  #slow: number
  #moments = 0
  #sent = 0
  #broken: Error | undefined

  private constructor(redis: Redis, options: TurnsOptions) {
    this.#redis = redis
    this.#options = options
    this.#network = new Network({ ...options, lateReplies: true, inOrder: true })
    this.#slow = options.slow ?? 0
    const clock = () => 1e12 + Math.floor(performance.now() - this.#start)
    this.#stores = [0, 1].map((i) =>
      redisStore(this.#client(i as 0 | 1), { clock, prefix: this.#prefix, timeout: '1h', denyCache: false }),
    )
    this.#limiters = this.#stores.map((store) =>
      createLimiter({
        name: 'turns',
        store,
        sharedTurns: { ttl: '1m' },
        limits: [concurrency({ limit: 1, ttl: HOUR_MS })],
      }),
    )
    this.#waiting = options.waiters.map(({ process, priority, leaves = false }, i) => ({
      name: `waiter ${i + 1}, of process ${process + 1},`,
      process,
      priority,
      leaves,
      leaving: new AbortController(),
      outcome: 'away',
      verdict: undefined,
    }))
  }

  /** A world whose permit is taken. */
  static async make(redis: Redis, options: TurnsOptions): Promise<TurnsWorld> {
    const world = new TurnsWorld(redis, options)
    await redis.call('ZADD', world.#cell, 1e12 + HOUR_MS, 'holder.0')
    return world
  }

  steps(): Step[] {
    const steps = this.#network.steps()
    const next = this.#waiting.find(({ outcome }) => outcome === 'away')
    if (next) steps.push({ name: `${next.name} comes`, take: () => this.#come(next) })
    for (const one of this.#waiting) {
      if (this.#isDead && one.process === 0) continue
      if (one.outcome === 'admitted') steps.push({ name: `${one.name} is done`, take: () => this.#finish(one) })
      if (one.leaves && one.outcome === 'waits' && !one.leaving.signal.aborted) {
        steps.push({ name: `${one.name} leaves`, take: () => this.#leave(one) })
      }
    }
    if (this.#beside < (this.#options.beside ?? 0)) {
      steps.push({ name: 'one that does not wait comes', take: () => this.#comeBeside() })
    }
    if (this.#isHeld) steps.push({ name: 'the permit is released', take: () => this.#release() })
    if (this.#options.dies && !this.#isDead) steps.push({ name: 'process 1 dies', take: () => this.#die() })
    if (this.#isDead && !this.#hasLapsed && this.#network.isQuiet) {
      steps.push({ name: 'the reports and permits of process 1 lapse', take: () => this.#lapse() })
    }
    if (this.#isLost()) steps.push({ name: 'what was lost lapses', take: () => this.#free() })
    if (this.#isGoingOn() && (this.#network.isQuiet ? this.#moments < PATIENCE : this.#slow > 0)) {
      steps.push({ name: 'time goes on', take: () => this.#goOn() })
    }
    return steps
  }

  state(): string {
    return this.#network.state()
  }

  quiet(): Promise<void> {
    return quiet(3)
  }

  check(): void {
    if (this.#broken) throw this.#broken
  }

  async end(): Promise<void> {
    this.check()
    const starved = this.#waiting.find(({ outcome }) => outcome === 'waits')
    if (starved) throw new Error(`${starved.name} starves`)
    if (this.#record.length > 0) throw new Error('the record has waiters, and there are none')
    const permits = await this.#permits()
    if (permits.length > 0) throw new Error(`${permits.length} permits are taken by none`)
  }

  async close(): Promise<void> {
    for (const { leaving } of this.#waiting) leaving.abort(new Error('left'))
    for (const store of this.#stores) store.close().catch(() => {})
    const keys = (await this.#redis.call('KEYS', `${this.#prefix}*`)) as string[]
    if (keys.length > 0) await this.#redis.call('DEL', ...keys)
    vi.clearAllTimers()
  }

  /** Its decisions and reports of waiters wait until the world sends them; the store's own reads do not. */
  #client(i: 0 | 1): RedisClient {
    const name = `process ${i + 1}`
    return standIn((command, args) => {
      if (i === 0 && this.#isDead) return new Promise(() => {})
      if (!/^EVAL/.test(command) || !args.some((arg) => arg.startsWith(this.#cell))) {
        return this.#redis.callBuffer(command, ...args)
      }
      return this.#network.call(name, 'Redis', `command ${++this.#sent} of ${name}`, () => this.#run(i, command, args))
    })
  }

  async #run(i: 0 | 1, command: string, args: readonly string[]): Promise<unknown> {
    const permits = await this.#permits()
    const record = this.#record
    const others = record.filter(({ process }) => !this.#reported[i].has(process))
    if (this.#options.ignoresWaiters) await this.#write([])
    const reply = await this.#redis.callBuffer(command, ...args)
    const found = await this.#read()
    for (const { process } of found)
      if (!others.some((other) => other.process === process)) this.#reported[i].add(process)
    if (this.#options.ignoresWaiters) await this.#write([...others, ...found])
    this.#record = await this.#read()
    const after = await this.#permits()
    this.#inUse = after.length
    if (after.length > 1) this.#broken = new Error(`${after.length} permits are taken, of one`)
    const taken = after.find((permit) => !permits.includes(permit))
    if (taken !== undefined) {
      if (i === 0) this.#taken.add(taken)
      this.#judge(i, turnOf(taken, args), others)
    }
    return reply
  }

  /** No request is admitted while the other process reports a waiter before it. */
  #judge(i: 0 | 1, turn: { headStartMs: number } | undefined, others: readonly Entry[]): void {
    for (const { headStartMs } of others) {
      if (turn === undefined)
        this.#broken = new Error(`process ${i + 1} admits one that does not wait before one that does`)
      else if (headStartMs > turn.headStartMs) {
        this.#broken = new Error(`process ${i + 1} admits one before a higher priority of the other`)
      }
    }
  }

  async #permits(): Promise<string[]> {
    return (await this.#redis.call('ZRANGE', this.#cell, 0, -1)) as string[]
  }

  async #read(): Promise<Entry[]> {
    const record = await this.#redis.getBuffer(`${this.#cell}:waiting`)
    const entries: Entry[] = []
    for (let at = 0; record && at < record.length; at += ENTRY) {
      const bytes = record.subarray(at, at + ENTRY)
      entries.push({ bytes, process: bytes.toString('latin1', 0, 12), headStartMs: bytes.readDoubleBE(12) })
    }
    return entries
  }

  async #write(entries: readonly Entry[]): Promise<void> {
    const key = `${this.#cell}:waiting`
    if (entries.length === 0) await this.#redis.call('DEL', key)
    else await this.#redis.set(key, Buffer.concat(entries.map(({ bytes }) => bytes)), 'PX', 60_000)
  }

  /** A permit without a holder, or a report without waiters, either of which lapses after its ttl. */
  #isLost(): boolean {
    if (this.#isHeld || !this.#network.isQuiet || (this.#options.faults ?? 0) === 0) return false
    const isTaken = this.#waiting.some(({ outcome }) => outcome === 'admitted')
    return (this.#inUse > 0 && !isTaken) || this.#record.some((entry) => !this.#isTrue(entry))
  }

  #isTrue({ process }: Entry): boolean {
    return this.#waiting.some((one) => one.outcome === 'waits' && this.#reported[one.process].has(process))
  }

  async #free(): Promise<void> {
    this.#network.note('Redis', 'what was lost lapses')
    this.#moments = 0
    this.#record = this.#record.filter((entry) => this.#isTrue(entry))
    await this.#write(this.#record)
    if (this.#waiting.some(({ outcome }) => outcome === 'admitted')) return
    this.#inUse = 0
    await this.#redis.call('DEL', this.#cell)
  }

  #isGoingOn(): boolean {
    return (
      this.#record.length > 0 ||
      this.#waiting.some(({ outcome, process }) => outcome === 'waits' && !(this.#isDead && process === 0))
    )
  }

  #come(one: Waiting): void {
    this.#network.note(`process ${one.process + 1}`, `${one.name} comes`)
    if (one.process === 0 && this.#isDead) {
      one.outcome = 'died'
      return
    }
    one.outcome = 'waits'
    const options = { priority: one.priority, ageEvery: '1h' as const, signal: one.leaving.signal }
    ;(this.#limiters[one.process] as Limiter).acquire('k', options).then(
      (verdict) => {
        if (one.outcome === 'died') return
        one.verdict = verdict
        one.outcome = verdict.kind === 'decided' ? 'admitted' : 'done'
      },
      (error: Error) => {
        if (one.outcome === 'died') return
        if (error.message === 'left' || (this.#options.faults ?? 0) > 0) one.outcome = 'left'
        else this.#broken = error
      },
    )
  }

  #comeBeside(): void {
    this.#beside++
    this.#network.note('process 2', 'one that does not wait comes')
    ;(this.#limiters[1] as Limiter).consume('k').then(
      async (verdict) => {
        if (!verdict.allowed) return
        await this.#limiters[1]?.release(verdict)
        this.#moments = 0
      },
      () => {},
    )
  }

  #finish(one: Waiting): void {
    this.#note(one.process, `${one.name} is done`)
    one.outcome = 'done'
    this.#limiters[one.process]?.release(one.verdict).catch(() => {})
  }

  #leave(one: Waiting): void {
    this.#note(one.process, `${one.name} leaves`)
    one.leaving.abort(new Error('left'))
  }

  async #release(): Promise<void> {
    this.#isHeld = false
    this.#network.note('Redis', 'the permit is released')
    this.#moments = 0
    await this.#redis.call('ZREM', this.#cell, 'holder.0')
    this.#inUse = (await this.#permits()).length
  }

  #die(): void {
    this.#isDead = true
    this.#note(0, 'dies')
    for (const one of this.#waiting) if (one.process === 0 && one.outcome !== 'away') one.outcome = 'died'
  }

  async #lapse(): Promise<void> {
    this.#hasLapsed = true
    this.#network.note('Redis', 'the reports and permits of process 1 lapse')
    this.#moments = 0
    this.#record = this.#record.filter(({ process }) => !this.#reported[0].has(process))
    await this.#write(this.#record)
    if (this.#taken.size > 0) await this.#redis.call('ZREM', this.#cell, ...this.#taken)
    this.#inUse = (await this.#permits()).length
  }

  #note(process: 0 | 1, what: string): void {
    this.#network.note(`process ${process + 1}`, what)
    this.#moments = 0
  }

  #goOn(): void {
    if (this.#network.isQuiet) this.#moments++
    else this.#slow--
    for (const place of ['process 1', 'process 2']) this.#network.note(place, 'time goes on')
    vi.advanceTimersToNextTimer()
  }
}

/** The class of the waiter that has taken a permit; undefined if it does not wait. See lua/decide.lua. */
function turnOf(permit: string, args: readonly string[]): { headStartMs: number } | undefined {
  const argv = args.slice(2 + Number(args[1]))
  const at = argv.indexOf(permit.replace(/\.\d+$/, '')) + 1
  return argv[at]?.length === 12 ? { headStartMs: Number(argv[at + 2]) } : undefined
}
