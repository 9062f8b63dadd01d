import { createLimiter, type Limit, type Limiter, memoryStore, type Store, type Verdict } from '@sluice/core'
import { BANS, type StoreRequest, type StoreResult } from '@sluice/core/store'
import { expect } from 'vitest'
import { CHARGE, CONSUME, decideAcrossSlots, REFUND, RELEASE } from '../../../support/inside.js'
import type { Step, World } from './explore.js'
import { type Fate, Network } from './network.js'

const OPS = ['consume', 'peek', 'charge', 'refund', 'release', 'renew']

/** One request, in its own process. */
export interface Request {
  readonly user: string
  readonly cost?: number
  /** The operation after its admission. @default none */
  readonly after?: 'refund' | 'release'
}

export interface SlotsOptions {
  /** One limit per slot, each with its own key function. */
  readonly limits: readonly Limit<Request>[]
  /** The units of each limit. */
  readonly capacities: readonly number[]
  readonly requests: readonly Request[]
  readonly onDeny?: 'none' | 'charge'
  /** The number of calls that may fail. @default 0 */
  readonly faults?: number
  /** Whether replies are separate steps. @default false */
  readonly lateReplies?: boolean
  /** The time until all charges lapse; it passes once, if given. */
  readonly passMs?: number
  /** Whether the user of the first request is blocked at some moment. */
  readonly blocks?: boolean
  /** A store for each slot, which reads the given clock. @default in memory */
  readonly storeOf?: (slot: number, clock: () => number) => Store
  /** The function that decides across slots. @default the one of the store */
  readonly decide?: typeof decideAcrossSlots
}

interface SentRequest {
  readonly name: string
  readonly request: Request
  outcome: 'waits' | 'admitted' | 'refused' | 'failed'
  verdict: Verdict | undefined
  /** Whether it has begun to refund its charges. */
  isLeaving: boolean
}

/** The state of one request on one slot. */
interface Stay {
  readonly sent: SentRequest
  readonly slot: number
  /** Units charged on its admission here, otherwise 0. */
  taken: number
  /** Units charged on its refusal here, otherwise 0. */
  fined: number
  /** Whether time has restored its units. */
  isOver: boolean
  wasBlocked: boolean
  isRefunded: boolean
}

/**
 * Requests that are decided across slots, each slot a separate store with its own clock. Any call to any slot, and any
 * reply, may come at any time.
 */
export class SlotsWorld implements World {
  readonly #options: SlotsOptions
  readonly #network: Network
  readonly #stores: readonly Store[]
  readonly #sent: readonly SentRequest[]
  readonly #stays: Stay[] = []
  #passed = 0
  #isBlocked = false
  #broken: Error | undefined

