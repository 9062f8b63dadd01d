// Runs alone: it fakes the clock.
import { randomUUID } from 'node:crypto'
import { createLimiter, liveFigures, type RedisStoreOptions, redisStore } from '@sluice/core'
import { type Figures, figuresIn, labelsIn, PROCESSES } from '@sluice/core/internal'
import { Redis } from 'ioredis'
import { beforeAll, expect, test, vi } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { until } from '../support/until.js'

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
  return () => redis.stop()
})

const open = closedAfterEach()

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
  const store = storeOn(prefix, { report: liveFigures() })
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

test('figures go into the minute of Redis, whatever the clock of the process says', async () => {
  const prefix = `${randomUUID()}:`
  const wrong = vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 10_000_000)
  const store = storeOn(prefix, { report: liveFigures() })
  wrong.mockRestore()
  await createLimiter({ name: 'mail', store, limit: 3, window: '1h' }).consume('ann')
  await store.close()
  const other = figuresIn(storeOn(prefix))
  await other.live()
  const minute = Math.floor((await redis.now()) / 60_000)
  const sums = await other.sums('minute', minute - 1, minute)
  expect(sums.some((each) => each?.get('mail||as') === 1)).toBe(true)
  const keys = (await redis.call('KEYS', `${prefix}*:m:*`)) as string[]
  expect(keys).toHaveLength(1)
})

test('an option that is no reporter is an error that names the function to call', () => {
  for (const report of [true, liveFigures, 'figures']) {
    expect(() => storeOn('wrong:', { report: report as never })).toThrow(/redisStore: report: expected liveFigures\(\)/)
  }
})

test('a store that is closed reports first, and a process without the option reports nothing', async () => {
  const prefix = `${randomUUID()}:`
  const silent = storeOn(prefix)
  await createLimiter({ name: 'silent', store: silent, limit: 3, window: '1h' }).consume('ann')
  await silent.close()
  expect(await redis.call('KEYS', `${prefix}*figures*`)).toEqual([])
  const store = storeOn(prefix, { report: liveFigures() })
  await createLimiter({ name: 'mail', store, limit: 3, window: '1h' }).consume('ann')
  await store.close()
  expect(await recent(figuresIn(storeOn(prefix)))).toMatchObject({ 'mail  admitted store': 1 })
})

test('values of others in the keys count as none, and are said to be none of ours', async () => {
  const prefix = `${randomUUID()}:`
  const store = storeOn(prefix, { report: liveFigures() })
  const limiter = createLimiter({ name: 'foreign', store, limit: 100, window: '1h' })
  await limiter.consume('ann')
  const figures = figuresIn(store)
  await until('they are reported', async () => (await recent(figures))['foreign  admitted store'] === 1)
  const keys = (await redis.call('KEYS', `${prefix}*figures*`)) as string[]
  expect(keys).toHaveLength(5)
  for (const key of keys) {
    await redis.call('DEL', key)
    await (key.includes(':live:')
      ? redis.call('SET', key, '{"form":1,"counts":[["a||as",-1,0]]}', 'PX', 600_000)
      : redis.call('SET', key, 'x', 'PX', 600_000)) // one of a minute that has passed by now is never written again
  }
  const minute = Math.floor(figures.now() / 60_000)
  expect(await figures.sums('minute', minute - 1, minute)).toContain(undefined)
  await limiter.consume('ann')
  await until('they are reported again', async () => (await recent(figures))['foreign  admitted store'] === 1)
  expect(figures.failure).toBeUndefined()
  const [live] = await figures.live()
  expect(live?.figures?.counts).toContainEqual(['foreign||as', 2, expect.any(Number)])
  for (const [key, leftMs] of await redis.lifetimes())
    if (key.startsWith(prefix)) expect(leftMs, key).toBeGreaterThan(0)
})

test('two stores of a process on one Redis count its decisions once', async () => {
  const prefix = `${randomUUID()}:`
  const [store, other] = [storeOn(prefix, { report: liveFigures() }), storeOn(prefix, { report: liveFigures() })]
  const limiter = createLimiter({ name: 'twice', store, limit: 100, window: '1h' })
  for (let i = 0; i < 10; i++) await limiter.consume('ann')
  await Promise.all([store.close(), other.close()])
  expect(await recent(figuresIn(storeOn(prefix)))).toMatchObject({ 'twice  admitted store': 10 })
})
