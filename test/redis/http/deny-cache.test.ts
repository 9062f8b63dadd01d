import { setTimeout as sleep } from 'node:timers/promises'
import {
  createLimiter,
  everyone,
  type LimitForm,
  queue,
  type RateLimitOptions,
  redisStore,
  type Store,
} from '@sluice/core'
import { rateLimit } from '@sluice/express'
import express, { type Request, type Response } from 'express'
import request from 'supertest'
import { afterAll, expect, test } from 'vitest'
import { redisForTests } from '../../support/redis-for-tests.js'
import { until } from '../../support/until.js'

const { client } = await redisForTests()
const stores: Store[] = []
afterAll(async () => {
  for (const store of stores) await store.close()
})

/** Time stands still, so that a refusal holds however slow the machine is. */
const clock = () => 1_800_000_000_000

/** An app with its own store, as every process has. */
function start(
  options: RateLimitOptions<Request> & LimitForm,
  handle: (response: Response) => void = (res) => void res.send('ok'),
) {
  const store = redisStore(client, { timeout: 5000, clock })
  stores.push(store)
  const app = express()
  app.use(rateLimit({ key: everyone(), ...options, store }))
  app.get('/', (_req, res) => handle(res))
  return { store, get: async () => (await request(app).get('/')).status }
}

test('a repeated refusal needs no Redis, until the same store resets the key', async () => {
  const options = { name: 'again', limit: 2, window: '1h' } as const
  const { store, get } = start(options)
  expect([await get(), await get(), await get()]).toEqual([200, 200, 429])
  await client.flushall()
  expect(await get()).toBe(429)
  await createLimiter({ ...options, store, key: everyone() }).reset('any')
  expect(await get()).toBe(200)
})

test('a request behind queue() is admitted when another process has just made room', async () => {
  const options = { name: 'queued', limit: 1, window: '1h', respond: queue({ maxWait: '1s' }) } as const
  const [here, there] = [start(options), start(options)]
  expect([await there.get(), await here.get()]).toEqual([200, 503])
  const same = { name: 'queued', limit: 1, window: '1h' } as const
  await createLimiter({ ...same, store: there.store, key: everyone() }).reset('any')
  expect(await here.get()).toBe(200)
})

test('a request that waits for the outcome of a request elsewhere is admitted within its time', async () => {
  const options = { name: 'counted', limit: 1, window: '1h', count: { only: () => false, within: '1m' } } as const
  const handled: Response[] = []
  const [here, there] = [start(options), start(options, (res) => void handled.push(res))]
  const first = there.get()
  const response = await until('the first request reaches its handler', () => handled[0])
  const second = here.get()
  // Time for it to be refused at first, and to wait.
  await sleep(200)
  response.send('ok')
  expect(await Promise.all([first, second])).toEqual([200, 200])
})
