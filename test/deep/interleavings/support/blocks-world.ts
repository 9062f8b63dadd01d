import { createLimiter, type Limiter, type RedisClient, redisStore, type Store, type Verdict } from '@sluice/core'
import type { Redis } from 'ioredis'
import { vi } from 'vitest'
import { standIn } from '../../../support/stand-in.js'
import { quiet, type Step, type World } from './explore.js'
import { Network } from './network.js'

const LIMIT = 100
const BLOCKED_MS = 60_000

/** The operations of the stores, each in this order, and the events between them. */
export interface BlocksOptions {
  /** The number of decisions of the first store. */
  readonly decisions: number
  /** The number of decisions of the second store, which also blocks. */
  readonly beside?: number
  /** The operations of the second store on the key. */
  readonly deeds: readonly ('block' | 'unblock')[]
  /** Whether blocks may end by time. */
  readonly ends?: boolean
  /** Whether more time may pass than a store remembers a block. */
  readonly forgets?: boolean
  /** Whether Redis may lose its scripts. */
  readonly losesScripts?: boolean
  /** Whether Redis loses the marker of a block as soon as it is set. */
  readonly losesMarker?: boolean
  /** The number of commands that may fail. @default 0 */
  readonly faults?: number
}

interface Decision {
  readonly name: string
  /** Whether the block held at every moment since its request, and at none. */
  always: boolean
  never: boolean
  verdict: Verdict | Error | undefined
}

let runs = 0

/**
 * Two stores on one real Redis, each on a connection in order. The world decides when a command reaches Redis, and when
 * its reply comes back. The clock of `performance` has to be faked.
 */
export class BlocksWorld implements World {
  readonly #options: BlocksOptions
  readonly #redis: Redis
  readonly #network: Network
  readonly #stores: readonly Store[]
  readonly #limiters: readonly Limiter[]
  readonly #decisions: Decision[] = []
  readonly #requested = [0, 0]
  /** Worlds share a server, so each has its own keys. */
  readonly #prefix = `world-${runs++}:`
  #now = 1e12
  #deeds = 0
  /** The commands that Redis has executed, in order. */
  #blockedUntil = 0
  #isForgotten = false
  #hasLostScripts = false
  #sent = 0

  constructor(redis: Redis, options: BlocksOptions) {
    this.#redis = redis
    this.#options = options
    this.#network = new Network({ ...options, lateReplies: true, inOrder: true })
    this.#stores = [0, 1].map((i) =>
      redisStore(this.#client(i), { clock: () => this.#now, prefix: this.#prefix, timeout: '1h' }),
    )
    this.#limiters = this.#stores.map((store) => createLimiter({ name: 'blocks', store, limit: LIMIT, window: '1h' }))
  }

