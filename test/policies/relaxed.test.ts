import { memoryStore, redisStore, type Store } from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import { policies } from '@sluice/policies'
import { Redis } from 'ioredis'
import { beforeAll, expect, test } from 'vitest'
import { contextOf } from '../support/context.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'

let redis: RedisServer
let client: Redis
beforeAll(async () => {
  redis = await startRedis()
  client = new Redis(redis.port)
  return async () => {
    client.disconnect()
    await redis.stop()
  }
})

const hourly = (limit: number) => ({ algorithm: 'slidingWindow', limit, window: '1h' })

/** Requests by a document in a process of its own. `admits` resolves to how many are admitted. */
async function serviceOf(name: string, document: object) {
  const store: Store & { close(): Promise<void> } = redisStore(client, { timeout: 5000 })
  const loaded = await policies.from({ object: { version: 1, ...document } })
  const guard = createGuard({ name, policies: loaded, store })
  const admits = async (requests: number, ip = '192.0.2.1') => {
    let admitted = 0
    for (let n = 0; n < requests; n++) if ((await guard(contextOf({ ip }) as never)).proceed) admitted++
    return admitted
  }
  return { admits, store }
}

async function calls(): Promise<number> {
  const stats = String(await redis.call('INFO', 'commandstats')).matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)
  return [...stats].reduce((sum, [, count]) => sum + Number(count), 0)
}

test('a document with consistency counts in its process, within the bound, and reports its counts', async () => {
  const document = { policies: { api: { limits: [hourly(50)], consistency: { syncEvery: '1m' } } } }
  const [here, elsewhere, later] = [
    await serviceOf('bound', document),
    await serviceOf('bound', document),
    await serviceOf('bound', document),
  ]
  await here.admits(2)
  await elsewhere.admits(2)
  const before = await calls()
  // Each knows its own requests, and those that Redis had counted before it began.
  expect(await here.admits(60)).toBe(48)
  expect(await elsewhere.admits(60)).toBe(46)
  expect((await calls()) - before).toBe(0)
  await here.store.close()
  await elsewhere.store.close()
  expect(await later.admits(5)).toBe(0)
  await later.store.close()
})

test('the limiter of a document peeks at the counts of its relaxed policies, and resets them', async () => {
  const document = { policies: { api: { limits: [hourly(2)], consistency: { syncEvery: '1m' } } } }
  const loaded = await policies.from({ object: { version: 1, ...document } as never })
  const ip = '192.0.2.1'
  const guard = createGuard({ policies: loaded, store: memoryStore() } as never)
  const admits = async () => (await guard(contextOf({ ip }) as never)).proceed
  const left = async () => (await guard.limiter.peek({ ip }, { tier: 'api' })).remaining
  expect([await admits(), await admits(), await admits(), await left()]).toEqual([true, true, false, 0])
  await guard.limiter.reset({ ip })
  expect([await left(), await admits(), await left()]).toEqual([2, true, 1])
})

test('overrides and tiers of a relaxed policy are relaxed, and a policy beside it is exact', async () => {
  const relaxed = { limits: [hourly(5)], consistency: { syncEvery: '1m' } }
  const { admits, store } = await serviceOf('beside', {
    policies: { all: { limits: [{ limit: 30, window: '1h' }] }, api: relaxed },
    overrides: [{ policy: 'api', key: { ip: '192.0.2.2' }, limits: [{ limit: 40 }] }],
  })
  expect(await admits(10)).toBe(5)
  expect(await admits(50, '192.0.2.2')).toBe(30)
  await store.close()

  const alone = await serviceOf('alone', {
    policies: { api: relaxed },
    overrides: [{ policy: 'api', key: { ip: '192.0.2.2' }, limits: [{ limit: 40 }] }],
  })
  await alone.admits(2, '192.0.2.2')
  const before = await calls()
  expect(await alone.admits(60, '192.0.2.2')).toBe(38)
  expect((await calls()) - before).toBe(0)
  await alone.store.close()
})
