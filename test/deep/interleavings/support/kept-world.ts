import {
  type ChargeOutcome,
  createLimiter,
  fixedWindow,
  keyed,
  type Limit,
  type Limiter,
  memoryStore,
  type Store,
} from '@sluice/core'
import { KEPT_CHARGES, type Plan, type StoreRequest, type StoreResult } from '@sluice/core/store'
import { decideAcrossSlots } from '../../../support/inside.js'
import { quiet, type Step, type World } from './explore.js'
import { Network } from './network.js'

const LIMIT = 100
/** Units of the charge, and those of other charges, which nothing may give back. */
const OWN = 4
const OTHERS = 3
const KEEP_MS = 1000

/** A change of the one charge by its id. */
export type Deed = 'refund' | { readonly settle: number }

export interface KeptOptions {
  /** The number of slots on which the charge is. */
  readonly slots: number
  /** The changes of each process, one after the other. Each is repeated until it succeeds. */
  readonly processes: readonly (readonly Deed[])[]
  /** Whether reads of records are calls that may fail or come late, too. They change nothing. @default false */
  readonly readsByNetwork?: boolean
  /** Whether a third process resets the identity of the first slot. */
  readonly resets?: boolean
  /** Whether the id ends at some moment. */
  readonly ends?: boolean
  /** The number of calls that may fail. @default 0 */
  readonly faults?: number
  /** A store for each slot, which reads the given clock. @default in memory */
  readonly storeOf?: (slot: number, clock: () => number) => Store
}

/** The state of the charge on one slot. */
interface Part {
  used: number
  /** Whether a change has taken it. */
  isTaken: boolean
  isReset: boolean
}

interface Done {
  readonly name: string
  readonly deed: Deed
  outcome: ChargeOutcome | undefined
  tries: number
}

/** One kept charge on one or several slots, which processes change by its id. Any call to any slot, and any reply, may come at any time. */
export class KeptWorld implements World {
  readonly #options: KeptOptions
  readonly #network: Network
  readonly #stores: readonly Store[]
  readonly #limits: readonly Limit<string>[]
  readonly #parts: readonly Part[]
  readonly #done: Done[] = []
  #id = ''
  #now = 1e12
  #isOver = false
  /** Reads under way that no step decides. */
  #reads = 0
  #broken: unknown
  #observer: Limiter | undefined

