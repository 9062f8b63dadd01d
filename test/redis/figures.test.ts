import { randomUUID } from 'node:crypto'
import { createLimiter, type RedisStoreOptions, redisStore } from '@sluice/core'
import { type Figures, figuresIn, labelsIn, PROCESSES } from '@sluice/core/internal'
import { Redis } from 'ioredis'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { until } from '../support/until.js'

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
  return () => redis.stop()
})

const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

function storeOn(prefix: string, options: RedisStoreOptions = {}) {
  const client = new Redis(redis.port)
  client.on('error', () => {})
  const store = redisStore(client, { prefix, timeout: 10_000, ...options })
  open.push(
    () => client.disconnect(),
    () => store.close(),
  )
  return store
}

/** The counts of the last two minutes, by policy, limit, outcome and source. */
async function recent(figures: Figures): Promise<Record<string, number>> {
  const minute = Math.floor(figures.now() / 60_000)
  const counts: Record<string, number> = {}
  for (const sums of await figures.sums('minute', minute - 1, minute)) {
    for (const [name, count] of sums ?? []) {
      const labels = labelsIn(name)
      if (!labels) continue
      const text = [labels.policy, labels.limit, labels.outcome, labels.source].join(' ')
      counts[text] = (counts[text] ?? 0) + count
    }
  }
  return counts
}

test('decisions of a process that reports are counted in the minute, by outcome, limit and source', async () => {
  const prefix = `${randomUUID()}:`
  const store = storeOn(prefix, { report: true })
  const policy = `p${randomUUID().slice(0, 8)}`
  const limiter = createLimiter({ name: policy, store, limit: 3, window: '1h' })
  for (let i = 0; i < 5; i++) await limiter.consume('ann')
  const figures = figuresIn(store)
  await until('they are reported', async () => (await recent(figures))[`${policy}  admitted store`] === 3)
  expect(await recent(figures)).toMatchObject({
    [`${policy} ${policy} limited store`]: 1,
    [`${policy} ${policy} limited deny-cache`]: 1,
  })
  const [live] = await figures.live()
  expect(live?.figures).toMatchObject({
    pid: process.pid,
    stores: expect.arrayContaining([['redis', 1, expect.any(Number), 0]]),
  })
  const hour = Math.floor(figures.now() / 3_600_000)
  expect((await figures.sums('hour', hour, hour))[0]?.get(PROCESSES)).toBe(1)
})
