import { AsyncLocalStorage } from 'node:async_hooks'
import { EventEmitter } from 'node:events'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { memoryStore, type Store } from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import { CONSUME, REFUND, RELEASE, type StoreRequest, type StoreResult } from '@sluice/core/store'
import { policies } from '@sluice/policies'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { contextOf } from '../../support/context.js'
import { byEffort } from '../../support/effort.js'
import { unhandledDuring } from '../../support/process-events.js'
import { withMethod } from '../../support/with-method.js'

// Requests come, wait, leave and end while the document changes. Each charge is attributed to its request.

const NAMES = ['a', 'b', 'c'] as const

const anyPolicy = fc.record({
  isPresent: fc.constantFrom(true, true, true, false),
  algorithm: fc.constantFrom('slidingLog', 'slidingLog', 'fixedWindow', 'gcra', 'concurrency'),
  limit: fc.integer({ min: 0, max: 3 }),
  hasSecond: fc.boolean(),
  key: fc.constantFrom('user', 'user', 'everyone', 'org'),
  hasTiers: fc.boolean(),
  isReported: fc.constantFrom(false, false, false, true),
  /** With options of its own, a policy is decided after those without. */
  isApart: fc.boolean(),
})
type AnyPolicy = typeof anyPolicy extends fc.Arbitrary<infer T> ? T : never
type Document = Readonly<Record<(typeof NAMES)[number], AnyPolicy>>

const pause = fc.nat(3)
const anyStep = fc.oneof(
  { weight: 4, arbitrary: fc.record({ what: fc.constant('come'), user: fc.constantFrom('ann', 'bob'), pause }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constant('leave'), which: fc.nat(20), pause }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constant('end'), which: fc.nat(20), pause }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constant('upgrade'), pause }) },
  {
    weight: 2,
    arbitrary: fc.record({ what: fc.constant('change'), name: fc.constantFrom(...NAMES), policy: anyPolicy, pause }),
  },
)
type AnyStep = { what: string; pause: number; user?: string; which?: number; name?: string; policy?: AnyPolicy }

function dataOf({ algorithm, limit, hasSecond, key, hasTiers, isReported, isApart }: AnyPolicy): object {
  const first =
    algorithm === 'concurrency'
      ? { algorithm, limit, ttl: '1h', name: 'one' }
      : { algorithm, limit, window: '1h', name: 'one' }
  const isCounted = hasSecond && algorithm !== 'concurrency'
  const limits = [first, ...(isCounted ? [{ limit: limit + 1, window: '2h', name: 'two' }] : [])]
  const more = limits.map((each) => ({ ...each, limit: each.limit + 1 }))
  return {
    key,
    ...(hasTiers ? { tier: 'plan', tiers: { free: limits, paid: more } } : { limits }),
    respond: { queue: { maxWait: '12h' } },
    ...(isReported && { enforce: { mode: 'report' } }),
    ...(isApart && { deny: { ip: ['203.0.113.0/24'] } }),
  }
}

const textOf = (document: Document) => ({
  version: 1,
  policies: Object.fromEntries(
    NAMES.filter((name) => document[name].isPresent).map((name) => [name, dataOf(document[name])]),
  ),
})

/** A change of a charge, by the request that caused it. */
interface Change {
  readonly request: number | undefined
  readonly policy: string
  readonly limit: string
  readonly isPermit: boolean
  readonly units: number
}

interface Visit {
  readonly response: EventEmitter & { destroyed?: boolean; end: () => void }
  /** The numbers of the documents in force when it came and when it was decided. */
  readonly from: number
  to: number
  isDecided: boolean
  proceeds: boolean
  hasEnded: boolean
  hasLeft: boolean
  done: Promise<void>
}

/** The number of the request that the code runs for. One for all worlds, as each makes every timer and promise slower. */
const ofRequest = new AsyncLocalStorage<number>()

class World {
  readonly changes: Change[] = []
  readonly visits: Visit[] = []
  readonly documents: Document[]
  readonly #held = new Set<string>()
  readonly #napMs: readonly number[]
  #naps = 0
  #tier = 'free'
  #subscriptions = 0
  #guard: ReturnType<typeof createGuard> | undefined
  #reload: (() => Promise<unknown>) | undefined
  #close: (() => Promise<void>) | undefined