  private constructor(options: KeptOptions) {
    this.#options = options
    this.#network = new Network(options)
    const { storeOf = (_, clock) => memoryStore({ clock }) } = options
    const slots = Array.from({ length: options.slots }, (_, slot) => slot)
    // The clocks of all slots differ.
    this.#stores = slots.map((slot) => storeOf(slot, () => this.#now + slot * 12_345))
    this.#limits = slots.map((slot) =>
      fixedWindow({ limit: LIMIT, window: '1h', unit: 'tokens', key: keyed(`kind-${slot}`, (key: string) => key) }),
    )
    this.#parts = slots.map(() => ({ used: OTHERS + OWN, isTaken: false, isReset: false }))
  }

  /** A world in which the charge is made. */
  static async make(options: KeptOptions): Promise<KeptWorld> {
    const world = new KeptWorld(options)
    const limiter = world.#limiterOf((request, slot) => (world.#stores[slot] as Store).decide(request))
    const key = 'ann'
    await limiter.consume(key, { cost: { tokens: OTHERS } })
    const { id } = await limiter.consume(key, { cost: { tokens: OWN } })
    world.#id = id as string
    for (const [p, deeds] of options.processes.entries()) {
      world.#live(`process ${p + 1}`, deeds).catch((error) => {
        world.#broken = error
      })
    }
    if (options.resets) {
      world.#network.call('admin', 'slot 1', 'reset', () => world.#reset()).catch(() => {})
    }
    return world
  }

  steps(): Step[] {
    const steps = this.#network.steps()
    if (this.#options.ends && !this.#isOver && steps.length > 0) {
      steps.push({ name: 'the id ends', take: () => this.#end() })
    }
    return steps
  }

  state(): string {
    return this.#network.state()
  }

  async quiet(): Promise<void> {
    do await quiet(2)
    while (this.#reads > 0)
  }

  async check(): Promise<void> {
    if (this.#broken) throw this.#broken
    const used = await this.#used()
    const expected = this.#parts.map((part) => part.used)
    if (used.join() !== expected.join()) throw new Error(`expected ${expected} units to be used, got ${used}`)
  }

  async end(): Promise<void> {
    for (const { name, deed, outcome } of this.#done) {
      if (outcome === undefined) throw new Error(`${name} has no outcome`)
      // Whatever was lost before, each part is taken once a change has succeeded, unless nothing may be changed.
      const isOpen = this.#parts.some(({ isTaken, isReset }) => !isTaken && !isReset)
      if (isOpen && !this.#isOver) throw new Error(`${name}: ${JSON.stringify(deed)} is ${outcome}, and a part is open`)
      if (outcome === 'unknown' && !this.#isOver && !this.#parts.every(({ isReset }) => isReset)) {
        throw new Error(`${name} does not know a charge that is there`)
      }
    }
    const firsts = this.#done.filter(({ outcome }) => outcome === 'done').length
    if (firsts > 1 && this.#options.slots === 1) throw new Error(`${firsts} changes of one part are done`)
    await this.check()
  }

  async close(): Promise<void> {
    for (const store of this.#stores) await store.close()
  }

  async #live(process: string, deeds: readonly Deed[]): Promise<void> {
    for (const [i, deed] of deeds.entries()) {
      const done: Done = { name: `${process}, change ${i + 1}`, deed, outcome: undefined, tries: 0 }
      this.#done.push(done)
      while (done.outcome === undefined) await this.#try(process, done)
    }
  }

  async #try(process: string, done: Done): Promise<void> {
    const name = `${done.name}, try ${++done.tries}`
    const call = <T>(slot: number, what: string, run: () => T) =>
      this.#network.call(process, `slot ${slot + 1}`, `${name}: ${what} on slot ${slot + 1}`, run)
    const limiter = this.#limiterOf(
      (request, slot) => call(slot, `op ${request.op}`, () => this.#change(request, slot)),
      (slot) => {
        const read = async () => (await this.#stores[slot]?.[KEPT_CHARGES]?.find('kept', this.#id)) ?? []
        return this.#options.readsByNetwork ? call(slot, 'read', read) : this.#counted(read)
      },
    )
    try {
      const { deed } = done
      done.outcome = await (deed === 'refund'
        ? limiter.refund(this.#id)
        : limiter.settle(this.#id, { tokens: deed.settle }))
    } catch (error) {
      if (!/: (lost|late|unreported)$/.test(String(error))) throw error
    }
  }

  async #counted<T>(read: () => Promise<T>): Promise<T> {
    this.#reads++
    return read().finally(() => this.#reads--)
  }

  /** Executes a change of one part, and compares its outcome with the one that the history of the slot requires. */
  async #change(request: StoreRequest, slot: number): Promise<StoreResult> {
    const part = this.#parts[slot] as Part
    const { isTaken, isReset } = part
    const result = await (this.#stores[slot] as Store).decide(request)
    const expected = this.#isOver || isReset ? 'unknown' : isTaken ? 'done before' : 'done'
    if (result.outcome !== expected) {
      this.#broken = new Error(`a change on slot ${slot + 1} is ${result.outcome}, expected ${expected}`)
    }
    if (expected === 'done') {
      part.isTaken = true
      const isDebit = request.charge !== undefined && request.op === DEBIT
      part.used += isDebit ? (request.costs[0] as number) : -(request.costs[0] as number)
    }
    return result
  }

  async #reset(): Promise<void> {
    const part = this.#parts[0] as Part
    const [store] = this.#stores as [Store]
    await store.reset(await this.#planOf(store), ['kind-0=ann'])
    part.isReset = true
    part.used = 0
  }

  /** The plan of the charge on a store, as its record has it. */
  async #planOf(store: Store): Promise<Plan> {
    const [charge] = (await store[KEPT_CHARGES]?.find('kept', this.#id)) ?? []
    if (!charge) throw new Error('expected the record of the charge')
    const { plan, keep } = charge.request
    return { ...plan, keeps: keep }
  }

  #end(): void {
    this.#isOver = true
    this.#now += KEEP_MS
    for (const slot of this.#stores.keys()) this.#network.note(`slot ${slot + 1}`, 'the id ends')
  }

  async #used(): Promise<number[]> {
    this.#observer ??= this.#limiterOf((request, slot) => (this.#stores[slot] as Store).decide(request))
    const { limits } = await this.#observer.peek('ann', { cost: { tokens: 0 } })
    return limits.map(({ remaining }) => LIMIT - remaining)
  }

  #limiterOf(
    decide: (part: StoreRequest, slot: number) => StoreResult | Promise<StoreResult>,
    read?: (slot: number) => Promise<readonly object[]>,
  ): Limiter {
    const slotOf = (identity: string | undefined) => Number(/^kind-(\d)=/.exec(identity ?? '')?.[1])
    const slots = [...this.#stores.keys()]
    const store = {
      decide: (request: StoreRequest) => {
        const { identities, keep } = request
        if (identities.length === 1) return decide(request, slotOf(identities[0]))
        const named = keep && { ...request, keep: { ...keep, id: keep.id ?? `${'x'.repeat(22)}` } }
        return decideAcrossSlots(named ?? request, slots, async (part, slot) => decide(part, slot))
      },
      [KEPT_CHARGES]: { find: async () => (await Promise.all(slots.map((slot) => read?.(slot) ?? []))).flat() },
    }
    return createLimiter<string>({
      name: 'kept',
      limits: this.#limits,
      charges: { keep: KEEP_MS },
      store: store as unknown as Store,
    })
  }
}

const DEBIT = 6
