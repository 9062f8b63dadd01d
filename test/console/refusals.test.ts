// Runs alone: it reads the figures of all stores of its process.
import { randomUUID } from 'node:crypto'
import { createLimiter, liveFigures, memoryStore, redisStore, type Store } from '@sluice/core'
import { Redis } from 'ioredis'
import { beforeAll, expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'
import { redisForTests } from '../support/redis-for-tests.js'
import type { RedisServer } from '../support/redis-server.js'
import { until } from '../support/until.js'
import { ask, asOperator, startConsole, withBody } from './support.js'

// Refusals that are not recorded are never taken for none.

let redis: RedisServer
beforeAll(async () => {
  ;({ server: redis } = await redisForTests())
})
const open = closedAfterEach()

async function served(store: Store) {
  const port = await startConsole({ store }, open)
  return {
    get: async (path: string) => (await ask(port, `/sluice/api${path}`, { headers: asOperator(port) })).json,
    post: async (path: string, body: object) =>
      (await ask(port, `/sluice/api${path}`, { headers: withBody(port), body })).json,
  }
}

function storeOn(prefix: string, more: object = {}) {
  const client = new Redis(redis.port)
  const store = redisStore(client, { prefix, timeout: 10_000, ...more })
  open.push(
    () => client.quit(),
    () => store.close(),
  )
  return store
}

test('where a process keeps only its last 200 refusals, the answer says since when all are known', async () => {
  const store = memoryStore()
  const { get, post } = await served(store)
  const mail = createLimiter({ name: 'mail', store, limit: 1, window: '1h' })
  const refuse = async (name: string, times: number) => {
    for (let i = 0; i < times; i++) await mail.consume(name)
  }
  await refuse('ann', 5)
  const identity = { kind: 'key', value: 'ann' }
  expect(await post('/why', { identity })).not.toHaveProperty('knownSince')
  const before = Date.now()
  await refuse('bob', 450)
  const { knownSince, refusals } = await get('/refusals')
  expect(refusals.length).toBe(200)
  expect(knownSince).toBeGreaterThanOrEqual(before)
  expect(knownSince).toBeLessThanOrEqual(refusals.at(-1).at)
  expect(await post('/why', { identity })).toMatchObject({ refusals: [], knownSince })
  const { refused } = await post('/block/plan', { identity })
  expect(refused).toEqual({ clients: 0, count: 0, knownSince })
})

test('processes on Redis say since when their refusals are known, too', async () => {
  const prefix = `${randomUUID()}:`
  const { get } = await served(storeOn(prefix))
  // The console of another process.
  const other = storeOn(prefix)
  await served(other)
  const mail = createLimiter({ name: 'mail', store: other, limit: 1, window: '1h' })
  for (let i = 0; i < 230; i++) await mail.consume('ann')
  await until('the other process has written its refusals', async () => (await get('/refusals')).refusals.length > 0)
  const { refusals, knownSince } = await get('/refusals')
  // Both consoles run in this process, and record its refusals: each has the last 200.
  expect(knownSince).toBeLessThanOrEqual(refusals.at(-1).at)
  expect(knownSince).toBeGreaterThan(0)
})

test('figures say whether a process records its refusals', async () => {
  const prefix = `${randomUUID()}:`
  const elsewhere = storeOn(prefix, { report: liveFigures() })
  await elsewhere.ready()
  const { get } = await served(storeOn(prefix))
  const processes = async () => (await get('/figures')).processes
  await until('this process reports', async () => (await processes()).length > 0, { everyMs: 200 })
  expect(await processes()).toMatchObject([{ recordsRefusals: true }])
})
