import {
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  type Limit,
  memoryStore,
  perMinute,
  redisStore,
  type Store,
  slidingLog,
  slidingWindow,
  type Units,
  type Verdict,
} from '@sluice/core'
import fc from 'fast-check'
import { beforeEach, describe, expect, test } from 'vitest'
import { Clock } from '../contract/store-under-test.js'
import { byEffort } from '../support/effort.js'
import { redisForTests } from '../support/redis-for-tests.js'
import { until } from '../support/until.js'

const { server, client } = await redisForTests()
let clock: Clock
let stores: Store[]
beforeEach(async () => {
  await server.flush()
  clock = new Clock()
  stores = [1, 2].map(() => redisStore(client, { clock: clock.read, timeout: 5000 }))
  return () => Promise.all(stores.map((store) => store.close()))
})

const limitersOn = (limits: readonly Limit<string>[]) =>
  stores.map((store) => createLimiter<string>({ name: 'chat', store, limits }))
const leftIn = ({ limits }: Verdict) => limits.map(({ remaining }) => remaining)

test('64 callers of two processes take each unit all or none', async () => {
  const limiters = limitersOn([
    perMinute(60),
    gcra({ unit: 'tokens', limit: 1000, window: '1m' }),
    fixedWindow({ unit: 'cents', limit: 100, window: '1h' }),
    concurrency({ limit: 50 }),
  ])
  const verdicts = await Promise.all(
    Array.from({ length: 64 }, (_, i) =>
      limiters[i % 2]?.consume('ann', { cost: { tokens: 10 + (i % 17), cents: i % 5 } }),
    ),
  )
  const units = verdicts.flatMap((verdict) => (verdict?.allowed ? [verdict.units] : []))
  const sum = (unit: string) => units.reduce((all, each) => all + (each[unit]?.cost ?? 0), 0)
  expect(units.length).toBeLessThan(64)
  const left = await limiters[0]?.peek('ann', { cost: 0 })
  expect(leftIn(left as Verdict)).toEqual([
    60 - units.length,
    1000 - sum('tokens'),
    100 - sum('cents'),
    50 - units.length,
  ])
})

describe('the deny cache', () => {
  test('one refusal refuses every request that needs no less of a limit that refused', async () => {
    const [limiter] = limitersOn([perMinute(60), gcra({ unit: 'tokens', limit: 1000, window: '10m' })])
    await limiter?.consume('ann', { cost: { tokens: 1000 } })
    await limiter?.consume('ann', { cost: { tokens: 100 } })
    const { cmdstat_evalsha: before } = await server.fields('INFO', 'commandstats')
    for (let tokens = 100; tokens < 1100; tokens += 50) {
      const verdict = await limiter?.consume('ann', { cost: { tokens } })
      const retryAfterMs = tokens > 1000 ? undefined : tokens * 600
      expect(verdict).toMatchObject({ allowed: false, retryAfterMs })
    }
    expect((await server.fields('INFO', 'commandstats')).cmdstat_evalsha).toBe(before)
    expect(await limiter?.consume('ann', { cost: { tokens: 99 } })).toMatchObject({
      allowed: false,
      retryAfterMs: 59_400,
    })
    expect((await server.fields('INFO', 'commandstats')).cmdstat_evalsha).not.toBe(before)
  })

  test('names the wait for more units of a bucket whose limit was lowered', async () => {
    const limited = (limit: number) => ({ ...gcra<string>({ unit: 'tokens', limit, window: '1m' }), carry: 'tokens' })
    const store = redisStore(client, { clock: clock.read, timeout: 5000, denyCache: false })
    const [before] = limitersOn([limited(400)])
    await before?.consume('ann', { cost: { tokens: 400 } })
    const [lowered] = limitersOn([limited(20)])
    const asked = createLimiter<string>({ name: 'chat', store, limits: [limited(20)] })
    clock.now += 100
    for (const tokens of [1, 10, 20]) {
      const exact = (await asked.consume('ann', { cost: { tokens } })).retryAfterMs as number
      const verdict = await lowered?.consume('ann', { cost: { tokens } })
      expect(verdict?.retryAfterMs).toBeGreaterThanOrEqual(exact)
      expect(verdict?.retryAfterMs).toBeLessThanOrEqual(exact + 1)
    }
    await store.close()
  })

  const limits = [
    perMinute(40),
    gcra<string>({ unit: 'tokens', limit: 700, window: '3s', burst: 90 }),
    fixedWindow<string>({ unit: 'cents', limit: 90, window: '2s' }),
    slidingLog<string>({ unit: 'logged', limit: 60, window: '2s' }),
    slidingWindow<string>({ unit: 'counted', limit: 80, window: '2s' }),
  ]
  const units = ['tokens', 'cents', 'logged', 'counted'] as const
  const step = fc.record({
    gapMs: fc.oneof(fc.constant(0), fc.nat({ max: 300 }), fc.nat({ max: 2500 })),
    cost: fc.dictionary(fc.constantFrom(...units), fc.nat({ max: 100 })),
  })

  test('decides as the memory store, and names no wait that is too long by more than 1 ms', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        await server.flush()
        clock.now += 3_600_000
        const [inRedis] = limitersOn(limits)
        const store = memoryStore({ clock: clock.read })
        const inMemory = createLimiter<string>({ name: 'chat', store, limits })
        for (const { gapMs, cost } of steps) {
          clock.now += gapMs
          const given: Units = { ...cost }
          const [expected, verdict] = [
            await inMemory.consume('ann', { cost: given }),
            await inRedis?.consume('ann', { cost: given }),
          ]
          expect(verdict).toMatchObject({ allowed: expected.allowed, reason: expected.reason, cost: expected.cost })
          for (const [i, limit] of expected.limits.entries()) {
            const found = verdict?.limits[i] as typeof limit
            expect(found).toMatchObject({
              allowed: limit.allowed,
              remaining: limit.remaining,
              resetAfterMs: limit.resetAfterMs,
            })
            const [wait, given] = [limit.retryAfterMs ?? -1, found.retryAfterMs ?? -1]
            expect(given).toBeLessThanOrEqual(wait + 1)
            if (limit.unit !== 'logged' && limit.unit !== 'counted') expect(given).toBeGreaterThanOrEqual(wait)
          }
        }
      }),
      { numRuns: byEffort({ usual: 20, full: 1500 }) },
    )
  })
})

test('a lease of tokens serves requests that name none while it has one', async () => {
  const lease = { size: 50, ttl: '1s' } as const
  const [limiter] = limitersOn([gcra({ unit: 'tokens', limit: 100, window: '10s', lease })])
  const admitted: number[] = []
  for (let n = 0; n < 30; n++) {
    const verdict = await limiter?.consume('ann', { cost: n % 3 === 0 ? {} : { tokens: 7 } })
    if (verdict?.allowed) admitted.push(verdict.cost)
  }
  const taken = admitted.reduce((sum, cost) => sum + cost, 0)
  expect(taken).toBeLessThanOrEqual(90)
  expect(taken).toBeGreaterThan(80)
  await until(
    'the last tokens are spent',
    async () => !(await limiter?.consume('ann', { cost: { tokens: 1 } }))?.allowed,
  )
  expect(await limiter?.consume('ann', { cost: {} })).toMatchObject({ allowed: false, reason: 'limited' })
  expect(await limiter?.consume('ann', { cost: { tokens: 0 } })).toMatchObject({ allowed: true })
})