  /** `napMs`: how late the store and functions reply, in turn: -1 at once, 0 after a turn of the event loop. None: all at once. */
  constructor(document: Document, napMs: readonly number[]) {
    this.documents = [document]
    this.#napMs = napMs
  }

  get #document(): Document {
    return this.documents.at(-1) as Document
  }

  async start(): Promise<void> {
    const loaded = await policies.from({
      load: () => textOf(this.#document),
      allowShrink: true,
      keys: { user: (request) => (request as { user: string }).user, org: () => 'org' },
      tiers: { plan: () => this.#later(() => this.#tier) },
    })
    const counted = withMethod(loaded, 'onChange', (listener: () => void) => {
      this.#subscriptions++
      const stop = loaded.onChange(listener) as () => void
      return () => {
        this.#subscriptions--
        stop()
      }
    })
    this.#reload = () => loaded.reload()
    this.#close = () => loaded.close()
    const inner = memoryStore()
    const store = withMethod(inner, 'decide', (request: StoreRequest) =>
      this.#later(() => {
        const result = inner.decide(request) as StoreResult
        this.#note(request, result)
        return result
      }),
    ) as Store
    this.#guard = createGuard({ policies: counted, store })
  }

  #later<T>(make: () => T): T | Promise<T> {
    return this.#napMs.length === 0 ? make() : this.#late(make)
  }

  async #late<T>(make: () => T): Promise<T> {
    const nap = async () => {
      const ms = this.#napMs[this.#naps++ % this.#napMs.length] as number
      if (ms >= 0) await (ms === 0 ? setImmediate() : sleep(ms))
    }
    await nap()
    const made = make()
    await nap()
    return made
  }

  #note({ op, plan, costs, permitId }: StoreRequest, { allowed }: StoreResult): void {
    const { definitions, cellOf, cells } = plan as never as {
      definitions: { policy: string; name: string }[]
      cellOf: number[]
      cells: { kernel: string }[]
    }
    for (const [i, { policy, name }] of definitions.entries()) {
      const c = cellOf[i] as number
      const cost = costs[c] as number
      const isPermit = cells[c]?.kernel === 'concurrency'
      const isCharge = op === CONSUME && allowed
      if (!cost || !(isCharge || op === REFUND || (op === RELEASE && isPermit))) continue
      // A permit may be released twice.
      const permit = `${permitId} ${policy} ${name}`
      if (isPermit && isCharge) this.#held.add(permit)
      else if (isPermit && !this.#held.delete(permit)) continue
      const units = isCharge ? cost : -cost
      this.changes.push({
        request: ofRequest.getStore(),
        policy: policy.split('.')[0] as string,
        limit: name.split('-').at(-1) as string,
        isPermit,
        units,
      })
    }
  }

  async run(step: AnyStep): Promise<void> {
    const visit = this.visits[(step.which ?? 0) % Math.max(1, this.visits.length)]
    if (step.what === 'come') this.#come(step.user as string)
    else if (step.what === 'leave' && visit) this.#leave(visit)
    else if (step.what === 'end' && visit) this.#end(visit)
    else if (step.what === 'upgrade') this.#tier = this.#tier === 'free' ? 'paid' : 'free'
    else if (step.what === 'change') await this.change({ ...this.#document, [step.name as string]: step.policy })
    for (let turn = 0; turn < step.pause; turn++) await setImmediate()
  }

  async change(document: Document): Promise<void> {
    this.documents.push(document)
    await this.#reload?.()
  }

  #come(user: string): void {
    const number = this.visits.length
    const response = Object.assign(new EventEmitter().setMaxListeners(0), { end() {} })
    const visit: Visit = {
      ...{ response, from: this.documents.length - 1, to: Number.NaN, done: Promise.resolve() },
      ...{ isDecided: false, proceeds: false, hasEnded: false, hasLeft: false },
    }
    this.visits.push(visit)
    const context = contextOf({ request: { user }, ip: '192.0.2.1', response } as never)
    visit.done = ofRequest.run(number, async () => {
      const outcome = await this.#guard?.(context as never)
      Object.assign(visit, { proceeds: outcome?.proceed, isDecided: true, to: this.documents.length - 1 })
    })
  }

  #leave(visit: Visit): void {
    if (visit.isDecided || visit.hasLeft) return
    visit.hasLeft = true
    this.#emit(visit, { destroyed: true, closed: true }, ['close'])
  }

  #end(visit: Visit): void {
    if (!visit.isDecided || visit.hasEnded) return
    visit.hasEnded = true
    // The handler of one that has left is done when it responds all the same.
    visit.response.end()
    if (visit.hasLeft) return
    const ended = { headersSent: true, statusCode: 200, writableFinished: true, closed: true }
    this.#emit(visit, ended, ['finish', 'close'])
  }

  #emit(visit: Visit, state: object, events: readonly string[]): void {
    ofRequest.run(this.visits.indexOf(visit), () => {
      Object.assign(visit.response, state)
      for (const event of events) visit.response.emit(event)
    })
  }

  /** Makes room in every policy until all requests are decided, and ends these. */
  async finish(): Promise<void> {
    for (let tries = 0; this.visits.some(({ isDecided }) => !isDecided); tries++) {
      if (tries > 60) throw new Error('a request is never decided')
      // A waiting request keeps its limits while its policy counts other units.
      const algorithm = tries % 2 === 0 ? 'slidingLog' : 'concurrency'
      const roomy = { algorithm, limit: 500 + tries, isPresent: true, key: 'user' } as const
      const plain = { hasSecond: false, hasTiers: false, isReported: false, isApart: false }
      const policy = { ...roomy, ...plain } as AnyPolicy
      await this.change({ a: policy, b: policy, c: policy })
      await this.#settle()
      // Its error, if it has failed.
      await Promise.race([Promise.all(this.visits.map(({ done }) => done)), setImmediate()])
    }
    for (const visit of this.visits) this.#end(visit)
    await this.#settle()
    await this.#close?.()
  }

  async #settle(): Promise<void> {
    for (let turn = 0; turn < 6; turn++) await (this.#napMs.length > 0 ? sleep(2) : setImmediate())
  }

  check(): void {
    expect(this.changes.filter(({ request }) => request === undefined)).toEqual([])
    expect(this.#subscriptions).toBe(0)
    for (const [number, visit] of this.visits.entries()) {
      const { response, from, to } = visit
      expect(response.listenerCount('close') + response.listenerCount('finish'), `listeners of ${number}`).toBe(0)
      for (const name of NAMES) {
        const own = this.changes.filter(({ request, policy }) => request === number && policy === name)
        const lived = this.documents.slice(from, to + 1).map((document) => document[name])
        this.#checkOne(`request ${number}, policy ${name}`, visit, own, lived)
      }
    }
  }

  #checkOne(where: string, { proceeds }: Visit, own: readonly Change[], lived: readonly AnyPolicy[]): void {
    const sum = (changes: readonly Change[]) => changes.reduce((all, { units }) => all + units, 0)
    expect(sum(own.filter(({ isPermit }) => isPermit)), `${where}: permits`).toBe(0)
    const charged = own.filter(({ isPermit }) => !isPermit)
    for (const limit of ['one', 'two']) {
      const units = sum(charged.filter((change) => change.limit === limit))
      expect([0, 1], `${where}, limit ${limit}: ${units} units`).toContain(units)
    }
    if (lived.some(({ isPresent, isReported }) => !isPresent || isReported)) return
    if (!proceeds) expect(sum(own), `${where}: charged, but not admitted`).toBe(0)
    else if (lived.every(({ algorithm }) => algorithm !== 'concurrency')) {
      expect(sum(charged.filter(({ limit }) => limit === 'one')), `${where}: admitted`).toBe(1)
    } else
      expect(
        own.some(({ units }) => units > 0),
        `${where}: admitted without a charge`,
      ).toBe(true)
  }
}

const document = fc.record({ a: anyPolicy, b: anyPolicy, c: anyPolicy })
const steps = fc.array(anyStep, { minLength: 3, maxLength: 25 })

test.each([
  ['at once', fc.constant([]), { usual: 60, full: 2000 }],
  ['late', fc.array(fc.constantFrom(-1, -1, 0, 0, 1), { minLength: 3, maxLength: 12 }), { usual: 15, full: 150 }],
] as const)(
  'each request is charged once to each policy in force, however these change, where stores reply %s',
  async (_, napMs, runs) => {
    await fc.assert(
      fc.asyncProperty(document, steps, napMs, async (first, all, naps) => {
        const unhandled = await unhandledDuring(async () => {
          const world = new World(first, naps)
          await world.start()
          for (const step of all) await world.run(step as AnyStep)
          await world.finish()
          world.check()
        })
        expect(unhandled).toEqual([])
      }),
      { numRuns: byEffort(runs) },
    )
  },
)
