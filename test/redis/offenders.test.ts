import { createLimiter, redisStore } from '@sluice/core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { singleClients } from '../support/clients.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { until } from '../support/until.js'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

/** A process that shares the server, with its own client and store. */
async function member() {
  const { client, ready, close } = singleClients['redis 6'](server.port)
  await ready
  const store = redisStore(client, { timeout: 2000, prefix: 'offenders:', offenders: true })
  const limiter = createLimiter({ name: 'api', store, limit: 1, window: '1h' })
  return {
    store,
    limiter,
    async leave() {
      await store.close()
      close()
    },
  }
}

test('offenders combines the refusals of several processes within seconds, and when their stores close', async () => {
  const [here, there] = [await member(), await member()]
  // The deny cache repeats most of these refusals.
  for (let n = 0; n < 20; n++) await here.limiter.consume('ann')
  for (let n = 0; n < 30; n++) await there.limiter.consume('ann')
  await until(
    'the report has the refusals of both processes',
    async () => (await here.store.offenders({ policy: 'api' })).refusals === 49,
  )
  for (let n = 0; n < 5; n++) await there.limiter.consume('bob')
  await there.leave()
  const { offenders, refusals, error } = await here.store.offenders({ policy: 'api', in: '10m' })
  expect(offenders).toEqual([
    { kind: 'key', value: 'ann', refusals: 49 },
    { kind: 'key', value: 'bob', refusals: 4 },
  ])
  expect({ refusals, error }).toEqual({ refusals: 53, error: 0 })
  for (const [key, leftMs] of await server.lifetimes()) expect(leftMs, key).toBeGreaterThan(0)
  await here.leave()
})
