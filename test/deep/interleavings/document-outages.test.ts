import { AsyncLocalStorage } from 'node:async_hooks'
import { EventEmitter } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { type RedisStore, redisStore, type Store, type Verdict } from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import { CONSUME, REFUND, RELEASE, type StoreRequest, type StoreResult } from '@sluice/core/store'
import { policies } from '@sluice/policies'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { singleClients } from '../../support/clients.js'
import { contextOf } from '../../support/context.js'
import { byEffort } from '../../support/effort.js'
import { unhandledDuring } from '../../support/process-events.js'
import { type RedisServer, startRedis } from '../../support/redis-server.js'
import { until } from '../../support/until.js'
import { withMethod } from '../../support/with-method.js'

// Documents change while a Redis dies, hangs and returns. Each charge in Redis is attributed to its request.

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

const NAMES = ['a', 'b'] as const

const anyPolicy = fc.record({
  algorithm: fc.constantFrom('slidingLog', 'fixedWindow', 'gcra', 'concurrency', 'concurrency'),
  limit: fc.integer({ min: 1, max: 3 }),
  more: fc.constantFrom(
    {},
    { count: { only: 'failure' } },
    { enforce: { mode: 'report' } },
    { ban: { after: 3, within: '1m', for: ['1s'] } },
    { deny: { ip: ['203.0.113.0/24'] } },
  ),
  waits: fc.boolean(),
})
type AnyPolicy = typeof anyPolicy extends fc.Arbitrary<infer T> ? T : never
type Document = Readonly<Record<(typeof NAMES)[number], AnyPolicy>>

const visit = fc.record({ what: fc.constantFrom('leave', 'end', 'end'), which: fc.nat(20) })
const anyStep = fc.oneof(
  { weight: 6, arbitrary: fc.record({ what: fc.constant('come'), user: fc.constantFrom('ann', 'bob') }) },
  { weight: 3, arbitrary: visit },
  {
    weight: 3,
    arbitrary: fc.record({ what: fc.constant('change'), name: fc.constantFrom(...NAMES), policy: anyPolicy }),
  },
  { weight: 2, arbitrary: fc.record({ what: fc.constantFrom('die', 'hang', 'return', 'return') }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constantFrom('block', 'reset'), user: fc.constantFrom('ann', 'bob') }) },
  { weight: 2, arbitrary: fc.record({ what: fc.constant('pass'), ms: fc.constantFrom(1, 20, 150) }) },
)
interface AnyStep {
  readonly what: string
  readonly user?: string
  readonly which?: number
  readonly name?: string
  readonly policy?: AnyPolicy
  readonly ms?: number
}

function dataOf({ algorithm, limit, more, waits }: AnyPolicy): object {
  const amount = algorithm === 'concurrency' ? { ttl: '1h' } : { window: '1h' }
  return {
    key: 'user',
    limits: [{ algorithm, limit, ...amount, name: 'one' }],
    ...(waits && { respond: { queue: { maxWait: '12h' } } }),
    ...more,
  }
}

interface Visit {
  readonly response: EventEmitter & { destroyed?: boolean; end: () => void }
  readonly from: number
  verdict: Verdict | undefined
  isDecided: boolean
  hasEnded: boolean
  to: number
  done: Promise<void>
}

/** The number of the request that the code runs for. */
const ofRequest = new AsyncLocalStorage<number>()

class World {
  readonly visits: Visit[] = []
  readonly documents: Document[]
  /** Units in Redis, by request, policy and permit: those whose reply came. */
  readonly charges = new Map<string, number>()
  readonly store: RedisStore
  #isAway = false
  #isStopped = false
  #hadOutage = false
  readonly #closeClient: () => void
  #guard!: ReturnType<typeof createGuard>
  #loaded!: Awaited<ReturnType<typeof policies.from>>

  constructor(document: Document, kind: keyof typeof singleClients) {
    this.documents = [document]
    const { client, close } = singleClients[kind](server.port)
    this.#closeClient = close
    this.store = redisStore(client, { timeout: 60 })
  }

