import { createLimiter, type Limit, type Limiter, memoryStore, type Store, type Verdict } from '@sluice/core'
import type { StoreRequest, StoreResult } from '@sluice/core/store'
import { vi } from 'vitest'
import { CONSUME, makeLimiter, PEEK, QUEUES, REFUND } from '../../../support/inside.js'
import type { Step, World } from './explore.js'
import { Network } from './network.js'

export interface Waiter {
  readonly maxWait?: number
  /** Whether it may leave before it is admitted. */
  readonly leaves?: boolean
}

export interface WaitersOptions {
  readonly limit: Limit
  /** Units taken before any request waits, each of which may be refunded at any moment. */
  readonly taken: number
  readonly waiters: readonly Waiter[]
  /** The number of calls to the store that may fail. @default 0 */
  readonly faults?: number
  /** The number of times that time may advance to the next timer during calls. @default 0 */
  readonly slow?: number
}

interface Waiting {
  readonly name: string
  readonly waiter: Waiter
  readonly leaving: AbortController
  outcome: 'away' | 'waits' | 'admitted' | 'left' | 'gave up' | 'failed'
  times: number
}

const KEY = 'key'

/** A request that still waits after this many timers, with no call pending, waits for ever. */
const PATIENCE = 10

/**
 * Waiters for one limit in one process, on a store that replies at any moment. Waiters come in order and leave at any
 * moment, units are refunded, and time passes. Timers have to be faked.
 */
export class WaitersWorld implements World {
  readonly #options: WaitersOptions
  readonly #network: Network
  readonly #store: Store
  readonly #limiter: Limiter
  readonly #engine: ReturnType<typeof makeLimiter>['engine']
  readonly #waiting: readonly Waiting[]
  readonly #start = performance.now()
  /** Charges by the call that reported them, and charges that were refunded. */
  readonly #charges = new Set<StoreResult>()
  readonly #refunded = new Set<StoreResult>()
  /** Every call, by its name. */
  readonly #requests = new Map<string, StoreRequest>()
  #held: Verdict[] = []
  #slow: number
  #moments = 0
  #calls = 0
  #broken: Error | undefined
  #isReady = false

