import { sluiceStore as expressStore } from '@sluice/bridges/express-rate-limit'
import { sluiceStore as fastifyStore, type RouteHits } from '@sluice/bridges/fastify-rate-limit'
import { sluiceStorage } from '@sluice/bridges/nestjs-throttler'
import { sluiceLimiter } from '@sluice/bridges/rate-limiter-flexible'
import { memoryStore, type Store } from '@sluice/core'
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { redisForTests } from '../support/redis-for-tests.js'
import type { RedisServer } from '../support/redis-server.js'
import { freshName, inMemory, type NewStore, onRedis, refused } from './support.js'

let server: RedisServer
beforeAll(async () => {
  ;({ server } = await redisForTests())
})

/** The hits of keys whose limit comes with each hit. */
type Take = (key: string, limit: number, windowMs?: number) => Promise<boolean>

function ofFastify(store: Store): Take {
  const routes = new (fastifyStore({ name: freshName(), store }))({})
  return (key, limit, windowMs = 60_000) =>
    new Promise((resolve, reject) => {
      const callback = (error: Error | null, hits?: RouteHits) =>
        error ? reject(error) : resolve((hits as RouteHits).current <= limit)
      routes.incr(key, callback, windowMs, limit)
    })
}

function ofThrottler(store: Store): Take {
  const storage = sluiceStorage({ name: freshName(), store })
  return async (key, limit, windowMs = 60_000) =>
    !(await storage.increment(key, windowMs, limit, 0, 'default')).isBlocked
}

const PEERS: readonly [name: string, taking: (store: Store) => Take][] = [
  ['@fastify/rate-limit', ofFastify],
  ['@nestjs/throttler', ofThrottler],
]
const STORES: readonly [name: string, newStore: NewStore][] = [
  ['in memory', inMemory],
  ['on Redis', onRedis(() => server)],
]

describe.each(PEERS)('%s', (_peer, taking) => {
  test.each(STORES)('a client has one count, whatever limit comes with its hits, %s', async (_store, newStore) => {
    const take = taking(await newStore())
    const times = async (count: number, limit: number) => {
      let admitted = 0
      for (let i = 0; i < count; i++) if (await take('ann', limit)) admitted++
      return admitted
    }
    expect(await times(6, 5)).toBe(5)
    expect(await times(6, 8)).toBe(3)
    expect(await times(2, 3)).toBe(0)
    expect(await times(4, 10)).toBe(2)
    expect(await take('bob', 1)).toBe(true)
  })

  test.each(STORES)('a limit of infinity admits, and fractions are rounded down, %s', async (_store, newStore) => {
    const take = taking(await newStore())
    for (let i = 0; i < 5; i++) expect(await take('ann', Number.POSITIVE_INFINITY)).toBe(true)
    // None of them counts under a limit.
    expect([await take('ann', 2.9), await take('ann', 2.9), await take('ann', 2.9)]).toEqual([true, true, false])
    expect([await take('bob', 1, 60_000 / 7), await take('bob', 1, 60_000 / 7)]).toEqual([true, false])
    expect(await take('eve', 0.5)).toBe(false)
  })

  test('at every instant a hit is admitted if fewer than its limit were in its window', async () => {
    const hit = fc.record({ afterMs: fc.nat({ max: 400 }), limit: fc.integer({ min: 0, max: 6 }) })
    await fc.assert(
      fc.asyncProperty(fc.array(hit, { maxLength: 60 }), async (hits) => {
        let now = 1_000_000
        const take = taking(memoryStore({ clock: () => now }))
        const admitted: number[] = []
        for (const { afterMs, limit } of hits) {
          now += afterMs
          const isFree = admitted.filter((at) => at > now - 1000).length < limit
          expect(await take('ann', limit, 1000)).toBe(isFree)
          if (isFree) admitted.push(now)
        }
      }),
      { numRuns: 100 },
    )
  })
})

