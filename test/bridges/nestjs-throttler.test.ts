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

  /** Hits of some seconds: the wait of a refused one, and 0 for an admitted one. */
  async function waitsOf(limit: number, blockMs: number, seconds: readonly number[]): Promise<number[]> {
    let now = 0
    const service = sluiceStorage({ store: memoryStore({ clock: () => now }) })
    const waits: number[] = []
    for (const second of seconds) {
      now = second * 1000
      waits.push((await service.increment('ann', 60_000, limit, blockMs, 'default')).timeToBlockExpire)
    }
    return waits
  }

  test('a refused key waits for the end of its block, or until there is room, whichever is later', async () => {
    expect(await waitsOf(1, 20_000, [0, 10, 29, 31, 59, 60])).toEqual([0, 50, 31, 29, 1, 0])
    expect(await waitsOf(1, 20_000, [0, 50, 65, 70])).toEqual([0, 20, 5, 0])
    expect(await waitsOf(1, 60_000, [0, 10, 69, 70])).toEqual([0, 60, 1, 0])
  })

  test('a client of a limit above 1,000 is admitted when its wait is over', async () => {
    const hits = Array<number>(1001).fill(2)
    const waits = await waitsOf(1001, 60_000, [...hits, 2])
    const wait = waits.at(-1) as number
    expect(wait).toBeGreaterThanOrEqual(60)
    expect((await waitsOf(1001, 60_000, [...hits, 2, 2 + wait])).at(-1)).toBe(0)
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
