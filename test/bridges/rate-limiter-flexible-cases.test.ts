/**
 * The own cases of rate-limiter-flexible, each by its name: those of `RateLimiterAbstract`, `RateLimiterMemory`, `RateLimiterRedis`
 * and `RateLimiterRes`. A name that ends with a reason in brackets differs by design.
 */

import { type FlexibleOptions, sluiceLimiter } from '@sluice/bridges/rate-limiter-flexible'
import { memoryStore, SluiceError, type Store } from '@sluice/core'
import { BANS } from '@sluice/core/store'
import * as peer from 'rate-limiter-flexible'
import { beforeAll, describe, expect, test } from 'vitest'
import { redisForTests } from '../support/redis-for-tests.js'
import type { RedisServer } from '../support/redis-server.js'
import { freshName, inMemory, type NewStore, oneOnRedis, refused } from './support.js'

let server: RedisServer
beforeAll(async () => {
  ;({ server } = await redisForTests())
})

const STORES: readonly [name: string, newStore: NewStore][] = [
  ['in memory', inMemory],
  ['on Redis', oneOnRedis(() => server)],
]

type Options = Partial<FlexibleOptions>
const limiterOf = (options: Options) => sluiceLimiter({ keyPrefix: freshName(), points: 4, duration: 60, ...options })

/** A limiter whose time passes by hand. */
function byClock(options: Options) {
  let now = 0
  const limiter = limiterOf({ store: memoryStore({ clock: () => now }), ...options })
  return { limiter, pass: (ms: number) => (now += ms) }
}

const fail = () => Promise.reject(new SluiceError('STORE_UNAVAILABLE', 'away'))
const bans = { block: fail, unblock: fail, strike: fail }
const away: Store = { decide: fail, reset: fail, close: fail, [BANS]: bans }
const errorOf = (options: object) => () => limiterOf(options as Options)

describe('RateLimiterAbstract', () => {
  test('do not prefix key, if keyPrefix is empty string [a name is required]', () => {
    expect(errorOf({ keyPrefix: '' })).toThrow('expected 1 to 64 letters')
  })

  test('accepts number as points value', () => {
    expect(limiterOf({ points: 10 }).points).toBe(10)
  })

  test('accepts zero as points value', () => {
    expect(limiterOf({ points: 0 }).points).toBe(0)
  })

  test('accepts negative number as points value', () => {
    expect(limiterOf({ points: -5 }).points).toBe(-5)
  })

  test('throws error if points is not set', () => {
    expect(errorOf({ points: undefined })).toThrow('points: expected a whole number')
  })

  test('throws error if points is null', () => {
    expect(errorOf({ points: null })).toThrow('points: expected a whole number')
  })

  test('throws error if points is a string', () => {
    expect(errorOf({ points: '10' })).toThrow('points: expected a whole number')
  })

  test('throws error if points is an object', () => {
    expect(errorOf({ points: {} })).toThrow('points: expected a whole number')
  })

  test('throws error if points is a boolean', () => {
    expect(errorOf({ points: true })).toThrow('points: expected a whole number')
  })

  test('accepts positive number as duration value', () => {
    expect(limiterOf({ duration: 5 }).duration).toBe(5)
  })

  test('accepts zero as duration value [a window is required]', () => {
    expect(errorOf({ duration: 0 })).toThrow('duration: expected seconds of at least 0.001')
  })

  test('throws error if duration is not set', () => {
    expect(errorOf({ duration: undefined })).toThrow('duration: expected seconds')
  })

  test('throws error if duration is negative', () => {
    expect(errorOf({ duration: -1 })).toThrow('duration: expected seconds')
  })

  test('throws error if duration is null', () => {
    expect(errorOf({ duration: null })).toThrow('duration: expected seconds')
  })

  test('throws error if duration is a string', () => {
    expect(errorOf({ duration: '5' })).toThrow('duration: expected seconds')
  })

  test('throws error if duration is an object', () => {
    expect(errorOf({ duration: {} })).toThrow('duration: expected seconds')
  })

  describe('parseKey', () => {
    test('removes default keyPrefix and colon from key', () => {
      const limiter = sluiceLimiter({ points: 4, duration: 1 })
      expect(limiter.getKey('test-key')).toBe('rlflx:test-key')
      expect(limiter.parseKey('rlflx:test-key')).toBe('test-key')
    })

    test('removes custom keyPrefix and colon from key', () => {
      const limiter = limiterOf({ keyPrefix: 'custom' })
      expect(limiter.getKey('test-key')).toBe('custom:test-key')
      expect(limiter.parseKey('custom:test-key')).toBe('test-key')
    })

    test('returns key as-is when keyPrefix is empty [a name is required]', () => {
      expect(errorOf({ keyPrefix: '' })).toThrow('expected 1 to 64 letters')
    })

    test('handles key with colon in the middle', () => {
      const limiter = sluiceLimiter({ points: 4, duration: 1 })
      expect(limiter.getKey('user:123:action')).toBe('rlflx:user:123:action')
      expect(limiter.parseKey('rlflx:user:123:action')).toBe('user:123:action')
    })
  })
})

