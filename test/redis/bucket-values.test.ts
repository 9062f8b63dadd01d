import { createLimiter, gcra, redisStore } from '@sluice/core'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { MIDNIGHT } from '../contract/store-under-test.js'
import { insist } from '../support/outages.js'
import { redisForTests } from '../support/redis-for-tests.js'

const { server, client } = await redisForTests()
let now = MIDNIGHT
const store = insist(redisStore(client, { timeout: 5000, clock: () => now }))
beforeEach(async () => {
  now = MIDNIGHT
  await server.flush()
})
afterAll(() => store.close())

const HOUR_MS = 3_600_000
/** The longest time by which the key of a bucket in use may outlive its need. */
const LINGER_MS = 10_000
const PLAIN_BYTES = 19
const COUNTED_BYTES = 32
const limiterOf = () => createLimiter({ name: 'bytes', store, limits: [gcra({ limit: 10, window: '1h' })] })

/** The bytes of each value, and the life of its key without the hour that the clock of a test adds. */
async function values(): Promise<{ bytes: unknown; lifeMs: number }[]> {
  const found = []
  for (const [key, leftMs] of await server.lifetimes()) {
    found.push({ bytes: await server.call('STRLEN', key), lifeMs: leftMs - HOUR_MS })
  }
  return found
}

test('a bucket value does not grow when each charge is refunded, fully or in part, before the next', async () => {
  const limiter = limiterOf()
  const other = await limiter.consume('k', { cost: 2 })
  for (let n = 0; n < 5; n++) {
    now += 60_000
    const verdict = await limiter.consume('k', { cost: 3 })
    now += 1000
    if (n % 2 === 0) await limiter.refund('k', verdict)
    else await verdict.settle(1)
    expect(await values()).toMatchObject([{ bytes: PLAIN_BYTES }])
  }
  now += HOUR_MS
  const last = await limiter.consume('k', { cost: 2 })
  await limiter.refund('k', last)
  await limiter.refund('k', other)
  expect(await values()).toEqual([])
})

test('overlapping refunds add 13 bytes to a bucket value for as long as its charges would count', async () => {
  const limiter = limiterOf()
  const [first, second, third] = [
    await limiter.consume('k', { cost: 4 }),
    await limiter.consume('k', { cost: 3 }),
    await limiter.consume('k', { cost: 3 }),
  ]
  await limiter.refund('k', first)
  expect(await values()).toMatchObject([{ bytes: COUNTED_BYTES }])
  await limiter.refund('k', second)
  await limiter.refund('k', third)
  expect(await limiter.peek('k')).toMatchObject({ remaining: 10, resetAfterMs: 0 })
  // Another charge may still be refunded until it would be paid off, in an hour.
  const [{ bytes, lifeMs }] = (await values()) as [{ bytes: number; lifeMs: number }]
  expect(bytes).toBe(COUNTED_BYTES)
  expect(lifeMs).toBeGreaterThan(HOUR_MS - 60_000)
  expect(lifeMs).toBeLessThanOrEqual(HOUR_MS + LINGER_MS)

  await limiter.consume('k', { cost: 10 })
  now += 30 * 60_000
  await limiter.consume('k', { cost: 5 })
  expect(await values()).toMatchObject([{ bytes: COUNTED_BYTES }])
})

test('a bucket value that was cut or extended counts as no state', async () => {
  const limiter = limiterOf()
  const first = await limiter.consume('k', { cost: 4 })
  await limiter.consume('k', { cost: 4 })
  await limiter.refund('k', first)
  const [key] = [...(await server.lifetimes()).keys()] as [string]
  for (const bytes of [18, 20, 31, 33]) {
    await server.call('SET', key, 'x'.repeat(bytes))
    expect(await limiter.peek('k')).toMatchObject({ remaining: 10 })
    expect(await limiter.consume('k')).toMatchObject({ remaining: 9 })
    expect(await values()).toMatchObject([{ bytes: PLAIN_BYTES }])
  }
})
