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

const { client } = await redisForTests()
const stores: Store[] = []
afterAll(async () => {
  for (const store of stores) await store.close()
})

/** An app with its own store, as every process has. */
function start(
  options: RateLimitOptions<Request> & LimitForm,
  handle: (response: Response) => void = (res) => void res.send('ok'),
) {
  const store = redisStore(client, { timeout: 5000 })
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
  const options = { name: 'counted', limit: 1, window: '1h', count: { only: () => false, within: 900 } } as const
  const late = (res: Response) => void setTimeout(() => res.send('ok'), 150)
  const [here, there] = [start(options), start(options, late)]
  const first = there.get()
  // Time for the first request to reach Redis before the other one.
  await new Promise((resolve) => setTimeout(resolve, 80))
  expect(await Promise.all([first, here.get()])).toEqual([200, 200])
})
