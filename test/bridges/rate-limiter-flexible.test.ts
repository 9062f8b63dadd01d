import { type FlexibleOptions, sluiceLimiter } from '@sluice/bridges/rate-limiter-flexible'
import { memoryStore, SluiceError } from '@sluice/core'
import * as peer from 'rate-limiter-flexible'
import { beforeAll, describe, expect, test } from 'vitest'
import { redisForTests } from '../support/redis-for-tests.js'
import type { RedisServer } from '../support/redis-server.js'
import { freshName, inMemory, type NewStore, onRedis, refused } from './support.js'

let server: RedisServer
beforeAll(async () => {
  ;({ server } = await redisForTests())
})

const STORES: readonly [name: string, newStore: NewStore][] = [
  ['in memory', inMemory],
  ['on Redis', onRedis(() => server)],
]

describe.each(STORES)('rate-limiter-flexible %s with the bridge', (_name, newStore) => {
  const make = async (options: Partial<FlexibleOptions> = {}) =>
    sluiceLimiter({
      keyPrefix: freshName(),
      store: await newStore(),
      points: 2,
      duration: 5,
      peer: peer as never,
      ...options,
    })

  test('rewards points, of several hits and of a part of one', async () => {
    const limiter = await make({ points: 10 })
    await limiter.consume('a')
    expect(await limiter.reward('a')).toMatchObject({ consumedPoints: 0, remainingPoints: 10 })
    await limiter.consume('a', 2)
    await limiter.consume('a', 3)
    expect(await limiter.reward('a', 3)).toMatchObject({ consumedPoints: 2 })
    expect(await limiter.reward('a', 5)).toMatchObject({ consumedPoints: 2 })
  })

  test('deletes a key, resolves to whether there was one, and ends its block', async () => {
    const limiter = await make()
    await limiter.consume('a')
    expect([await limiter.delete('a'), await limiter.delete('a')]).toEqual([true, false])
    await limiter.block('a', 60)
    expect(await limiter.delete('a')).toBe(true)
    expect((await limiter.consume('a')).consumedPoints).toBe(1)
  })

  test('sets points by key', async () => {
    const limiter = await make({ points: 10 })
    await limiter.consume('a')
    await limiter.set('a', 7, 5)
    expect(await limiter.get('a')).toMatchObject({ consumedPoints: 7, remainingPoints: 3 })
    await limiter.set('a', 0)
    expect(await limiter.get('a')).toBeNull()
    await limiter.set('a', 12)
    expect(await limiter.get('a')).toMatchObject({ remainingPoints: 0 })
    await refused(limiter.consume('a'))
    await expect(limiter.set('a', 1, 60)).rejects.toThrow('secDuration: expected 5, the duration of the limiter')
  })

  test('makes a penalty', async () => {
    const limiter = await make({ points: 3 })
    await limiter.consume('a')
    expect(await limiter.penalty('a')).toMatchObject({ consumedPoints: 2 })
    // Beyond the maximum it charges what has room.
    expect(await limiter.penalty('a', 5)).toMatchObject({ remainingPoints: 0 })
    expect((await limiter.get('a'))?.consumedPoints).toBe(3)
    expect(await limiter.penalty('a')).toMatchObject({ consumedPoints: 4, remainingPoints: 0 })
  })

  describe('wrappers of the peer', () => {
    test('a union consumes from all limiters, and rejects with those that refuse', async () => {
      const [one, two] = [await make({ keyPrefix: 'limit1', points: 1 }), await make({ keyPrefix: 'limit2' })]
      const union = new peer.RateLimiterUnion(one as never, two as never)
      expect(Object.keys(await union.consume('a'))).toEqual(['limit1', 'limit2'])
      const refusal = await refused(union.consume('a'))
      expect(Object.keys(refusal)).toEqual(['limit1'])
    })

    test('a bursty limiter consumes from the second when the first refuses', async () => {
      const bursty = new peer.BurstyRateLimiter(
        (await make({ points: 1 })) as never,
        (await make({ points: 1 })) as never,
      )
      await bursty.consume('a')
      await bursty.consume('a')
      expect(await refused(bursty.consume('a'))).toBeInstanceOf(peer.RateLimiterRes)
    })

    test('a queue removes tokens in their order', async () => {
      const limiter = await make({ points: 1, duration: 0.1 })
      const queue = new peer.RateLimiterQueue(limiter as never)
      const done: number[] = []
      await Promise.all([1, 2, 3].map((n) => queue.removeTokens(1, 'a').then(() => done.push(n))))
      expect(done).toEqual([1, 2, 3])
      await expect(queue.removeTokens(2, 'a')).rejects.toThrow('exceeds maximum 1')
    })

    test('lists and timeouts wrap it, and it insures another', async () => {
      const limiter = await make({ points: 1 })
      const listed = new peer.RLWrapperBlackAndWhite({
        limiter: limiter as never,
        blackList: ['bad'],
        whiteList: ['good'],
      })
      await refused(listed.consume('bad'))
      for (let n = 0; n < 3; n++) await listed.consume('good')
      const timed = new peer.RLWrapperTimeouts({ limiter: limiter as never, timeoutMs: 5000 } as never)
      await timed.consume('a')
      await refused(timed.consume('a'))
      const storeClient = {
        multi: () => {
          throw new Error('away')
        },
        rlflxIncr: () => {
          throw new Error('away')
        },
      }
      const insured = new peer.RateLimiterRedis({
        storeClient,
        points: 1,
        duration: 5,
        insuranceLimiter: limiter as never,
      })
      expect((await insured.consume('b')).consumedPoints).toBe(1)
      await refused(insured.consume('b'))
    })
  })
})

