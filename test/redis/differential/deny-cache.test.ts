import {
  createLimiter,
  everyone,
  type Limit,
  type Limiter,
  memoryStore,
  redisStore,
  slidingLog,
  type Verdict,
} from '@sluice/core'
import { expect, test } from 'vitest'
import { POLICIES, randomFrom } from '../../contract/policies.js'
import { Clock } from '../../contract/store-under-test.js'
import { byEffort } from '../../support/effort.js'
import { redisForTests } from '../../support/redis-for-tests.js'

/** Steps in all, spread evenly over the policies below; more for a longer run. */
const STEPS = Number(process.env.SLUICE_STEPS ?? byEffort({ usual: 1200, full: 60_000 }))
const SEED = Number(process.env.SLUICE_SEED ?? Math.floor(Math.random() * 2 ** 32))
/** The longest time for which the deny cache may repeat a refusal. */
const HOLD_MS = 1000

const { client } = await redisForTests()

/** An admitted request, and the process that made it. */
interface Admitted {
  readonly key: string
  readonly at: number
  readonly inMemory: Verdict
  readonly inRedis: Verdict
}

const ON_TWO_KEYS: readonly Limit<string>[] = [
  slidingLog({ limit: 4, window: '2s' }),
  slidingLog({ limit: 9, window: '3s', key: everyone() }),
]

for (const [name, limits] of Object.entries({ ...POLICIES, shared: ON_TWO_KEYS })) {
  test(`${name}: each of two processes decides exactly, or refuses by a state of at most a second before`, async () => {
    const clock = new Clock()
    const random = randomFrom(SEED)
    const memory = memoryStore({ clock: clock.read })
    // One oracle for each process, as each knows only of its own resets.
    const oracles = [0, 1].map(() => createLimiter({ name, store: memory, limits })) as [Limiter, Limiter]
    const stores = [0, 1].map(() => redisStore(client, { clock: clock.read, timeout: 5000 }))
    const processes = stores.map((store) => createLimiter({ name, store, limits })) as [Limiter, Limiter]
    const isShared = limits === ON_TWO_KEYS
    const admitted: Admitted[] = []
    /** When each process last changed anything on a key. */
    const changedAt = [new Map<string, number>(), new Map<string, number>()]
    const steps = Math.ceil(STEPS / (Object.keys(POLICIES).length + 1))

    for (let step = 0; step < steps; step++) {
      if (random(2) === 0) clock.now += random(random(10) === 0 ? 5000 : 400)
      const at = random(2)
      const [limiter, oracle] = [processes[at] as Limiter, oracles[at] as Limiter]
      const key = `key-${random(3)}`
      const what = random(100)
      const pair = admitted[random(admitted.length + 1)]
      const context = `seed ${SEED}, step ${step}, at ${clock.now}, ${key}`
      const change = async (
        changed: string,
        make: (limiter: Limiter, one?: 'inMemory' | 'inRedis') => Promise<unknown>,
      ) => {
        await make(oracle, 'inMemory')
        await make(limiter, 'inRedis')
        changedAt[at]?.set(isShared ? '' : changed, clock.now)
      }
      if (what < 12 && pair?.at === at) {
        await change(pair.key, (one, which) => one.refund(pair.key, pair[which as 'inMemory']))
      } else if (what < 16 && pair?.at === at) {
        await change(pair.key, (one, which) => one.release(pair[which as 'inMemory']))
      } else if (what < 18) await change(key, (one) => one.reset(key))
      else if (what < 20) await change(key, (one) => one.block({ key }, { for: '2s', reason: `step ${step}` }))
      else if (what < 22) await change(key, (one) => one.unblock({ key }))
      else {
        const options = { cost: random(4), bytes: random(3) * random(9), priority: random(3) }
        const inRedis = await limiter.consume(key, options)
        const changedElsewhere = changedAt[1 - at]?.get(isShared ? '' : key) ?? Number.NEGATIVE_INFINITY
        // A shared limit may have changed here for another key, too.
        const changed = isShared
          ? Math.max(changedElsewhere, changedAt[at]?.get('') ?? changedElsewhere)
          : changedElsewhere
        const mayBeOld = clock.now - changed < HOLD_MS
        const expected = await oracle.peek(key, options)
        if (inRedis.allowed) expect(expected.allowed, context).toBe(true)
        else if (expected.allowed) expect(mayBeOld, `${context}: refused a request with room`).toBe(true)
        if (inRedis.allowed !== expected.allowed) continue
        const inMemory = await oracle.consume(key, options)
        if (!mayBeOld) expect(JSON.stringify(inRedis), context).toBe(JSON.stringify(inMemory))
        if (!inRedis.allowed || options.cost + options.bytes === 0) continue
        admitted.push({ key, at, inMemory, inRedis })
        changedAt[at]?.set(isShared ? '' : key, clock.now)
      }
    }
    for (const store of [memory, ...stores]) await store.close()
  })
}
