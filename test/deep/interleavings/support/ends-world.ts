import { createLimiter, type Limiter, type RedisClient, type RedisStore, redisStore } from '@sluice/core'
import type { Redis } from 'ioredis'
import { vi } from 'vitest'
import { standIn } from '../../../support/stand-in.js'
import { quiet, type Step, type World } from './explore.js'

export interface EndsOptions {
  /** The operation with which the second process ends the block of the first, which all know. */
  readonly deed: 'unblock' | 'removeAll' | 'forget'
  /** Whether Redis restarts with the data from the time of the block instead of none, and processes reconnect. */
  readonly crashes?: boolean
  /** The number of times that Redis may lose everything. */
  readonly flushes: number
  /** The number of seconds that may pass: in each, every process looks once. */
  readonly seconds: number
  /** Whether the second process may end once the third knows the end of the block. */
  readonly leaves?: boolean
}

const PROCESSES = [0, 1, 2] as const
/** Longer than the pause between two looks. */
const SECOND_MS = 1150

/** The commands of a process, which wait until it continues. */
class Gate {
  readonly #waiting: { readonly isWrite: boolean; readonly go: () => void }[] = []
  #isOpen = false
  underWay = 0

  pass<T>(isWrite: boolean, run: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const go = () => {
        this.underWay++
        run()
          .then(resolve, reject)
          .finally(() => this.underWay--)
      }
      if (this.#isOpen && !isWrite) go()
      else this.#waiting.push({ isWrite, go })
    })
  }

  get size(): number {
    return this.#waiting.length
  }

  shut(): void {
    this.#isOpen = false
  }

  /** Lets it continue up to its next write to the index, which waits for the next call. */
  async goOn(): Promise<void> {
    this.#isOpen = true
    this.#waiting.shift()?.go()
    for (;;) {
      while (this.#waiting.length > 0 && !this.#waiting[0]?.isWrite) this.#waiting.shift()?.go()
      await quiet(8)
      if (this.underWay === 0 && (this.#waiting.length === 0 || this.#waiting[0]?.isWrite)) break
    }
    this.shut()
  }
}

let runs = 0

/**
 * Three processes on one real Redis that know a block, which one of them ends. The world decides when each continues: one
 * that does not is paused or slow. Timers have to be faked.
 */
export class EndsWorld implements World {
  readonly #redis: Redis
  readonly #options: EndsOptions
  readonly #prefix = `ends-${runs++}:`
  readonly #gates = PROCESSES.map(() => new Gate())
  readonly #connected: (() => void)[] = []
  /** The keys of Redis at an earlier moment, each with its remaining life. */
  readonly #saved: [key: string, left: number, value: Buffer][] = []
  readonly #stores: readonly RedisStore[]
  readonly #limiters: readonly Limiter[]
  #now = 1e12
  #deed: 'open' | 'running' | 'done' = 'open'
  #flushes = 0
  #seconds = 0
  #hasLeft = false
  /** Whether each process has known the end of the block. */
  readonly #knows = PROCESSES.map(() => false)
  /** Whether each process has completed a look that began after the last flush. */
  readonly #looks = PROCESSES.map(() => false)
  readonly #hasLooked = PROCESSES.map(() => true)

  private constructor(redis: Redis, options: EndsOptions) {
    this.#redis = redis
    this.#options = options
    this.#stores = PROCESSES.map((i) =>
      redisStore(this.#client(i), {
        clock: () => this.#now,
        prefix: this.#prefix,
        timeout: '1h',
        denyCache: false,
        warnings: { SLUICE_BLOCKS_RESTORED: false },
      }),
    )
    this.#limiters = this.#stores.map((store) => createLimiter({ name: 'ends', store, limit: 100, window: '1h' }))
  }

  static async make(redis: Redis, options: EndsOptions): Promise<EndsWorld> {
    const world = new EndsWorld(redis, options)
    world.#connect()
    await world.#all()
    const blocked = (world.#limiters[0] as Limiter).block('k', { for: '1d' })
    await world.#all()
    await blocked
    for (let looks = 0; looks < 2; looks++) {
      world.#pass()
      await world.#all()
    }
    for (const key of options.crashes ? await world.#keys() : []) {
      const value = (await redis.callBuffer('DUMP', key)) as Buffer
      world.#saved.push([key, Number(await redis.call('PTTL', key)), value])
    }
    if (world.#stores.some(({ blocks }) => blocks.known !== 1)) throw new Error('not every process knows the block')
    return world
  }

  steps(): Step[] {
    const { deed, flushes, seconds, leaves } = this.#options
    const steps: Step[] = []
    if (this.#deed === 'open') steps.push({ name: `process 2 is to ${deed}`, take: () => this.#do() })
    if (this.#flushes < flushes) steps.push({ name: 'Redis loses what it has', take: () => this.#flush() })
    if (this.#seconds < seconds) steps.push({ name: 'a second passes', take: () => this.#pass(true) })
    for (const i of PROCESSES) {
      if (this.#gate(i).size > 0) steps.push({ name: `process ${i + 1} goes on`, take: () => this.#goOn(i) })
    }
    if (leaves && !this.#hasLeft && this.#knows[2] && this.#gate(1).size === 0) {
      steps.push({ name: 'process 2 leaves', take: () => this.#leave() })
    }
    return steps
  }

  state(): string {
    return String(Math.random())
  }

  quiet(): Promise<void> {
    return quiet(8)
  }

  async check(): Promise<void> {
    const knower = PROCESSES.find((i) => this.#isAlive(i) && this.#knows[i] && this.#hasLooked[i])
    if (knower === undefined || !(await this.#isBlocked())) return
    throw new Error(`the block is in Redis, though process ${knower + 1}, which knew its end, has looked`)
  }

  /** Once every process has looked, the block holds nowhere. */
  async end(): Promise<void> {
    while (this.#deed === 'running') await this.#all()
    for (let looks = 0; looks < 2; looks++) {
      this.#pass()
      await this.#all()
    }
    for (const i of PROCESSES) {
      if (!this.#isAlive(i)) continue
      const verdict = (this.#limiters[i] as Limiter).peek('k')
      await this.#all()
      if (!(await verdict).allowed) throw new Error(`process ${i + 1} refuses`)
    }
    if (await this.#isBlocked()) throw new Error('the block is in Redis')
    if (this.#deed === 'done' && this.#options.deed === 'forget' && (await this.#isNamed())) {
      throw new Error('the name is in Redis')
    }
  }

  async close(): Promise<void> {
    for (const store of this.#stores) store.close().catch(() => {})
    await this.#erase()
  }

  #gate(i: number): Gate {
    return this.#gates[i] as Gate
  }

  #isAlive(i: number): boolean {
    return i !== 1 || !this.#hasLeft
  }

  #client(i: number): RedisClient {
    const client = standIn((command, args) => {
      const isWrite = ['BLOCK', 'KEEP', 'END', 'ERASE'].includes(args.at(-5) ?? '')
      return this.#gate(i).pass(isWrite, () => this.#redis.callBuffer(command, ...args))
    })
    return Object.assign(client, {
      call: async () => '',
      on: (event: string, listener: () => void) => {
        if (event === 'ready') this.#connected.push(listener)
        return client
      },
    })
  }

  #connect(): void {
    for (const listener of this.#connected) listener()
  }

  #do(): void {
    this.#deed = 'running'
    this.#now++
    const [, store] = this.#stores as [RedisStore, RedisStore]
    const [, limiter] = this.#limiters as [Limiter, Limiter]
    const { deed } = this.#options
    const done =
      deed === 'unblock'
        ? limiter.unblock('k')
        : deed === 'forget'
          ? store.forget({ key: 'k' })
          : store.blocks.removeAll()
    done.then(
      () => {
        this.#deed = 'done'
        this.#knows[1] = true
      },
      // The process has left.
      () => {},
    )
  }

  async #flush(): Promise<void> {
    this.#flushes++
    this.#now++
    await this.#erase()
    for (const [key, left, value] of this.#saved) await this.#redis.call('RESTORE', key, left, value, 'REPLACE')
    if (this.#options.crashes) this.#connect()
    for (const i of PROCESSES) {
      this.#looks[i] = false
      this.#hasLooked[i] = false
    }
  }

  /** Every process begins to look. */
  #pass(isCounted = false): void {
    if (isCounted) this.#seconds++
    this.#now += SECOND_MS
    for (const i of PROCESSES) if (this.#gate(i).size === 0) this.#looks[i] = true
    vi.advanceTimersByTime(SECOND_MS)
  }

  async #goOn(i: number): Promise<void> {
    this.#now++
    const couldKnow = this.#deed === 'done' && this.#flushes === 0
    await this.#gate(i).goOn()
    if (this.#gate(i).size > 0) return
    if (this.#looks[i]) {
      this.#hasLooked[i] = true
      if (couldKnow) this.#knows[i] = true
    }
    this.#looks[i] = false
  }

  async #all(): Promise<void> {
    for (let idle = 0; idle < 3; ) {
      await quiet(8)
      const waiting = PROCESSES.filter((i) => this.#gate(i).size > 0)
      idle = waiting.length === 0 ? idle + 1 : 0
      for (const i of waiting) await this.#gate(i).goOn()
    }
  }

  #leave(): void {
    this.#hasLeft = true
    this.#stores[1]?.close().catch(() => {})
  }

  async #isBlocked(): Promise<boolean> {
    for (const key of await this.#keys()) {
      if (key.endsWith(':block')) return true
      if (!key.endsWith(':index')) continue
      const entries = (await this.#redis.call('HGETALL', key)) as string[]
      if (entries.some((value, n) => n % 2 === 1 && /^\d+ \d+ \d+ 0 /.test(value))) return true
    }
    return false
  }

  async #isNamed(): Promise<boolean> {
    for (const key of await this.#keys()) {
      if (key.includes('key=k')) return true
      const fields = key.endsWith(':index') ? ((await this.#redis.call('HKEYS', key)) as string[]) : []
      if (fields.some((field) => field.includes('key=k'))) return true
    }
    return false
  }

  async #keys(): Promise<string[]> {
    return (await this.#redis.call('KEYS', `${this.#prefix}*`)) as string[]
  }

  async #erase(): Promise<void> {
    const keys = await this.#keys()
    if (keys.length > 0) await this.#redis.call('DEL', ...keys)
  }
}