describe.each(STORES)('RateLimiterMemory and RateLimiterRedis, %s', (_name, newStore) => {
  const make = async (options: Options) => limiterOf({ store: await newStore(), ...options })

  test('consume 1 point', async () => {
    const limiter = await make({ points: 2, duration: 50 })
    expect((await limiter.consume('a')).consumedPoints).toBe(1)
    expect((await limiter.get('a'))?.consumedPoints).toBe(1)
  })

  test('can not consume more than maximum points', async () => {
    const limiter = await make({ points: 1, duration: 50 })
    expect(await refused(limiter.consume('a', 2))).toMatchObject({ msBeforeNext: 50_000, consumedPoints: 2 })
  })

  test('rejected when consume more than maximum points', async () => {
    const limiter = await make({ points: 1, duration: 50 })
    await limiter.consume('a')
    const { msBeforeNext, remainingPoints } = await refused(limiter.consume('a'))
    expect(msBeforeNext).toBeGreaterThan(0)
    expect(remainingPoints).toBe(0)
  })

  test('does not allow to consume if points is zero', async () => {
    const limiter = await make({ points: 0, duration: 50 })
    expect(await refused(limiter.consume('a', 1))).toMatchObject({ msBeforeNext: 50_000, remainingPoints: 0 })
  })

  test('when resetting maximum points: consume 2 points', async () => {
    const limiter = await make({ points: 1, duration: 50 })
    Object.assign(limiter, { points: 3 })
    expect((await limiter.consume('a', 2)).consumedPoints).toBe(2)
  })

  test('when resetting maximum points: rejected when consume more than maximum points', async () => {
    const limiter = await make({ points: 1, duration: 50 })
    Object.assign(limiter, { points: 3 })
    expect((await refused(limiter.consume('a', 4))).msBeforeNext).toBe(50_000)
  })

  test('when points are passed as decimal numbers, throws error', async () => {
    await expect((await make({})).consume('a', 1.1)).rejects.toThrow('points: expected')
  })

  test('when passing points as float without decimal values, does not throw an error', async () => {
    expect((await (await make({ points: 3 })).consume('a', 2.0)).consumedPoints).toBe(2)
  })

  test('when passing points as string with decimal values, throws error', async () => {
    await expect((await make({})).consume('a', '2.0' as never)).rejects.toThrow('points: expected')
  })

  test('when passing points as string without decimal values, does not throw an error [points are numbers]', async () => {
    await expect((await make({})).consume('a', '2' as never)).rejects.toThrow('points: expected')
  })

  test('makes penalty', async () => {
    const limiter = await make({ points: 3, duration: 50 })
    await limiter.consume('a')
    await limiter.penalty('a')
    expect((await limiter.get('a'))?.consumedPoints).toBe(2)
  })

  test('reward points', async () => {
    const limiter = await make({ points: 1, duration: 50 })
    await limiter.consume('a')
    await limiter.reward('a')
    expect(await limiter.get('a')).toBeNull()
  })

  test('when calling penalty multiple times, does not fail', async () => {
    const limiter = await make({ points: 10, duration: 50 })
    await limiter.penalty('a', 2)
    await limiter.penalty('a', 3)
    expect((await limiter.get('a'))?.consumedPoints).toBe(5)
  })

  test('when calling reward multiple times, does not fail [a reward takes nothing below 0]', async () => {
    const limiter = await make({ points: 10, duration: 50 })
    await limiter.reward('a', 2)
    expect((await limiter.reward('a', 3)).consumedPoints).toBe(0)
  })

  test('use keyPrefix from options', async () => {
    expect((await make({ keyPrefix: 'test' })).getKey('key')).toBe('test:key')
  })

  test('blocks key for block duration when consumed more than points', async () => {
    const limiter = await make({ points: 1, duration: 10, blockDuration: 20 })
    expect((await refused(limiter.consume('a', 2))).msBeforeNext).toBeGreaterThan(10_000)
  })

  test('block custom key', async () => {
    const limiter = await make({ points: 1, duration: 10 })
    await limiter.block('a', 20)
    const { msBeforeNext } = await refused(limiter.consume('a'))
    expect(msBeforeNext).toBeGreaterThan(10_000)
    expect(msBeforeNext).toBeLessThanOrEqual(20_000)
  })

  test('get by key', async () => {
    const limiter = await make({ points: 2, duration: 50 })
    await limiter.consume('a')
    expect((await limiter.get('a'))?.remainingPoints).toBe(1)
  })

  test('get points', async () => {
    const limiter = await make({ points: 2, duration: 50 })
    await limiter.consume('a')
    expect((await limiter.get('a'))?.consumedPoints).toBe(1)
  })

  test('get resolves null if key is not set', async () => {
    expect(await (await make({})).get('none')).toBeNull()
  })

  test('delete resolves true if key is set', async () => {
    const limiter = await make({})
    await limiter.consume('a')
    expect(await limiter.delete('a')).toBe(true)
    expect(await limiter.get('a')).toBeNull()
  })

  test('delete resolves false if key is not set', async () => {
    expect(await (await make({})).delete('none')).toBe(false)
  })

  test('consume applies options.customDuration to set expire', async () => {
    const limiter = await make({ points: 1, duration: 50 })
    expect((await limiter.consume('a', 1, { customDuration: 10 })).msBeforeNext).toBeLessThanOrEqual(10_000)
  })

  test('consume applies options.customDuration to set not expiring key [a window is required]', async () => {
    const limiter = await make({ points: 1, duration: 50 })
    await expect(limiter.consume('a', 1, { customDuration: 0 })).rejects.toThrow('customDuration: expected seconds')
  })

  test('penalty applies options.customDuration to set expire', async () => {
    const limiter = await make({ points: 1, duration: 50 })
    expect((await limiter.penalty('a', 1, { customDuration: 10 })).msBeforeNext).toBeLessThanOrEqual(10_000)
  })

  test('reward applies options.customDuration to set expire', async () => {
    const limiter = await make({ points: 1, duration: 50 })
    expect((await limiter.reward('a', 1, { customDuration: 10 })).msBeforeNext).toBeLessThanOrEqual(10_000)
  })

  test('block key forever, if secDuration is 0', async () => {
    const limiter = await make({ points: 1, duration: 1 })
    await limiter.block('a', 0)
    expect(await limiter.get('a')).toMatchObject({ consumedPoints: 2, msBeforeNext: -1 })
  })

  test('set points by key [more than `points` is a block, which is read as 1 above them]', async () => {
    const limiter = await make({ points: 10, duration: 60 })
    await limiter.set('a', 12)
    expect(await limiter.get('a')).toMatchObject({ consumedPoints: 11, remainingPoints: 0 })
  })

  test('set points by key forever [more than `points` is a block, which is read as 1 above them]', async () => {
    const limiter = await make({ points: 10, duration: 60 })
    await limiter.set('a', 12, 0)
    expect(await limiter.get('a')).toMatchObject({ consumedPoints: 11, msBeforeNext: -1 })
  })
})

