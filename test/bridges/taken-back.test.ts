import { type HitStore, sluiceStore } from '@sluice/bridges/express-rate-limit'
import { memoryStore } from '@sluice/core'
import fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import { byEffort } from '../support/effort.js'
import { redisForTests } from '../support/redis-for-tests.js'
import type { RedisServer } from '../support/redis-server.js'
import { freshName, onRedis } from './support.js'

const WINDOW_MS = 1000
const PROCESSES = 3

let server: RedisServer
beforeAll(async () => {
  ;({ server } = await redisForTests())
})

/** A step of an attacker, who chooses what each process does, and which of its open requests fails. */
type Step =
  | { readonly kind: 'hit'; readonly by: number; readonly key: string }
  | { readonly kind: 'fail'; readonly which: number }
  | { readonly kind: 'reset'; readonly by: number; readonly key: string }
  | { readonly kind: 'pass'; readonly ms: number }

const by = fc.nat(PROCESSES - 1)
const key = fc.constantFrom('ann', 'bob')
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('hit' as const), by, key }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('fail' as const), which: fc.nat(1000) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('reset' as const), by, key }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: 0, max: WINDOW_MS }) }),
  },
)

/** A request that may still fail. */
interface Open {
  readonly by: number
  readonly key: string
  readonly at: number
  readonly isAdmitted: boolean
  /** Until when the peer takes its hit back. */
  readonly until: number
}

/** The processes, and the truth about their requests. */
class World {
  readonly limit: number
  readonly stores: HitStore[]
  /** Otherwise its entries, which end by a clock that stands still, are held for ever. */
  readonly close: () => unknown
  now = 0
  open: Open[] = []
  /** When the requests that count were admitted, by their keys. */
  readonly counted = new Map<string, number[]>()

  constructor(limit: number, maxHits: number) {
    this.limit = limit
    const store = memoryStore({ clock: () => this.now })
    this.close = () => store.close()
    const name = freshName()
    this.stores = Array.from({ length: PROCESSES }, () => sluiceStore({ name, store, maxHits }))
    for (const store of this.stores) store.init({ limit, windowMs: WINDOW_MS })
  }

  /** Those that count for a key, within the window. */
  alive(key: string): number[] {
    return (this.counted.get(key) ?? []).filter((at) => at > this.now - WINDOW_MS)
  }

  async take(step: Step): Promise<void> {
    if (step.kind === 'pass') this.now += step.ms
    else if (step.kind === 'hit') await this.#hit(step.by, step.key)
    else if (step.kind === 'reset') await this.#reset(step.by, step.key)
    else await this.#fail(step.which)
  }

  async #hit(by: number, key: string): Promise<void> {
    const { totalHits, resetTime } = await (this.stores[by] as HitStore).increment(key)
    const isAdmitted = totalHits <= this.limit
    if (isAdmitted) this.counted.set(key, [...this.alive(key), this.now])
    expect(this.alive(key).length).toBeLessThanOrEqual(this.limit)
    this.open.push({ by, key, at: this.now, isAdmitted, until: Number(resetTime) })
  }

  async #fail(which: number): Promise<void> {
    // As express-rate-limit 8, which leaves alone what has expired.
    this.open = this.open.filter(({ until }) => until > this.now)
    const [failed] = this.open.splice(which % Math.max(1, this.open.length), 1)
    if (!failed) return
    await (this.stores[failed.by] as HitStore).decrement(failed.key)
    if (!failed.isAdmitted) return
    const alive = this.alive(failed.key)
    const place = alive.indexOf(failed.at)
    if (place >= 0) alive.splice(place, 1)
    this.counted.set(failed.key, alive)
  }

  async #reset(by: number, key: string): Promise<void> {
    await (this.stores[by] as HitStore).resetKey(key)
    this.counted.set(key, [])
    // Other processes do not see it. They would refund an entry of the same ms, as guarantees.md says.
    this.now++
  }
}

/** The clock of a world is that of the process, as processes have one time. */
async function inWorld(world: World, run: () => Promise<void>): Promise<void> {
  // No spies, which would keep every call.
  const clocks = [Date, performance].map((clock) => ({ clock, now: clock.now }))
  for (const { clock } of clocks) clock.now = () => world.now
  try {
    await run()
  } finally {
    for (const { clock, now } of clocks) clock.now = now
    await world.close()
    // Within one turn of the event loop, nothing that a WeakRef has met is collected.
    await new Promise((resolve) => setImmediate(resolve))
  }
}

const runs = byEffort({ quick: 40, usual: 60, full: 20_000 })

test('whatever requests fail, in any process and order, no window has more that count than the limit', async () => {
  const steps = fc.array(step, { maxLength: 60, size: 'max' })
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      fc.constantFrom(2, 5, 1000),
      steps,
      async (limit, maxHits, steps) => {
        const world = new World(limit, maxHits)
        await inWorld(world, async () => {
          for (const step of steps) await world.take(step)
        })
      },
    ),
    { numRuns: runs },
  )
})

test('where all requests of a window fail, nothing of them is left', async () => {
  const steps = fc.array(fc.record({ kind: fc.constant('hit' as const), by, key }), { maxLength: 40, size: 'max' })
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      steps,
      fc.infiniteStream(fc.nat(1000)),
      async (limit, steps, choice) => {
        const world = new World(limit, 1000)
        await inWorld(world, async () => {
          for (const step of steps) {
            await world.take(step)
            if ((choice.next().value as number) % 2 === 0)
              await world.take({ kind: 'fail', which: choice.next().value as number })
          }
          while (world.open.length > 0) await world.take({ kind: 'fail', which: choice.next().value as number })
          for (const key of ['ann', 'bob']) expect(await world.stores[0]?.get(key)).toBeUndefined()
        })
      },
    ),
    { numRuns: runs },
  )
})

test('processes on Redis that all take back what fails exceed no limit, and leave nothing', async () => {
  const newStore = onRedis(() => server)
  const name = freshName()
  const limit = 5
  const stores = await Promise.all(
    Array.from({ length: PROCESSES }, async () => sluiceStore({ name, store: await newStore() })),
  )
  for (const store of stores) store.init({ limit, windowMs: 600_000 })
  let [inside, most] = [0, 0]
  const request = async (store: HitStore) => {
    const { totalHits } = await store.increment('ann')
    if (totalHits <= limit) {
      most = Math.max(most, ++inside)
      await new Promise((resolve) => setImmediate(resolve))
      inside--
    }
    await store.decrement('ann')
  }
  const client = async (n: number) => {
    for (let i = 0; i < byEffort({ usual: 20, full: 500 }); i++) await request(stores[n % PROCESSES] as HitStore)
  }
  await Promise.all(Array.from({ length: 24 }, (_, n) => client(n)))
  expect(most).toBe(limit)
  expect(await stores[0]?.get('ann')).toBeUndefined()
})