describe('rate-limiter-flexible with the bridge', () => {
  const make = (options: Partial<FlexibleOptions>) => sluiceLimiter({ points: 1, duration: 1, ...options })

  test('results and limiter are classes of the bridge without the peer', async () => {
    const limiter = make({})
    const result = await limiter.consume('a')
    expect(String(result)).toBe('{"remainingPoints":0,"msBeforeNext":1000,"consumedPoints":1,"isFirstInDuration":true}')
    expect(result).not.toBeInstanceOf(peer.RateLimiterRes)
  })

  test('a block ends, and is not prolonged by further refusals', async () => {
    let now = 0
    const limiter = make({ store: memoryStore({ clock: () => now }), blockDuration: 2 })
    await limiter.consume('a')
    await refused(limiter.consume('a'))
    now += 1201
    expect((await refused(limiter.consume('a'))).msBeforeNext).toBe(799)
    now += 799
    expect((await limiter.consume('a')).consumedPoints).toBe(1)
  })

  test('a block shorter than the duration lasts until there is room', async () => {
    let now = 0
    const limiter = make({ store: memoryStore({ clock: () => now }), blockDuration: 0.2 })
    await limiter.consume('a')
    now += 300
    expect((await refused(limiter.consume('a'))).msBeforeNext).toBe(700)
    now += 699
    expect((await refused(limiter.consume('a'))).msBeforeNext).toBe(1)
    now += 1
    expect((await limiter.consume('a')).consumedPoints).toBe(1)
  })

  test('refuses options of the peer that do nothing here, and says which option does', () => {
    expect(() => make({ storeClient: {} } as never)).toThrow('storeClient: unknown option: store: redisStore(client)')
    expect(() => make({ insuranceLimiter: {} } as never)).toThrow("unavailable: { decide: 'local', share: 0.25 }")
    expect(() => make({ execEvenly: true } as never)).toThrow(
      'execEvenly: expected false, got true: use delay() or queue()',
    )
    for (const points of [Number.NaN, undefined]) {
      const expected = `points: expected a whole number, of which 0 or less refuses everything, got ${points}`
      expect(() => make({ points: points as number })).toThrow(expected)
    }
    for (const duration of [0, 4_000_000_000]) {
      const expected = 'duration: expected seconds of at least 0.001 and at most 3153600000, in whole milliseconds'
      expect(() => make({ duration })).toThrow(`${expected}, got ${duration}`)
    }
    expect(() => make({ duration: '5' as never })).toThrow('duration: expected seconds')
    expect(() => make({ blockDuration: -1 })).toThrow('blockDuration: expected seconds of at least 0')
    expect(() => make({ keyPrefix: 'a b' })).toThrow('keyPrefix: expected 1 to 64 letters')
    expect(make({ duration: 2.3 }).msDuration).toBe(2300)
  })

  test('refuses points and options of a call that it cannot have, by their names', async () => {
    const limiter = make({})
    for (const method of ['consume', 'penalty', 'reward'] as const) {
      await expect(limiter[method]('a', -1)).rejects.toThrow('points: expected a whole number of at least 0, got -1')
      await expect(limiter[method]('a', 1, null as never)).rejects.toThrow('options: expected an object, got null')
    }
    await expect(limiter.set('a', -1)).rejects.toThrow('points: expected a whole number of at least 0, got -1')
  })

  test('refuses two limiters of one name with different numbers, and evenly executed calls of wrappers', async () => {
    const store = memoryStore()
    make({ store })
    expect(() => make({ store, points: 2 })).toThrow('another bridge of this name has 1 per 1000 ms')
    const limiter = make({})
    limiter.execEvenly = false
    limiter.blockDuration = 5
    await limiter.consume('a')
    expect((await refused(limiter.consume('a'))).msBeforeNext).toBe(5000)
    expect(() => (limiter.execEvenly = true)).toThrow('execEvenly: expected false')
  })

  test('while the store is away, it decides as `unavailable` says', async () => {
    const decide = () => Promise.reject(new SluiceError('STORE_UNAVAILABLE', 'away'))
    const store = { ...memoryStore(), decide }
    const limiter = make({ store, unavailable: { decide: 'deny' } })
    expect(await refused(limiter.consume('a'))).toMatchObject({ consumedPoints: 2 })
    expect((await make({ store, unavailable: { decide: 'local' } }).consume('b')).consumedPoints).toBe(1)
  })
})