describe('RateLimiterMemory and RateLimiterRedis, by a clock', () => {
  test('do not block key second time until block expires no matter how many points consumed', async () => {
    const { limiter, pass } = byClock({ points: 1, blockDuration: 2 })
    await refused(limiter.consume('a', 2))
    pass(1201)
    expect((await refused(limiter.consume('a'))).msBeforeNext).toBe(799)
  })

  test('block expires in blockDuration seconds', async () => {
    const { limiter, pass } = byClock({ points: 1, blockDuration: 2 })
    await refused(limiter.consume('a', 2))
    pass(2000)
    expect((await limiter.consume('a')).consumedPoints).toBe(1)
  })

  test('consume should start new time window if previous already expired', async () => {
    const { limiter, pass } = byClock({ points: 2, duration: 5 })
    await limiter.consume('a')
    pass(5000)
    expect(await limiter.consume('a')).toMatchObject({ consumedPoints: 1, remainingPoints: 1, msBeforeNext: 5000 })
  })
})

describe('options that are replaced', () => {
  test('execute evenly over duration [execEvenly is an error]', () => {
    expect(errorOf({ points: 2, duration: 5, execEvenly: true })).toThrow('execEvenly: expected false')
  })

  test('execute evenly over duration with minimum delay 20 ms [execEvenly is an error]', () => {
    expect(errorOf({ execEvenlyMinDelayMs: 20 })).toThrow('execEvenlyMinDelayMs: unknown option')
  })

  test('updates msBeforeNext after execEvenly delay [execEvenly is an error]', () => {
    const limiter = limiterOf({})
    expect(() => (limiter.execEvenly = true)).toThrow('execEvenly: expected false')
  })

  test('does not expire key if duration set to 0 [a window is required]', () => {
    expect(errorOf({ points: 2, duration: 0 })).toThrow('duration: expected seconds')
  })

  test.each([
    'rejected when consume more than maximum points and multiply delay',
    'when passing custom duration, rejected when consume more than maximum points and multiply delay',
  ])('when customIncrTtlLuaScript is provided: %s [its script is an error]', () => {
    expect(errorOf({ customIncrTtlLuaScript: 'return {1, 1}' })).toThrow('customIncrTtlLuaScript: unknown option')
  })

  test.each([
    ['block key in memory when inMemory block options set up', 'inMemoryBlockOnConsumed'],
    ['block key in memory for msBeforeNext milliseconds', 'inMemoryBlockOnConsumed'],
    ['reject after block key in memory for msBeforeNext, if consumed more than points', 'inMemoryBlockOnConsumed'],
    ['expire inMemory blocked key', 'inMemoryBlockDuration'],
    ['throws error when inMemoryBlockOnConsumed is not set, but inMemoryBlockDuration is set', 'inMemoryBlockDuration'],
    ['throws error when inMemoryBlockOnConsumed less than points', 'inMemoryBlockOnConsumed'],
    ['block key in memory works with blockDuration on store', 'inMemoryBlockDuration'],
  ])('%s [blocks in memory are an error, as refusals are remembered]', (_case, option) => {
    expect(errorOf({ [option]: 1 })).toThrow(`${option}: unknown option: leave it out: refusals are remembered`)
  })
})

