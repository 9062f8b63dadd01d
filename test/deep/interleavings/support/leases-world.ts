import { createLimiter, type Limit, type Limiter, memoryStore, type Store, type Verdict } from '@sluice/core'
import type { StoreRequest, StoreResult } from '@sluice/core/store'
import { vi } from 'vitest'
import { CONSUME, Leases, REFUND } from '../../../support/inside.js'
import type { Step, World } from './explore.js'
import { Network } from './network.js'

export interface LeasesOptions {
  /** One limit with a lease. */
  readonly limit: Limit
  readonly units: number
  /** The costs of the requests of each process, in order, after enough requests for leases. */
  readonly requests: readonly (readonly number[])[]
  /** Whether the first process may refund an admission. */
  readonly refunds?: boolean
  /** Whether the first process may reset the key. */
  readonly resets?: boolean
  /** Whether the first process may die, with all its leases. */
  readonly dies?: boolean
  /** The time that passes, and the number of times. */
  readonly passMs?: number
  readonly passes?: number
  /** Whether the sweep of expired leases is a step. */
  readonly sweeps?: boolean
  /** Changes the requests that reach the store. @default unchanged */
  readonly seen?: (ask: StoreRequest) => StoreRequest
  readonly faults?: number
  readonly lateReplies?: boolean
  /** Throws unless the limit holds for these instants of admissions, in order. */
  holds(instants: readonly number[]): void
  /** Whether no charge lapses during the world. */
  readonly lasts?: boolean
}

interface Process {
  readonly name: string
  readonly leases: InstanceType<typeof Leases>
  readonly limiter: Limiter
  requests: readonly number[]
  state: 'open' | 'closing' | 'closed' | 'dead'
  calls: number
  /** The decision of the store behind the current reply, at whose instant its first waiter is admitted. */
  decided: Decided | undefined
}

interface Decided {
  readonly at: number
  /** The number of earlier resets of the key. */
  readonly resets: number
}

interface Admission {
  readonly verdict: Verdict
  readonly process: Process
  readonly at: number
  readonly cost: number
}

const KEY = 'key'
/** The number of requests after which a process takes leases of 2. */
const PRELUDE = 2

/** Processes with leases from one store, with requests, replies, time and ends of processes in any order. */
export class LeasesWorld implements World {
  readonly #options: LeasesOptions
  readonly #network: Network
  readonly #store: Store
  readonly #processes: readonly Process[]
  readonly #decided = new Map<string, Decided>()
  #admissions: Admission[] = []
  #now = 1e12
  #resets = 0
  #passes: number
  #waiting = 0
  #isReady = false
  #isRefunded = false
  #hasReset = false
  #sweeps: number
  #broken: Error | undefined

  constructor(options: LeasesOptions) {
    this.#options = options
    this.#network = new Network({ ...options, inOrder: true })
    this.#passes = options.passes ?? 0
    this.#sweeps = options.sweeps ? 1 : 0
    this.#store = memoryStore({ clock: () => this.#now })
    this.#processes = options.requests.map((requests, i) => this.#process(`process ${i + 1}`, requests))
  }