describe('rate-limiter-flexible', () => {
  test.each(STORES)(
    'a key that is deleted is forgotten with every duration that it was counted by, %s',
    async (_store, newStore) => {
      const limiter = sluiceLimiter({ points: 1, duration: 60, keyPrefix: freshName(), store: await newStore() })
      const durations = [undefined, { customDuration: 30 }, { customDuration: 7200 }]
      for (const options of durations) await limiter.consume('ann', 1, options)
      expect(await limiter.delete('ann')).toBe(true)
      for (const options of durations) expect((await limiter.consume('ann', 1, options)).consumedPoints).toBe(1)
      for (const options of durations) await refused(limiter.consume('ann', 1, options))
    },
  )

  test('an empty name is an error of `keyPrefix`', () => {
    expect(() => sluiceLimiter({ points: 1, duration: 1, keyPrefix: '' })).toThrow(
      'rate-limiter-flexible: keyPrefix: expected 1 to 64 letters, digits, "_" or "-", got ""',
    )
  })
})

test('a name without room for that of the routes is an error that says how long it may be', () => {
  expect(() => fastifyStore({ name: 'a'.repeat(58) })).toThrow(/name: expected 1 to 57 letters.*-routes/)
  fastifyStore({ name: 'a'.repeat(57) })
})

describe('a key that is empty or missing is an error', () => {
  const missing = [undefined, null, '', {}, Number.NaN].map((key) => [key as never])

  test.each(missing)('%j', async (key) => {
    const error = /key: expected a non-empty string or a number/
    const plugin = new (fastifyStore({ name: freshName() }))({})
    for (const routes of [plugin, plugin.child({ routeInfo: { method: 'GET', url: '/' } })]) {
      for (const method of ['incr', 'read'] as const) {
        const failure = new Promise((resolve) => routes[method](key, resolve, 1000, 5))
        expect(String(await failure)).toMatch(error)
      }
    }
    const storage = sluiceStorage({ name: freshName() })
    await expect(storage.increment(key, 1000, 5, 0, 'default')).rejects.toThrow(error)
    const limiter = sluiceLimiter({ points: 5, duration: 1, keyPrefix: freshName() })
    for (const call of [
      () => limiter.consume(key),
      () => limiter.penalty(key),
      () => limiter.reward(key),
      () => limiter.get(key),
      () => limiter.set(key, 1),
      () => limiter.set(key, 6),
      () => limiter.block(key, 1),
      () => limiter.delete(key),
    ]) {
      await expect(call()).rejects.toThrow(error)
    }
    const store = expressStore({ name: freshName() })
    store.init({ limit: 5, windowMs: 1000 })
    for (const call of [() => store.increment(key), () => store.get(key), () => store.resetKey(key)]) {
      await expect(call()).rejects.toThrow(error)
    }
  })
})

describe.each(STORES)('numbers that are given once, %s', (_store, newStore) => {
  test('express-rate-limit and hono-rate-limiter admit by a limit of infinity, and round fractions down', async () => {
    const stored = async (limit: number, windowMs = 60_000) => {
      const store = expressStore({ name: freshName(), store: await newStore() })
      store.init({ limit, windowMs })
      const hits = [await store.increment('ann'), await store.increment('ann'), await store.increment('ann')]
      await store.decrement('ann')
      await store.resetKey('ann')
      return hits.map(({ totalHits }) => totalHits <= limit)
    }
    expect(await stored(Number.POSITIVE_INFINITY)).toEqual([true, true, true])
    expect(await stored(2.5, 60_000.5)).toEqual([true, true, false])
  })

  test('rate-limiter-flexible admits all points of infinity but of blocked keys, and rounds fractions down', async () => {
    const made = async (points: number) =>
      sluiceLimiter({ points, duration: 60, keyPrefix: freshName(), store: await newStore() })
    const endless = await made(Number.POSITIVE_INFINITY)
    const { consumedPoints, remainingPoints } = await endless.consume('ann', 1e6)
    expect([consumedPoints, remainingPoints]).toEqual([1e6, Number.POSITIVE_INFINITY])
    await endless.block('ann', 60)
    expect(await refused(endless.consume('ann'))).toMatchObject({ remainingPoints: 0 })
    const few = await made(2.5)
    expect((await few.consume('ann', 2)).remainingPoints).toBe(0)
    expect(await refused(few.consume('ann'))).toMatchObject({ remainingPoints: 0 })
  })
})
