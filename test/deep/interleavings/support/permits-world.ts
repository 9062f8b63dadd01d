import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { concurrency, createLimiter, type Limiter, memoryStore, releasePermits } from '@sluice/core'
import { holdPermitsUntil } from '@sluice/core/http'
import { Permits } from '../../../support/inside.js'
import type { Step, World } from './explore.js'

/** Half a `ttl`, with one tick: permits are renewed every third of a `ttl`, so this is the slowest renewal. */
const HALF_MS = 500
const TTL_MS = 2 * HALF_MS
const KEY = 'everyone'

export type Event = 'headers' | 'leave' | 'end' | 'resolve' | 'release'

export interface PermitsOptions {
  /** The possible events of the one request that holds a permit, in any order. */
  readonly events: readonly Event[]
  /** Whether the framework exposes the promise of its handler. */
  readonly showsPromise: boolean
  /** The number of times that half a `ttl` passes. */
  readonly halves: number
}

/** One request with a permit, whose client, handler and clock act in any order. */
export class PermitsWorld implements World {
  readonly #options: PermitsOptions
  readonly #limiter: Limiter
  readonly #permits: InstanceType<typeof Permits>
  readonly #response: ServerResponse
  /** The instant of the event, by the clock. */
  readonly #taken = new Map<Event, number>()
  #resolve = () => {}
  #now = 1e12
  #halves: number
  /** The instant until which the permit should be held, by the clock. */
  #until: number
  readonly #ready: Promise<void>

  constructor(options: PermitsOptions) {
    this.#options = options
    this.#halves = options.halves
    this.#limiter = createLimiter({
      name: 'permits',
      store: memoryStore({ clock: () => this.#now }),
      limits: [concurrency({ limit: 1, ttl: TTL_MS })],
    })
    this.#permits = new Permits(this.#limiter, { shortestTtlMs: 2 ** 40, longestTtlMs: TTL_MS, maxHoldMs: 2 ** 40 })
    this.#response = new ServerResponse(new IncomingMessage(new Socket()))
    this.#response.on('error', () => {})
    this.#until = this.#now + TTL_MS
    this.#ready = this.#begin()
  }

  async #begin(): Promise<void> {
    const verdict = await this.#limiter.consume(KEY)
    this.#permits.hold(verdict, this.#response)
    if (!this.#options.showsPromise) return
    holdPermitsUntil(
      this.#response,
      new Promise<void>((resolve) => {
        this.#resolve = resolve
      }),
    )
  }

  steps(): Step[] {
    const steps: Step[] = this.#options.events
      .filter((event) => !this.#taken.has(event))
      // A response begins once.
      .filter((event) => event !== 'headers' || !this.#response.headersSent)
      .map((event) => ({ name: event, take: () => this.#take(event) }))
    if (this.#halves > 0 && steps.length > 0) {
      steps.push({ name: `${HALF_MS} ms pass`, take: () => this.#pass() })
    }
    return steps
  }

  state(): string {
    return `${[...this.#taken].join()} ${this.#halves} ${this.#until}`
  }

  async check(): Promise<void> {
    await this.#ready
    const held = this.#until > this.#now ? 1 : 0
    const { remaining } = await this.#limiter.peek(KEY)
    if (remaining !== 1 - held) throw new Error(`${remaining} permits are free, and ${held} should be held`)
  }

  /** Another request takes the permit as soon as the first one loses it, and holds it. */
  async end(): Promise<void> {
    if (!this.#taken.has('leave') && !this.#taken.has('end')) this.#take('leave')
    this.#now += TTL_MS
    if (!(await this.#limiter.consume(KEY)).allowed) throw new Error('the permit is held for longer than ttl')
    this.#resolve()
    this.#response.end()
    await releasePermits(this.#response)
    if ((await this.#limiter.peek(KEY)).remaining !== 0) throw new Error("another request's permit was released")
  }

  #take(event: Event): unknown {
    const hasLeft = this.#taken.has('leave')
    const hasBegun = this.#response.headersSent
    this.#taken.set(event, this.#now)
    switch (event) {
      case 'headers':
        // A framework that exposes the promise gives more information.
        if (hasLeft && !this.#options.showsPromise) this.#until = 0
        return this.#response.writeHead(200)
      case 'end':
        if (!this.#taken.has('leave') || !this.#options.showsPromise) this.#until = 0
        this.#response.end()
        // Without a socket, the test emits the events of Node.
        return hasLeft || this.#response.emit('finish')
      case 'leave':
        if (hasBegun || (this.#options.showsPromise && this.#taken.has('resolve'))) this.#until = 0
        this.#response.destroyed = true
        return this.#response.emit('close')
      case 'resolve':
        if (hasLeft) this.#until = 0
        return this.#resolve()
      case 'release':
        this.#until = 0
        return releasePermits(this.#response)
    }
  }

  #pass(): void {
    this.#halves--
    this.#now += HALF_MS
    this.#permits.tick()
    if (this.#until > this.#now && !this.#taken.has('leave')) this.#until = this.#now + TTL_MS
  }
}