describe('RateLimiterRedis, while Redis is away', () => {
  const uninsured = (options: Options = {}) => limiterOf({ store: away, unavailable: { decide: 'deny' }, ...options })

  test('throws error on RedisClient error [it is decided for]', async () => {
    expect(await refused(uninsured().consume('a'))).toMatchObject({ remainingPoints: 0 })
  })

  test('attempt to invoke redis if rejectIfRedisNotReady is not set [it is decided for]', async () => {
    expect((await limiterOf({ store: away, points: 2 }).consume('a')).consumedPoints).toBe(1)
  })

  test.each(['ioredis', 'node-redis'])(
    'get throws error with disconnected %s [rejectIfRedisNotReady is an error that names the timeout]',
    () => {
      expect(errorOf({ rejectIfRedisNotReady: true })).toThrow('redisStore(client, { timeout })')
    },
  )

  test('delete rejects on error', async () => {
    await expect(uninsured().delete('a')).rejects.toThrow('away')
  })

  test('reject with error, if internal block by blockDuration failed [the block is part of the decision]', async () => {
    expect(await refused(uninsured({ blockDuration: 2 }).consume('a', 5))).toMatchObject({ remainingPoints: 0 })
  })

  test('insuranceLimiter of a bridge is an error that names `unavailable`', () => {
    expect(errorOf({ insuranceLimiter: limiterOf({}) })).toThrow("unavailable: { decide: 'local'")
  })
})

