// Runs alone: it fakes timers.
import { createLimiter, type Limiter, memoryStore, redisStore, type Verdict } from '@sluice/core'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { POLICIES, randomFrom } from '../../contract/policies.js'
import { Clock, freshKey } from '../../contract/store-under-test.js'
import { byEffort } from '../../support/effort.js'
import { insist } from '../../support/outages.js'
import { redisForTests } from '../../support/redis-for-tests.js'

/** Steps in all, spread evenly over the policies; more for a longer run. */
const STEPS = Number(process.env.SLUICE_STEPS ?? byEffort({ usual: 1500, full: 100_000 }))
const SEED = Number(process.env.SLUICE_SEED ?? Math.floor(Math.random() * 2 ** 32))
const SYNC_MS = 100

const { client } = await redisForTests()

const relaxable = Object.entries(POLICIES).filter(([, limits]) =>
  limits.every((limit) => {
    const { kind, calendar } = limit.resolve('test', 1, 1000)
    return !calendar && (kind.kernel === 'counter' || kind.kernel === 'segments')
  }),
)

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
})
afterEach(() => {
  vi.useRealTimers()
})

interface Pair {
  readonly key: string
  readonly exact: Verdict
  readonly relaxed: Verdict
}

for (const onDeny of ['none', 'charge'] as const) {
  for (const [name, limits] of relaxable) {
    if (onDeny === 'charge' && limits.some(({ reserve }) => reserve !== undefined)) continue
    test(`${name}: one process alone counts relaxed limits exactly, refusals charged: ${onDeny}`, async () => {
      const clock = new Clock()
      const random = randomFrom(SEED)
      const stores = [
        memoryStore({ clock: clock.read }),
        insist(redisStore(client, { clock: clock.read, timeout: 5000 })),
      ]
      const consistency = { syncEvery: SYNC_MS }
      const [exact, relaxed] = stores.map((store) =>
        createLimiter({ name: `alone-${name}-${onDeny}`, store, limits, onDeny, consistency }),
      ) as [Limiter, Limiter]
      const pairs: Pair[] = []
      const steps = Math.ceil(STEPS / (2 * relaxable.length))
      for (let step = 0; step < steps; step++) {
        const ms = random(3) === 0 ? random(random(10) === 0 ? 12_000 : 300) : 0
        clock.now += ms
        vi.advanceTimersByTime(ms)
        // An exchange is then sometimes complete, and sometimes pending.
        if (random(2) === 0) await relaxed.peek('another')
        const key = `key-${random(3)}`
        const options = { cost: random(4), bytes: random(3) * random(9), priority: random(3) }
        const pair = pairs[random(pairs.length + 1)]
        const what = (step * 7919 + SEED) % 100
        const ask = async (limiter: Limiter, verdict: Verdict | undefined): Promise<unknown> => {
          if (pair && verdict && what < 12) return limiter.refund(pair.key, verdict)
          if (what < 13) return limiter.reset(key)
          if (what < 20) return limiter.peek(key, options)
          return limiter.consume(key, options)
        }
        const verdicts = [await ask(exact, pair?.exact), await ask(relaxed, pair?.relaxed)] as [Verdict, Verdict]
        const context = `seed ${SEED}, step ${step}, at ${clock.now}`
        expect(JSON.stringify(verdicts[1]), context).toBe(JSON.stringify(verdicts[0]))
        if (verdicts[0]?.allowed) pairs.push({ key, exact: verdicts[0], relaxed: verdicts[1] })
      }
      for (const store of stores) await store.close()
    })
  }
}

for (const name of ['fixed', 'weighted', 'strict']) {
  test(`${name}: a clock that steps back adds no room to a relaxed limit, and locks out for at most its window`, async () => {
    const clock = new Clock()
    const store = insist(redisStore(client, { clock: clock.read, timeout: 5000 }))
    const limits = POLICIES[name] ?? []
    const limiter = createLimiter({ name: `back-${name}`, store, limits, consistency: { syncEvery: SYNC_MS } })
    const key = freshKey()
    const hammer = async (ms: number) => {
      let admitted = 0
      for (let passed = 0; passed < ms; passed += SYNC_MS) {
        for (let n = 0; n < 350; n++) if ((await limiter.consume(key)).allowed) admitted++
        clock.now += SYNC_MS
        vi.advanceTimersByTime(SYNC_MS)
        await limiter.peek('another')
      }
      return admitted
    }
    clock.now += 1000
    expect(await hammer(SYNC_MS)).toBeGreaterThan(0)
    clock.now -= 900
    expect(await hammer(500)).toBe(0)
    clock.now -= 86_400_000
    await hammer(SYNC_MS)
    const windowMs = Math.max(...limits.map(({ window }) => Number(window)))
    clock.now += windowMs
    vi.advanceTimersByTime(SYNC_MS)
    expect(await hammer(windowMs)).toBeGreaterThan(0)
    await store.close()
  })
}
