import { concurrency, createLimiter, type Limiter, type RedisClient, type RedisStore, redisStore } from '@sluice/core'
import type { Redis } from 'ioredis'
import { vi } from 'vitest'
import { standIn } from '../../../support/stand-in.js'
import { quiet, type Step, type World } from './explore.js'
import { Network } from './network.js'

export interface BansOptions {
  /** The number of refusals, each of which bans the client when no ban holds. */
  readonly refusals: number
  /** The number of times that the ban may be lifted by hand. @default 0 */
  readonly unblocks?: number
  /** The number of times that this process looks at the index. @default 0 */
  readonly looks?: number
}

const BANNED_MS = 1000
/** Longer than the pause between two looks. */
const LOOK_MS = 1150
const KEY = 'guesser'

let runs = 0

/**
 * One process on a real Redis, whose masters have the client's keys and the index of bans: replies of one may be later
 * than those of the other. Timers and the clock of `performance` have to be faked.
 */
export class BansWorld implements World {
  readonly #redis: Redis
  readonly #options: BansOptions
  readonly #network = new Network({ lateReplies: true, inOrder: true })
  readonly #connected: (() => void)[] = []
  readonly #store: RedisStore
  readonly #limiter: Limiter
  readonly #prefix = `bans-${runs++}:`
  #now = 1e12
  #sent = 0
  #isGone = false
  #refusals = 0
  #looks = 0
  #unblocks = 0
  /** A refusal or an unblock is under way. Two at once have no order, nor have two at one instant. */
  #isBusy = false
  /** When the last ban that a verdict has told of ends. */
  #bannedUntil = 0

  private constructor(redis: Redis, options: BansOptions) {
    this.#redis = redis
    this.#options = options
    this.#store = redisStore(this.#client(), {
      clock: () => this.#now,
      prefix: this.#prefix,
      timeout: '1h',
      denyCache: false,
    })
    this.#limiter = createLimiter({
      name: 'bans',
      store: this.#store,
      limits: [concurrency({ limit: 1, ttl: '365d' })],
      ban: { after: 1, within: '1s', for: [BANNED_MS] },
    })
  }

  static async make(redis: Redis, options: BansOptions): Promise<BansWorld> {
    const world = new BansWorld(redis, options)
    for (const listener of world.#connected) listener()
    const first = world.#limiter.consume(KEY)
    await world.#all()
    await first
    return world
  }

  steps(): Step[] {
    const { refusals, unblocks = 0, looks = 0 } = this.#options
    const steps = this.#network.steps()
    if (!this.#isBusy && this.#refusals < refusals) {
      steps.push({ name: 'a request is refused', take: () => this.#refuse() })
    }
    if (!this.#isBusy && this.#unblocks < unblocks) {
      steps.push({ name: 'the ban is lifted', take: () => this.#unblock() })
    }
    if (this.#bannedUntil > this.#now) steps.push({ name: 'the ban ends', take: () => this.#pass(BANNED_MS) })
    if (this.#looks < looks) steps.push({ name: 'the process looks', take: () => this.#look() })
    return steps
  }

  state(): string {
    return String(Math.random())
  }

  quiet(): Promise<void> {
    return quiet(8)
  }

  /** Redis might be gone from here on: a ban that holds is known. */
  check(): void {
    const { known } = this.#store.blocks
    if (this.#bannedUntil > this.#now && known !== 1) throw new Error(`the ban holds, and ${known} bans are known`)
  }

  /** Without Redis, this process knows exactly the ban that it has told of. */
  async end(): Promise<void> {
    this.#isGone = true
    const { reason } = await this.#limiter.peek(KEY)
    const isBanned = reason === 'banned'
    const shouldBe = this.#bannedUntil > this.#now
    if (isBanned !== shouldBe)
      throw new Error(shouldBe ? 'the ban is forgotten' : 'the ban has ended, and still refuses')
  }

  async close(): Promise<void> {
    this.#isGone = true
    this.#store.close().catch(() => {})
    const keys = (await this.#redis.call('KEYS', `${this.#prefix}*`)) as string[]
    if (keys.length > 0) await this.#redis.call('DEL', ...keys)
  }

  #client(): RedisClient {
    const client = standIn((command, args) => {
      if (this.#isGone) return Promise.reject(new Error('Redis is gone'))
      const master = args.some((arg) => String(arg).endsWith(':index')) ? 'the index' : 'the keys'
      return this.#network.call('the process', master, `${command} ${this.#sent++}`, () =>
        this.#redis.callBuffer(command, ...args),
      )
    })
    return Object.assign(client, {
      call: async () => '',
      on: (event: string, listener: () => void) => {
        if (event === 'ready') this.#connected.push(listener)
        return client
      },
    })
  }

  async #all(): Promise<void> {
    for (let idle = 0; idle < 3; ) {
      await quiet(8)
      const [step] = this.#network.steps()
      idle = step ? 0 : idle + 1
      await step?.take()
    }
  }

  #refuse(): void {
    this.#refusals++
    this.#now++
    this.#isBusy = true
    this.#limiter.consume(KEY).then(
      ({ ban }) => {
        this.#isBusy = false
        this.#bannedUntil = ban?.until ?? 0
      },
      () => {},
    )
  }

  #unblock(): void {
    this.#unblocks++
    this.#now++
    this.#isBusy = true
    this.#bannedUntil = 0
    this.#limiter.unblock(KEY).then(
      () => {
        this.#isBusy = false
      },
      () => {},
    )
  }

  #look(): void {
    this.#looks++
    this.#pass(LOOK_MS)
  }

  #pass(ms: number): void {
    this.#now += ms
    vi.advanceTimersByTime(ms)
  }
}