  /** A world after enough requests for leases. */
  static async make(options: LeasesOptions): Promise<LeasesWorld> {
    const world = new LeasesWorld(options)
    for (const process of world.#processes) for (let n = 0; n < PRELUDE; n++) await world.#ask(process, 1)
    world.#isReady = true
    return world
  }

  steps(): Step[] {
    const steps = this.#network.steps()
    const [first] = this.#processes as [Process]
    for (const process of this.#processes) {
      const { name, requests, state } = process
      if (state !== 'open') continue
      if (requests.length > 0)
        steps.push({ name: `${name} receives a request`, take: () => void this.#askAgain(process) })
      else steps.push({ name: `${name} closes`, take: () => this.#close(process) })
    }
    const { refunds, resets, dies, sweeps, passMs } = this.#options
    const isOpen = first.state === 'open'
    if (refunds && isOpen && !this.#isRefunded && this.#admissions.some(({ process }) => process === first)) {
      steps.push({ name: 'an admission is refunded', take: () => this.#refund(first) })
    }
    if (resets && isOpen && !this.#hasReset) steps.push({ name: 'the key is reset', take: () => this.#reset(first) })
    if (dies && isOpen) steps.push({ name: `${first.name} dies`, take: () => this.#die(first) })
    if (passMs !== undefined && this.#passes > 0 && steps.length > 0) {
      steps.push({ name: `${passMs} ms pass`, take: () => this.#pass(passMs) })
    }
    if (sweeps && this.#sweeps > 0 && isOpen) steps.push({ name: 'leases are looked at', take: () => this.#sweep() })
    return steps
  }

  state(): string {
    return this.#network.state()
  }

  check(): void {
    if (this.#broken) throw this.#broken
    this.#options.holds(this.#admissions.flatMap(({ at, cost }) => new Array(cost).fill(at)).sort((a, b) => a - b))
  }

  /** Every leased unit was spent or refunded, or its reply was lost and it is never spent. */
  async end(): Promise<void> {
    if (this.#waiting > 0) throw new Error(`${this.#waiting} wait for an answer for ever`)
    const { units, limit, lasts, dies, faults } = this.#options
    if (!lasts) return
    const { remaining } = await createLimiter({ name: 'leased', store: this.#store, limits: [limit] }).peek(KEY)
    const charged = units - remaining
    const spent = this.#admissions.reduce((sum, { cost }) => sum + cost, 0)
    const isExact = !faults && !(dies && this.#processes[0]?.state === 'dead')
    if (isExact ? charged !== spent : charged < spent) throw new Error(`${spent} are spent, and ${charged} charged`)
  }

  async close(): Promise<void> {
    vi.clearAllTimers()
    await this.#store.close()
  }

  #process(name: string, requests: readonly number[]): Process {
    const next = { decide: (ask: StoreRequest) => this.#decide(process, ask) }
    const leases = new Leases({ slots: { areOne: () => true }, clock: () => this.#now }, next)
    const store = {
      decide: (ask: StoreRequest) => leases.decide(ask),
      reset: (plan: StoreRequest['plan'], identities: readonly string[]) => {
        leases.change({ kind: 'reset', plan, identities })
        return this.#call(process, 'reset', () => {
          // Admissions from before a reset do not count after it.
          this.#resets++
          this.#admissions = []
          return this.#store.reset(plan, identities)
        })
      },
    } as Partial<Store> as Store
    const limiter = createLimiter({ name: 'leased', store, limits: [this.#options.limit] })
    const process: Process = { name, leases, limiter, requests, state: 'open', calls: 0, decided: undefined }
    return process
  }

  async #decide(process: Process, ask: StoreRequest): Promise<StoreResult> {
    const what = ask.op === CONSUME ? `consume ${ask.costs[0]}` : ask.op === REFUND ? `refund ${ask.costs[0]}` : 'peek'
    const name = `${process.name}: call ${process.calls + 1}, ${what},`
    const answer = await this.#call(
      process,
      what,
      () => this.#store.decide(this.#options.seen?.(ask) ?? ask) as StoreResult,
    )
    if (ask.op === CONSUME) process.decided = this.#decided.get(name)
    return answer
  }

  #call<Answered>(process: Process, what: string, run: () => Answered): Promise<Awaited<Answered>> {
    const name = `${process.name}: call ${++process.calls}, ${what},`
    const running = () => {
      this.#decided.set(name, { at: this.#now, resets: this.#resets })
      return run()
    }
    return this.#isReady
      ? this.#network.call(process.name, 'the store', name, running)
      : (Promise.resolve(running()) as Promise<Awaited<Answered>>)
  }

  async #ask(process: Process, cost: number): Promise<void> {
    process.decided = undefined
    const wasReset = this.#hasReset
    const verdict = await process.limiter.consume(KEY, { cost })
    // A decision from before a reset by a lease from before it counts as admitted before the reset.
    const { at, resets } = process.decided ?? { at: this.#now, resets: wasReset ? this.#resets : 0 }
    process.decided = undefined
    if (verdict.allowed && resets === this.#resets) this.#admissions.push({ verdict, process, at, cost })
  }

  async #askAgain(process: Process): Promise<void> {
    const [cost, ...rest] = process.requests
    process.requests = rest
    this.#network.note(process.name, 'receives a request')
    this.#waiting++
    try {
      await this.#ask(process, cost as number)
    } catch (error) {
      this.#tolerate(error)
    }
    this.#waiting--
  }

  #refund(process: Process): void {
    this.#isRefunded = true
    this.#network.note(process.name, 'refunds')
    const admission = this.#admissions.findLast((one) => one.process === process) as Admission
    this.#admissions = this.#admissions.filter((one) => one !== admission)
    process.limiter.refund(KEY, admission.verdict).catch((error) => this.#tolerate(error))
  }

  #reset(process: Process): void {
    this.#hasReset = true
    this.#network.note(process.name, 'resets')
    process.limiter.reset(KEY).catch((error) => this.#tolerate(error))
  }

  #close(process: Process): void {
    process.state = 'closing'
    this.#network.note(process.name, 'closes')
    process.leases.close().then(
      () => {
        process.state = 'closed'
      },
      (error) => this.#tolerate(error),
    )
  }

  #die(process: Process): void {
    process.state = 'dead'
    this.#network.note(process.name, 'dies')
  }

  #pass(ms: number): void {
    this.#passes--
    this.#now += ms
    for (const place of [...this.#processes.map(({ name }) => name), 'the store'])
      this.#network.note(place, 'time passes')
  }

  #sweep(): void {
    this.#sweeps--
    vi.advanceTimersByTime(100)
    for (const { name } of this.#processes) this.#network.note(name, 'looks for what is over')
  }

  #tolerate(error: unknown): void {
    if (!/(lost|late|unreported)$/.test(String(error))) this.#broken = error as Error
  }
}