  /** A world whose Redis knows the scripts; otherwise the second sending of a script would be random. */
  static async make(redis: Redis, options: BlocksOptions): Promise<BlocksWorld> {
    const world = new BlocksWorld(redis, options)
    const store = redisStore(world.#passing(), { clock: () => world.#now, prefix: 'warm-up:', timeout: '1h' })
    const limiter = createLimiter({ name: 'blocks', store, limit: LIMIT, window: '1h' })
    await limiter.consume('k')
    await limiter.block('k', { for: 1 })
    return world
  }

  steps(): Step[] {
    const steps = this.#network.steps()
    const { decisions, beside = 0, deeds, ends, forgets, losesScripts } = this.#options
    for (const [i, most] of [decisions, beside].entries()) {
      const made = this.#requested[i] as number
      if (made < most) steps.push({ name: `store ${i + 1} receives a request`, take: () => this.#ask(i) })
    }
    const deed = deeds[this.#deeds]
    if (deed) steps.push({ name: `store 2 is to ${deed}`, take: () => this.#do(deed) })
    if (ends && this.#isHeld()) steps.push({ name: 'the block ends', take: () => this.#end() })
    if (forgets && !this.#isForgotten) steps.push({ name: 'a second passes', take: () => this.#forget() })
    if (losesScripts && !this.#hasLostScripts && steps.length > 0) {
      steps.push({ name: 'Redis loses its scripts', take: () => this.#loseScripts() })
    }
    return steps
  }

  state(): string {
    return this.#network.state()
  }

  async quiet(): Promise<void> {
    // Batches are sent at the end of a turn.
    await quiet(2)
    for (const decision of this.#decisions) {
      if (decision.verdict !== undefined) continue
      if (this.#isHeld()) decision.never = false
      else decision.always = false
    }
  }

  check(): void {
    for (const decision of this.#decisions) if (decision.verdict !== undefined) expectTrue(decision)
  }

  async end(): Promise<void> {
    const undecided = this.#decisions.find(({ verdict }) => verdict === undefined)
    if (undecided) throw new Error(`${undecided.name} has no verdict`)
    const failed = this.#decisions.filter(({ verdict }) => isFailure(verdict)).length
    const admitted = this.#decisions.filter(({ verdict }) => !isFailure(verdict) && (verdict as Verdict).allowed).length
    const charged = await this.#charged()
    if (charged < admitted || charged > admitted + failed) {
      throw new Error(`${admitted} are admitted, ${failed} failed, and ${charged} charged`)
    }
  }

  async close(): Promise<void> {
    // Pending commands receive no reply.
    for (const store of this.#stores) store.close().catch(() => {})
    const keys = (await this.#redis.call('KEYS', `${this.#prefix}*`)) as string[]
    if (keys.length > 0) await this.#redis.call('DEL', ...keys)
  }

  /** Its commands wait until the world sends them. */
  #client(i: number): RedisClient {
    const name = `store ${i + 1}`
    return standIn((command, args) => {
      const call = `command ${++this.#sent} of ${name}, ${command},`
      return this.#network.call(name, 'Redis', call, () => this.#run(command, args))
    })
  }

  async #run(command: string, args: readonly string[]): Promise<unknown> {
    const reply = await this.#redis.callBuffer(command, ...args)
    // A change of the index of blocks states its operation, after the time.
    const change = /^EVAL/.test(command) ? args.at(-5) : undefined
    const isBlocking = change === 'BLOCK'
    if (isBlocking) this.#blockedUntil = Number(args.at(-9)) + BLOCKED_MS
    if (isBlocking && this.#options.losesMarker) await this.#redis.call('DEL', `${this.#prefix}v1:blocked`)
    if (change === 'END') this.#blockedUntil = 0
    return reply
  }

  #isHeld(): boolean {
    return this.#blockedUntil > this.#now
  }

  #ask(i: number): void {
    const n = ++(this.#requested as [number, number])[i as 0 | 1]
    const name = `decision ${n} of store ${i + 1}`
    this.#network.note(`store ${i + 1}`, name)
    const isHeld = this.#isHeld()
    const decision: Decision = { name, always: isHeld, never: !isHeld, verdict: undefined }
    this.#decisions.push(decision)
    this.#limiters[i]?.consume('k').then(
      (verdict) => {
        decision.verdict = verdict
      },
      (error: Error) => {
        decision.verdict = error
      },
    )
  }

  #do(deed: 'block' | 'unblock'): void {
    this.#deeds++
    this.#network.note('store 2', deed)
    const [, limiter] = this.#limiters as [Limiter, Limiter]
    const done = deed === 'block' ? limiter.block('k', { for: BLOCKED_MS, reason: 'scraping' }) : limiter.unblock('k')
    done.catch(() => {})
  }

  #end(): void {
    this.#now += BLOCKED_MS
    this.#everywhere('the block ends')
  }

  #forget(): void {
    this.#isForgotten = true
    vi.advanceTimersByTime(1001)
    this.#everywhere('a second passes')
  }

  async #loseScripts(): Promise<void> {
    this.#hasLostScripts = true
    this.#network.note('Redis', 'loses its scripts')
    await this.#redis.call('SCRIPT', 'FLUSH')
  }

  #everywhere(what: string): void {
    for (const place of ['store 1', 'store 2', 'Redis']) this.#network.note(place, what)
  }

  async #charged(): Promise<number> {
    const reader = redisStore(this.#passing(), { clock: () => this.#now, prefix: this.#prefix, timeout: '1h' })
    const limiter = createLimiter({ name: 'blocks', store: reader, limit: LIMIT, window: '1h' })
    await limiter.unblock('k')
    return LIMIT - (await limiter.peek('k')).remaining
  }

  #passing(): RedisClient {
    return standIn((command, args) => this.#redis.callBuffer(command, ...args))
  }
}

function expectTrue({ name, always, never, verdict }: Decision): void {
  if (isFailure(verdict)) return
  const isBlocked = (verdict as Verdict).reason === 'blocked'
  if (always && !isBlocked) throw new Error(`${name} is let through a block that held all the time`)
  if (never && isBlocked) throw new Error(`${name} is blocked, and there was no block`)
}

/** Whether Redis did not decide. */
function isFailure(verdict: Verdict | Error | undefined): boolean {
  return verdict instanceof Error || verdict?.kind !== 'decided'
}