  constructor(options: SlotsOptions) {
    this.#options = options
    this.#network = new Network(options)
    const { storeOf = (_, clock) => memoryStore({ clock }) } = options
    // The clocks of all slots differ.
    this.#stores = options.limits.map((_, slot) => storeOf(slot, () => 1e12 + slot * 12_345 + this.#passed))
    this.#sent = options.requests.map((request, i) => ({
      name: `request ${i + 1}`,
      request,
      outcome: 'waits',
      verdict: undefined,
      isLeaving: false,
    }))
    for (const sent of this.#sent) {
      for (const slot of this.#stores.keys()) {
        const rest = { taken: 0, fined: 0, isOver: false, wasBlocked: false, isRefunded: false }
        this.#stays.push({ sent, slot, ...rest })
      }
      this.#run(sent).catch((error) => {
        this.#broken = error
      })
    }
    if (options.blocks) {
      const [{ request }] = this.#sent as [SentRequest]
      const block = this.#network.call('admin', 'slot 1', 'block', () => {
        this.#isBlocked = true
        return this.#stores[0]?.[BANS]?.block('across', `user-name=${request.user}`, 1e9, 'scraping')
      })
      // The caller of block() sees the failure; whether the block holds depends on the store.
      block.catch(() => {})
    }
  }

  steps(): Step[] {
    const steps = this.#network.steps()
    const { passMs } = this.#options
    if (passMs !== undefined && this.#passed === 0 && !this.#network.isQuiet) {
      steps.push({ name: `${passMs} ms pass`, take: () => this.#pass(passMs) })
    }
    return steps
  }

  state(): string {
    return this.#network.state()
  }

  check(): void {
    if (this.#broken) throw this.#broken
    for (const [slot, capacity] of this.#options.capacities.entries()) {
      for (const user of new Set(this.#keysOf(slot))) {
        const inside = this.#stays.filter(
          ({ sent, ...stay }) =>
            stay.slot === slot && this.#keyOf(sent.request, slot) === user && this.#isIn(sent, slot) && !stay.isOver,
        )
        const admitted = inside.reduce((sum, { sent }) => sum + (sent.request.cost ?? 1), 0)
        if (admitted > capacity) {
          throw new Error(`limit ${slot + 1} admitted ${admitted} units of ${user} at once, and may admit ${capacity}`)
        }
      }
    }
  }

  async end(): Promise<void> {
    for (const stay of this.#stays) {
      const { sent, slot, wasBlocked } = stay
      const description = `${sent.name}, which is ${sent.outcome}, on slot ${slot + 1}`
      expect(sent.outcome, description).not.toBe('waits')
      if (wasBlocked) expect(sent.outcome, description).not.toBe('admitted')
      // A later fault does not change its refusal.
      if (this.#isDecided(sent)) expect(sent.outcome, `${description}, though all slots decided`).not.toBe('failed')
      if (this.#isUncertain(stay)) continue
      const stays = this.#isIn(sent, slot)
      const isCharged = this.#options.onDeny === 'charge' && this.#isRefusedByLimits(sent)
      const hasPermits = this.#hasPermits(slot)
      if (stays || (isCharged && !hasPermits)) expect(stay.isRefunded, `${description} refunded`).toBe(false)
      else expect(stay.isRefunded ? 0 : stay.taken, `${description} is charged`).toBe(0)
      if (isCharged && !hasPermits)
        expect(stay.taken + stay.fined, `${description} is charged for a refusal`).toBeGreaterThan(0)
      if (!isCharged) expect(stay.fined, `${description} is charged for a refusal`).toBe(0)
    }
    await this.#expectUsed()
  }

  async close(): Promise<void> {
    for (const store of this.#stores) await store.close()
  }

  /** Whether it is admitted here, and has not begun its refund. */
  #isIn({ outcome, isLeaving, request }: SentRequest, slot: number): boolean {
    return outcome === 'admitted' && !(isLeaving && (request.after === 'refund' || this.#hasPermits(slot)))
  }

  /** Whether a call that charges or refunds was lost, so that units may remain. */
  #isUncertain({ sent, slot }: Stay): boolean {
    return OPS.some((op) => this.#network.fate(`${sent.name}: ${op} on slot ${slot + 1}`)?.failed)
  }

  #hasPermits(slot: number): boolean {
    return this.#options.limits[slot]?.algorithm === 'concurrency'
  }

  /** Whether every slot replied. */
  #isDecided(sent: SentRequest): boolean {
    return this.#firstFates(sent).every((fate) => fate?.failed === false)
  }

  #isRefusedByLimits(sent: SentRequest): boolean {
    const isBlocked = this.#firstFates(sent).some((fate) => (fate?.answer as StoreResult | undefined)?.block)
    return sent.outcome !== 'admitted' && this.#isDecided(sent) && !isBlocked
  }

  #firstFates({ name }: SentRequest): (Fate | undefined)[] {
    return this.#stores.map((_, slot) => this.#network.fate(`${name}: consume on slot ${slot + 1}`))
  }

  /** The slots hold exactly the units that were charged and not refunded. */
  async #expectUsed(): Promise<void> {
    const { capacities, requests } = this.#options
    const observer = this.#limiterOn((part, slot) => (this.#stores[slot] as Store).decide(part))
    await this.#stores[0]?.[BANS]?.unblock('across', `user-name=${(requests[0] as Request).user}`)
    for (const request of requests) {
      const { limits } = await observer.peek(request)
      for (const [slot, { remaining }] of limits.entries()) {
        const there = this.#stays.filter(
          (stay) =>
            stay.slot === slot && this.#keyOf(stay.sent.request, slot) === this.#keyOf(request, slot) && !stay.isOver,
        )
        const used = (capacities[slot] as number) - remaining
        const held = units(there.filter(({ isRefunded }) => !isRefunded))
        const fines = there.reduce((sum, { fined }) => sum + fined, 0)
        if (fines === 0) expect(used, `units charged on slot ${slot + 1}`).toBe(held)
        else {
          expect(used, `units charged on slot ${slot + 1}`).toBeGreaterThanOrEqual(held)
          expect(used, `units charged on slot ${slot + 1}`).toBeLessThanOrEqual(held + fines)
        }
      }
    }
  }

  async #run(sent: SentRequest): Promise<void> {
    const { name, request } = sent
    const limiter = this.#limiterOn((part, slot) =>
      this.#network.call(name, `slot ${slot + 1}`, `${name}: ${OPS[part.op]} on slot ${slot + 1}`, () =>
        this.#decideOn(slot, part, sent),
      ),
    )
    try {
      const verdict = await limiter.consume(request, { cost: request.cost ?? 1 })
      sent.verdict = verdict
      sent.outcome = verdict.allowed ? 'admitted' : 'refused'
      if (!verdict.allowed || !request.after) return
      sent.isLeaving = true
      if (request.after === 'refund') await limiter.refund(request, verdict)
      else await limiter.release(verdict)
    } catch (error) {
      if (!/: (lost|late|unreported)$/.test(String(error))) throw error
      if (sent.outcome === 'waits') sent.outcome = 'failed'
    }
  }

  async #decideOn(slot: number, part: StoreRequest, sent: SentRequest): Promise<StoreResult> {
    const answer = await (this.#stores[slot] as Store).decide(part)
    const stay = this.#stays.find((stay) => stay.sent === sent && stay.slot === slot) as Stay
    const hasPermits = part.plan.cells.some(({ kernel }) => kernel === 'concurrency')
    if (part.op === CONSUME || part.op === CHARGE) {
      if (slot === 0 && this.#isBlocked && sent.request.user === this.#options.requests[0]?.user) stay.wasBlocked = true
      if (answer.allowed) stay.taken = part.costs[0] as number
      else if (part.op === CHARGE && !answer.block && !hasPermits) stay.fined = part.costs[0] as number
    }
    if (part.op === REFUND || (part.op === RELEASE && hasPermits)) {
      expect(stay.isRefunded, `${sent.name} had refunded on slot ${slot + 1} already`).toBe(false)
      stay.isRefunded = true
    }
    return answer
  }

  #limiterOn(decide: (part: StoreRequest, slot: number) => StoreResult | Promise<StoreResult>): Limiter<Request> {
    const { decide: across = decideAcrossSlots, limits, onDeny = 'none' } = this.#options
    const slots = limits.map((_, slot) => slot)
    const store = { decide: (ask: StoreRequest) => across(ask, slots, async (part, slot) => decide(part, slot)) }
    return createLimiter<Request>({ name: 'across', limits, onDeny, store: store as unknown as Store })
  }

  #pass(ms: number): void {
    this.#passed += ms
    for (const slot of this.#stores.keys()) this.#network.note(`slot ${slot + 1}`, 'time passes')
    for (const stay of this.#stays) if (stay.taken > 0) stay.isOver = true
  }

  #keyOf(request: Request, slot: number): string {
    return slot === 0 ? request.user : 'all'
  }

  #keysOf(slot: number): string[] {
    return this.#options.requests.map((request) => this.#keyOf(request, slot))
  }
}

function units(stays: readonly Stay[]): number {
  return stays.reduce((sum, { taken }) => sum + taken, 0)
}