  async start(share: number): Promise<void> {
    const text = () =>
      Object.fromEntries(NAMES.map((name) => [name, dataOf((this.documents.at(-1) as Document)[name])]))
    this.#loaded = await policies.from({
      load: () => ({ version: 1, policies: text() }),
      allowShrink: true,
      keys: { user: (request) => (request as { user: string }).user },
    })
    await this.store.ready()
    const store = withMethod<Store>(this.store, 'decide', (request: StoreRequest) => this.#decide(request))
    this.#guard = createGuard({ policies: this.#loaded, store, unavailable: { share } })
  }

  #decide(request: StoreRequest): StoreResult | Promise<StoreResult> {
    const result = this.store.decide(request)
    if (!(result instanceof Promise)) return result
    const number = ofRequest.getStore()
    return result.then(
      (late) => {
        this.#note(request, late, number)
        return late
      },
      (error) => {
        // Redis may have taken a permit, or kept one: on a busy machine, some replies are late without an outage.
        this.#hadOutage = true
        throw error
      },
    )
  }

  #note({ op, plan, costs }: StoreRequest, { allowed }: StoreResult, number: number | undefined): void {
    const { definitions, cellOf } = plan as never as { definitions: { policy: string }[]; cellOf: number[] }
    const sign = op === CONSUME && allowed ? 1 : op === REFUND ? -1 : 0
    if (op === RELEASE) return
    for (const [i, { policy }] of definitions.entries()) {
      const key = `${number} ${policy} ${plan.cells[cellOf[i] as number]?.kernel === 'concurrency'}`
      this.charges.set(key, (this.charges.get(key) ?? 0) + sign * (costs[cellOf[i] as number] as number))
    }
  }

  async run(step: AnyStep): Promise<void> {
    const found = this.visits[(step.which ?? 0) % Math.max(1, this.visits.length)]
    const { limiter } = this.#guard
    const ignore = () => {}
    if (step.what === 'come') this.#come(step.user as string)
    else if (step.what === 'leave' && found && !found.isDecided) this.#emit(found, { destroyed: true }, ['close'])
    else if (step.what === 'end' && found) this.#end(found)
    else if (step.what === 'change') {
      await this.#change({ ...(this.documents.at(-1) as Document), [step.name as string]: step.policy })
    } else if (step.what === 'die' && !this.#isAway) await this.#leave(() => server.stop())
    else if (step.what === 'hang' && !this.#isAway) {
      this.#isStopped = true
      await this.#leave(async () => server.kill('SIGSTOP'))
    } else if (step.what === 'return') await this.#return()
    else if (step.what === 'block') {
      await limiter.block({ user: step.user } as never, { for: 300 }).catch(ignore)
      await limiter.unblock({ user: step.user } as never).catch(ignore)
    } else if (step.what === 'reset') await limiter.reset({ user: step.user } as never).catch(ignore)
    await sleep(step.ms ?? 1)
  }

  async #leave(end: () => Promise<void>): Promise<void> {
    this.#isAway = true
    this.#hadOutage = true
    await end()
  }

  async #return(): Promise<void> {
    if (!this.#isAway) return
    if (this.#isStopped) server.kill('SIGCONT')
    else await server.restart()
    this.#isStopped = false
    this.#isAway = false
  }

  async #change(document: Document): Promise<void> {
    this.documents.push(document)
    await this.#loaded.reload()
  }

  #come(user: string): void {
    const response = Object.assign(new EventEmitter().setMaxListeners(0), { end() {} })
    const visit: Visit = {
      ...{ response, from: this.documents.length - 1, to: Number.NaN, verdict: undefined },
      ...{ isDecided: false, hasEnded: false, done: Promise.resolve() },
    }
    const number = this.visits.push(visit) - 1
    const context = contextOf({ request: { user }, ip: '192.0.2.1', response } as never)
    visit.done = ofRequest.run(number, async () => {
      const { verdict } = await this.#guard(context as never)
      Object.assign(visit, { verdict, isDecided: true, to: this.documents.length - 1 })
    })
    visit.done.catch(() => {})
  }

  #end(visit: Visit): void {
    if (!visit.isDecided || visit.hasEnded) return
    visit.hasEnded = true
    const statusCode = this.visits.indexOf(visit) % 2 === 0 ? 200 : 400
    // The handler of one that has left is done when it responds all the same.
    visit.response.end()
    this.#emit(visit, { headersSent: true, statusCode, writableFinished: true, closed: true }, ['finish', 'close'])
  }

  #emit(visit: Visit, state: object, events: readonly string[]): void {
    ofRequest.run(this.visits.indexOf(visit), () => {
      Object.assign(visit.response, state)
      for (const event of events) visit.response.emit(event)
    })
  }

  /** Ends the outage, makes room until all requests are decided, and ends these. */
  async finish(): Promise<void> {
    await this.#return()
    for (let tries = 0; this.visits.some(({ isDecided }) => !isDecided); tries++) {
      if (tries > 200) throw new Error('a request is never decided')
      const algorithm = tries % 2 === 0 ? 'slidingLog' : 'concurrency'
      const roomy: AnyPolicy = { algorithm, limit: 500 + tries, more: {}, waits: true }
      await this.#change({ a: roomy, b: roomy })
      await Promise.race([Promise.all(this.visits.map(({ done }) => done)), sleep(50)])
    }
    await Promise.all(this.visits.map(({ done }) => done))
    for (const visit of this.visits) this.#end(visit)
    const last: AnyPolicy = { algorithm: 'concurrency', limit: 500, more: {}, waits: false }
    await this.#change({ a: last, b: last })
    // Redis cannot take back permits in an outage: they lapse later.
    if (this.#hadOutage) await server.restart()
    await until('Redis has all permits back, and decides', () => this.#isFull('decided'))
    await this.store.close()
    await until('this process has all permits back', () => this.#isFull('unavailable'))
    await this.#loaded.close()
    this.#closeClient()
  }

  async #isFull(kind: Verdict['kind']): Promise<boolean> {
    const looks = ['ann', 'bob'].flatMap((user) =>
      NAMES.map((tier) => this.#guard.limiter.peek({ user } as never, { tier })),
    )
    const all = await Promise.all(looks)
    return all.every(({ kind: by, remaining, limits }) => by === kind && remaining === limits[0]?.limit)
  }

  check(): void {
    for (const [number, { response, verdict, from, to }] of this.visits.entries()) {
      expect(response.listenerCount('close') + response.listenerCount('finish'), `listeners of ${number}`).toBe(0)
      for (const name of NAMES) {
        const units = this.charges.get(`${number} ${name} false`) ?? 0
        expect([0, 1], `request ${number}, policy ${name}: ${units} units`).toContain(units)
      }
      const lived = this.documents.slice(from, to + 1).flatMap((document) => NAMES.map((name) => document[name].limit))
      for (const { limit } of verdict?.kind === 'decided' ? verdict.limits : []) expect(lived).toContain(limit)
    }
  }
}

test.each(['ioredis 6', 'redis 5'] as const)(
  'each request is decided and charged once, and leaves no permit and no listener, however documents and a Redis change (%s)',
  async (kind) => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({ a: anyPolicy, b: anyPolicy }),
        fc.array(anyStep, { minLength: 10, maxLength: 40 }),
        fc.constantFrom(1, 0.5),
        async (first, steps, share) => {
          await server.restart()
          const unhandled = await unhandledDuring(async () => {
            const world = new World(first, kind)
            await world.start(share)
            for (const step of steps) await world.run(step)
            await world.finish()
            world.check()
          })
          expect(unhandled).toEqual([])
        },
      ),
      // A failure takes half a minute to show, and steps in real time may not repeat it.
      { numRuns: byEffort({ usual: 4, full: 60 }), endOnFailure: true },
    )
  },
)