  constructor(options: WaitersOptions) {
    this.#options = options
    this.#network = new Network({ ...options, lateReplies: true })
    this.#slow = options.slow ?? 0
    this.#store = memoryStore({ clock: () => 1e12 + Math.floor(performance.now() - this.#start) })
    const { limiter, engine } = makeLimiter({
      name: 'waiters',
      store: { decide: (ask: StoreRequest) => this.#decide(ask) } as Partial<Store> as Store,
      limits: [options.limit],
    })
    this.#limiter = limiter
    this.#engine = engine
    this.#waiting = options.waiters.map((waiter, i) => ({
      name: `waiter ${i + 1}`,
      waiter,
      leaving: new AbortController(),
      outcome: 'away',
      times: 0,
    }))
  }

  /** A world whose initial units are charged. */
  static async make(options: WaitersOptions): Promise<WaitersWorld> {
    const world = new WaitersWorld(options)
    for (let n = 0; n < options.taken; n++) world.#held.push(await world.#limiter.consume(KEY))
    world.#isReady = true
    return world
  }

  steps(): Step[] {
    const steps = this.#network.steps()
    const next = this.#waiting.find(({ outcome }) => outcome === 'away')
    if (next) steps.push({ name: `${next.name} comes`, take: () => this.#come(next) })
    for (const waiting of this.#waiting) {
      if (waiting.waiter.leaves && waiting.outcome === 'waits' && !waiting.leaving.signal.aborted) {
        steps.push({ name: `${waiting.name} leaves`, take: () => this.#leave(waiting) })
      }
    }
    if (this.#held.length > 0 && this.#isAnyWaiting()) {
      steps.push({ name: 'a refund', take: () => this.#refund() })
    }
    if (this.#isAnyWaiting() && (this.#network.isQuiet ? this.#moments < PATIENCE : this.#slow > 0)) {
      steps.push({ name: 'time goes on', take: () => this.#goOn() })
    }
    return steps
  }

  state(): string {
    return this.#network.state()
  }

  async check(): Promise<void> {
    if (this.#broken) throw this.#broken
    const twice = this.#waiting.find(({ times }) => times > 1)
    if (twice) throw new Error(`${twice.name} has ${twice.times} outcomes`)
    // The outcome of a refund without a reply is unknown.
    const isKnown = ![...this.#requests].some(([name, { op }]) => op === REFUND && this.#network.fate(name)?.failed)
    if (isKnown && this.#isAnyWaiting() && this.#network.isQuiet && (await this.#hasRoom())) {
      throw new Error('there is room, and those who wait for it sleep')
    }
  }

  end(): void {
    const starved = this.#waiting.find(({ outcome }) => outcome === 'waits')
    if (starved) throw new Error(`${starved.name} starves`)
    if (this.#engine.parts.get(QUEUES)?.areAny) throw new Error('a queue without waiters is left')
    const admitted = this.#waiting.filter(({ outcome }) => outcome === 'admitted').length
    const charged = this.#charges.size - this.#refunded.size - this.#strayed()
    if (charged !== admitted + this.#held.length) {
      throw new Error(`${admitted + this.#held.length} are admitted, and ${charged} charged`)
    }
  }

  async close(): Promise<void> {
    await this.#store.close()
    vi.clearAllTimers()
  }

  #isAnyWaiting(): boolean {
    return this.#waiting.some(({ outcome }) => outcome === 'waits')
  }

  async #hasRoom(): Promise<boolean> {
    return (await createLimiter({ name: 'waiters', store: this.#store, limits: [this.#options.limit] }).peek(KEY))
      .allowed
  }

  #come(waiting: Waiting): void {
    this.#network.note('the process', `${waiting.name} comes`)
    waiting.outcome = 'waits'
    const { maxWait } = waiting.waiter
    const finish = (outcome: Waiting['outcome']) => {
      waiting.outcome = outcome
      waiting.times++
    }
    this.#limiter.acquire(KEY, { signal: waiting.leaving.signal, ...(maxWait !== undefined && { maxWait }) }).then(
      (verdict) => {
        if (!verdict.allowed || verdict.cost !== 1) this.#broken = new Error(`${waiting.name} is served a refusal`)
        finish('admitted')
      },
      (error: Error & { code?: string }) => {
        if (error.message === 'left') finish('left')
        else if (error.code === 'WAIT_EXCEEDED' && maxWait !== undefined) finish('gave up')
        else if (/(lost|late|unreported)$/.test(error.message)) finish('failed')
        else this.#broken = error
      },
    )
  }

  #leave(waiting: Waiting): void {
    this.#network.note('the process', `${waiting.name} leaves`)
    waiting.leaving.abort(new Error('left'))
  }

  #refund(): void {
    this.#network.note('the process', 'a refund')
    const verdict = this.#held.pop() as Verdict
    this.#limiter.refund(KEY, verdict).catch(() => {})
  }

  #goOn(): void {
    if (this.#network.isQuiet) this.#moments++
    else this.#slow--
    this.#network.note('the process', 'time goes on')
    this.#network.note('the store', 'time goes on')
    vi.advanceTimersToNextTimer()
  }

  #decide(ask: StoreRequest): Promise<StoreResult> {
    const run = async () => {
      const answer = await withoutTimers(() => this.#store.decide(ask))
      if (ask.op === CONSUME && answer.allowed) this.#charges.add(answer)
      if (ask.op === REFUND) {
        const charge = ask.charge as StoreResult
        if (this.#refunded.has(charge)) throw new Error('refunded twice')
        this.#refunded.add(charge)
      }
      return answer
    }
    if (!this.#isReady) return run()
    const op = ask.op === PEEK ? 'peek' : ask.op === REFUND ? 'refund' : 'consume'
    const name = `call ${++this.#calls}, a ${op},`
    this.#requests.set(name, ask)
    return this.#network.call('the process', 'the store', name, run)
  }

  /** Charges whose reply or refund was lost. */
  #strayed(): number {
    let strayed = 0
    for (const [name, { op }] of this.#requests) {
      const fate = this.#network.fate(name)
      if (!fate?.failed) continue
      const isCharged = op === CONSUME && fate.ran && (fate.answer as StoreResult).allowed
      if (isCharged || (op === REFUND && !fate.ran)) strayed++
    }
    return strayed
  }
}

/** Advances time to the next timer of a waiter; timers with which a store drops ended states would come between. */
function withoutTimers<T>(decide: () => T): T {
  const { setTimeout } = globalThis
  globalThis.setTimeout = (() => ({ unref: () => ({}) })) as unknown as typeof setTimeout
  try {
    return decide()
  } finally {
    globalThis.setTimeout = setTimeout
  }
}