describe('RateLimiterRedis of the peer, insured by the bridge', () => {
  /** A Redis limiter of the peer whose client is broken. */
  function insured(insurance: Options) {
    const broken = () => {
      throw new Error('broken')
    }
    const storeClient = { multi: broken, rlflxIncr: broken }
    const insuranceLimiter = limiterOf({ peer: peer as never, ...insurance })
    const all = { storeClient, points: 1, duration: 1, insuranceLimiter }
    return { insuranceLimiter, limiter: new peer.RateLimiterRedis(all as never) }
  }

  test('consume using insuranceLimiter when RedisClient error', async () => {
    const { limiter } = insured({ points: 2, duration: 2 })
    expect(await limiter.consume('a')).toMatchObject({ remainingPoints: 1, msBeforeNext: 2000 })
  })

  test('penalty using insuranceLimiter when RedisClient error', async () => {
    const { limiter, insuranceLimiter } = insured({ points: 2, duration: 2 })
    await limiter.penalty('a')
    expect((await insuranceLimiter.get('a'))?.consumedPoints).toBe(1)
  })

  test('reward using insuranceLimiter when RedisClient error', async () => {
    const { limiter, insuranceLimiter } = insured({ points: 2, duration: 2 })
    await limiter.consume('a', 2)
    await limiter.reward('a')
    expect((await insuranceLimiter.get('a'))?.consumedPoints).toBe(1)
  })

  test('block using insuranceLimiter when RedisClient error', async () => {
    const { limiter } = insured({ points: 1, duration: 1 })
    expect((await limiter.block('a', 3)).msBeforeNext).toBe(3000)
  })

  test('set using insuranceLimiter when RedisClient error', async () => {
    const { limiter, insuranceLimiter } = insured({ points: 10, duration: 2 })
    expect((await limiter.set('a', 3, 2)).consumedPoints).toBe(3)
    expect((await insuranceLimiter.get('a'))?.consumedPoints).toBe(3)
  })

  test('set using insuranceLimiter for another duration [the duration is that of the limiter]', async () => {
    const { limiter } = insured({ points: 10, duration: 2 })
    await expect(limiter.set('a', 3, 30)).rejects.toThrow('secDuration: expected 2')
  })

  test('set rejects when both RedisClient and insuranceLimiter fail', async () => {
    const { limiter } = insured({ points: 10, duration: 2, store: away })
    await expect(limiter.set('a', 3, 2)).rejects.toThrow('away')
  })

  test('insurance limiter on error consume applies options.customDuration to set expire', async () => {
    const { limiter } = insured({ points: 2, duration: 3 })
    const { remainingPoints, msBeforeNext } = await limiter.consume('a', 1, { customDuration: 1 })
    expect([remainingPoints, msBeforeNext]).toEqual([1, 1000])
  })
})

describe('RateLimiterRes response object', () => {
  const result = () => limiterOf({ points: 4, duration: 5 }).consume('a', 3)

  test('setup defaults on construct [a result comes from a call]', async () => {
    expect(await limiterOf({ points: 1, duration: 5 }).reward('a')).toMatchObject({
      msBeforeNext: 0,
      consumedPoints: 0,
    })
  })

  test.each([
    ['msBeforeNext set and get', 'msBeforeNext', 5000],
    ['points set and get', 'remainingPoints', 1],
    ['consumed points set and get', 'consumedPoints', 3],
    ['isFirstInDuration set and get with cast', 'isFirstInDuration', true],
  ] as const)('%s', async (_case, field, value) => {
    expect((await result())[field]).toBe(value)
  })

  test('returns object on toJSON call', async () => {
    const json = { remainingPoints: 1, msBeforeNext: 5000, consumedPoints: 3, isFirstInDuration: true }
    expect((await result()).toJSON()).toEqual(json)
  })

  test('returns JSON string on toString call', async () => {
    expect(JSON.parse(String(await result()))).toEqual((await result()).toJSON())
  })
})
