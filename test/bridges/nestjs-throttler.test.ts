import { sluiceStorage } from '@sluice/bridges/nestjs-throttler'
import { memoryStore } from '@sluice/core'
import { beforeAll, describe, expect, test } from 'vitest'
import { redisForTests } from '../support/redis-for-tests.js'
import type { RedisServer } from '../support/redis-server.js'
import { freshName, inMemory, type NewStore, onRedis } from './support.js'

let server: RedisServer
beforeAll(async () => {
  ;({ server } = await redisForTests())
})

const STORES: readonly [name: string, newStore: NewStore][] = [
  ['in memory', inMemory],
  ['on Redis', onRedis(() => server)],
]

describe.each(STORES)('@nestjs/throttler %s with the bridge', (_name, newStore) => {
  const storage = async () => sluiceStorage({ name: freshName(), store: await newStore() })

  test('a limit of 0 refuses everything', async () => {
    const service = await storage()
    expect(await service.increment('ann', 60_000, 0, 60_000, 'default')).toEqual({
      totalHits: 1,
      timeToExpire: 60,
      isBlocked: true,
      timeToBlockExpire: 60,
    })
  })

  test('a wrong number is an error of the request', async () => {
    const service = await storage()
    await expect(service.increment('ann', 0, 5, 0, 'default')).rejects.toThrow('ttl: expected whole milliseconds')
    await expect(service.increment('ann', -1, 0, 0, 'default')).rejects.toThrow('ttl: expected whole milliseconds')
    await expect(service.increment('ann', 1000, -1, 0, 'default')).rejects.toThrow('limit: expected a whole number')
    for (const blockDuration of [Number.POSITIVE_INFINITY, 0.5, -5]) {
      await expect(service.increment('ann', 1000, 1, blockDuration, 'default')).rejects.toThrow(
        `blockDuration: expected whole milliseconds, from 0 to 3153600000000 (100 years), got ${blockDuration}`,
      )
    }
  })
})

describe('@nestjs/throttler, by a clock', () => {
  test('a refused key is blocked for `blockDuration`; without one it is admitted when there is room', async () => {
    let now = 0
    const service = sluiceStorage({ store: memoryStore({ clock: () => now }) })
    const hit = async (key: string, blockMs: number) => {
      const { isBlocked, timeToBlockExpire } = await service.increment(key, 10_000, 1, blockMs, 'default')
      return isBlocked ? timeToBlockExpire : 'admitted'
    }
    expect([await hit('ann', 30_000), await hit('bob', 0)]).toEqual(['admitted', 'admitted'])
    expect([await hit('ann', 30_000), await hit('bob', 0)]).toEqual([30, 10])
    now += 10_000
    expect([await hit('ann', 30_000), await hit('bob', 0)]).toEqual([20, 'admitted'])
    now += 20_000
    expect(await hit('ann', 30_000)).toBe('admitted')
    expect(await hit('ann', 30_000)).toBe(30)
  })

  test('numbers that change with each call are decided, more than there is room for', async () => {
    const service = sluiceStorage({ store: memoryStore() })
    const hit = (limit: number) => service.increment('ann', 60_000, limit, 0, 'default')
    for (let limit = 1; limit <= 1001; limit++) await hit(limit)
    expect((await hit(1)).isBlocked).toBe(true)
    expect((await hit(1000)).isBlocked).toBe(true)
    // Above 1,000 hits are counted in another way, apart.
    expect((await hit(1001)).totalHits).toBe(2)
  })

  test('unknown options are refused', () => {
    expect(() => sluiceStorage({ ttl: 5 } as never)).toThrow('ttl: unknown option')
  })
})
