import { createLimiter, fixedWindow, type Meter, redisStore } from '@sluice/core'
import { expect, test } from 'vitest'
import { randomFrom } from '../contract/policies.js'
import { redisForTests } from '../support/redis-for-tests.js'

const { client } = await redisForTests()
const BUDGET = 40_000
const STEP = 64
const STREAMS = 64

test('64 streams of heavy-tailed lengths use a budget of 8 stores, and exceed it by the bound at most', async () => {
  const random = randomFrom(Math.floor(Math.random() * 2 ** 32))
  const stores = Array.from({ length: 8 }, () => redisStore(client, { timeout: 10_000 }))
  const limits = [fixedWindow<string>({ unit: 'tokens', limit: BUDGET, window: '1d', anchor: 'first-request' })]
  const limiters = stores.map((store) => createLimiter<string>({ name: 'meters', store, limits }))
  let produced = 0
  const stream = async (n: number): Promise<boolean> => {
    const verdict = await limiters[n % 8]?.consume('tenant', { cost: { tokens: 50 } })
    if (!verdict?.allowed) return false
    const meter = verdict.meter('tokens', { step: STEP }) as Meter
    const length = Math.min(20_000, Math.ceil(40 / (random(1000) / 1000 + 0.001) ** 1.2))
    let made = 0
    let goesOn = true
    while (made < length && goesOn) {
      const chunk = 1 + random(8)
      made += chunk
      goesOn = await meter.add(chunk)
    }
    produced += made
    await meter.end()
    return goesOn
  }
  for (let round = 0; round < 30; round++) {
    const results = await Promise.all(Array.from({ length: STREAMS }, (_, n) => stream(n)))
    if (results.every((goesOn) => !goesOn)) break
  }
  const used = BUDGET - ((await limiters[0]?.peek('tenant', { cost: { tokens: 0 } }))?.remaining ?? 0)
  expect(used).toBeGreaterThanOrEqual(0.95 * BUDGET)
  expect(produced).toBeGreaterThanOrEqual(0.95 * BUDGET)
  // A step, what comes while one charge is under way, and the last chunk.
  expect(produced).toBeLessThanOrEqual(BUDGET + STREAMS * (2 * STEP + 8))
  await Promise.all(stores.map((store) => store.close()))
})

test('a process that ends without a word leaves at most a step of each stream uncharged', async () => {
  const random = randomFrom(Math.floor(Math.random() * 2 ** 32))
  const store = redisStore(client, { timeout: 10_000 })
  const limits = [fixedWindow<string>({ unit: 'tokens', limit: 10_000_000, window: '1d', anchor: 'first-request' })]
  const limiter = createLimiter<string>({ name: 'killed', store, limits })
  let produced = 0
  await Promise.all(
    Array.from({ length: STREAMS }, async () => {
      const meter = (await limiter.consume('tenant')).meter('tokens', { step: STEP })
      for (let left = random(3000); left > 0; left -= 8) {
        produced += 8
        await meter.add(8)
      }
    }),
  )
  // What was sent before the process ended is charged.
  await limiter.peek('tenant')
  const uncharged = produced - (10_000_000 - (await limiter.peek('tenant')).remaining)
  expect(uncharged).toBeGreaterThanOrEqual(0)
  expect(uncharged).toBeLessThanOrEqual(STREAMS * STEP)
  await store.close()
})
