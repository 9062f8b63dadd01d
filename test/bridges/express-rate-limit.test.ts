import { setTimeout as sleep } from 'node:timers/promises'
import { type HitStoreOptions, sluiceStore } from '@sluice/bridges/express-rate-limit'
import { fixedWindow, memoryStore, SluiceError, type Store } from '@sluice/core'
import express, { type Request, type Response } from 'express'
import { type Options, rateLimit as rateLimit8 } from 'express-rate-limit'
import { rateLimit as rateLimit7 } from 'express-rate-limit7'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { redisForTests } from '../support/redis-for-tests.js'
import type { RedisServer } from '../support/redis-server.js'
import { freshName, inMemory, listen, type NewStore, onRedis, statuses } from './support.js'

type Limiter = typeof rateLimit8

let server: RedisServer
beforeAll(async () => {
  ;({ server } = await redisForTests())
})

/** What a test may vary. */
interface Setup {
  readonly options?: Partial<Options>
  readonly bridge?: HitStoreOptions
  readonly handler?: (req: Request, res: Response) => unknown
}

const VERSIONS: readonly [name: string, rateLimit: Limiter, newStore: NewStore][] = [
  ['express-rate-limit 8 in memory', rateLimit8, inMemory],
  ['express-rate-limit 8 on Redis', rateLimit8, onRedis(() => server)],
  ['express-rate-limit 7 in memory', rateLimit7 as unknown as Limiter, inMemory],
]

describe.each(VERSIONS)('%s with the bridge', (_name, rateLimit, newStore) => {
  async function make({ options = {}, bridge = {} }: Setup = {}) {
    const store = sluiceStore({ name: freshName(), store: await newStore(), ...bridge })
    return { store, limiter: rateLimit({ windowMs: 60_000, limit: 2, validate: false, ...options, store }) }
  }
  async function serve({ handler = (_req, res) => void res.send('hi'), ...setup }: Setup = {}) {
    const { store, limiter } = await make(setup)
    const app = express()
    app.get('/', limiter, async (req, res) => void (await handler(req, res)))
    app.use((error: Error, _req: Request, res: Response, _next: unknown) => void res.status(500).send(error.message))
    return { url: await listen(app), store, limiter }
  }

  test('refuses a function as limit without `maxLimit`, in `init` and at each request', async () => {
    const log = vi.spyOn(console, 'error').mockImplementation(() => {})
    const store = sluiceStore({ name: freshName(), store: await newStore() })
    try {
      rateLimit({ limit: () => 5, store, validate: false })
    } catch (error) {
      expect(error).toBeInstanceOf(SluiceError)
    }
    await expect(store.increment('ann')).rejects.toThrow('maxLimit: expected the highest result of the function')
    log.mockRestore()
  })

  test('refuses two callers of one store with different numbers', async () => {
    const { store } = await make()
    expect(() => store.init({ windowMs: 60_000, limit: 3 })).toThrow('another caller of this store has 2 per 60000 ms')
    await expect(store.increment('ann')).rejects.toThrow('another caller')
  })

  test('refuses two stores of one name with different numbers', async () => {
    const name = freshName()
    const shared = await newStore()
    sluiceStore({ name, store: shared }).init({ windowMs: 1000, limit: 5 })
    sluiceStore({ name, store: shared }).init({ windowMs: 1000, limit: 5 })
    const third = sluiceStore({ name, store: shared })
    expect(() => third.init({ windowMs: 1000, limit: 6 })).toThrow('another bridge of this name has 5 per 1000 ms')
  })

  test('refuses `maxLimit` beside a number, numbers that no limit has, and unknown options', async () => {
    const store = await newStore()
    const init = (options: HitStoreOptions, limit: number, windowMs = 1000) =>
      sluiceStore({ name: freshName(), store, ...options }).init({ limit, windowMs })
    expect(() => init({ maxLimit: 5 }, 5)).toThrow('maxLimit: expected none beside a limit that is a number')
    expect(() => init({}, -1)).toThrow('limit: expected a whole number of at least 0, got -1')
    expect(() => init({}, Number.NaN)).toThrow('limit: expected a whole number')
    expect(() => init({}, 5, 0.5)).toThrow('windowMs: expected whole milliseconds')
    expect(() => init({}, 0, 0)).toThrow('windowMs: expected whole milliseconds')
    expect(() => init({}, 5, '1m' as never)).toThrow(
      'windowMs: expected whole milliseconds, from 1 to 3153600000000 (100 years), got "1m"',
    )
    expect(() => init({}, 2_000_000_000, 86_400_000)).toThrow(/^bridge "[^"]+": limit: expected units times window/)
    expect(() => sluiceStore({ prefix: 'api' } as never)).toThrow('prefix: unknown option')
    expect(() => sluiceStore({ name: 'a b' })).toThrow('name: expected 1 to 64 letters')
    expect(() => sluiceStore({ maxHits: 0 })).toThrow('maxHits: expected a whole number of at least 1')
    await expect(sluiceStore().increment('ann')).rejects.toThrow('expected init with the limit')
  })

  test('counts by another algorithm', async () => {
    const algorithm = (rate: { limit: number; window: number }) => fixedWindow({ ...rate, anchor: 'first-request' })
    const { store } = await make({ bridge: { algorithm } })
    const first = await store.increment('ann')
    await sleep(1000)
    const second = await store.increment('ann')
    // The end of the window, where a log says when its newest entry expires: a second later. A busy process sees each reply late.
    expect(Number(second.resetTime) - Number(first.resetTime)).toBeLessThan(500)
  })

  test('under 64 parallel requests with `skipFailedRequests` exceeds no limit and loses no hit', async () => {
    const limit = 10
    let [inside, most] = [0, 0]
    const { url, store } = await serve({
      options: { limit, skipFailedRequests: true, keyGenerator: () => 'ann' },
      handler: async (req, res) => {
        inside++
        most = Math.max(most, inside)
        await sleep(5)
        inside--
        res.status(Number(req.query.status)).end()
      },
    })
    await Promise.all(Array.from({ length: 64 }, () => statuses(`${url}?status=400`, 4)))
    // A hit that is taken back frees its place, so never more than the limit are inside.
    expect(most).toBeLessThanOrEqual(limit)
    await expect.poll(() => store.get('ann')).toBeUndefined()
    const all = (await Promise.all(Array.from({ length: 64 }, () => statuses(`${url}?status=200`, 1)))).flat()
    expect(all.filter((status) => status === 200)).toHaveLength(limit)
  })
})

describe('express-rate-limit 8, by a clock', () => {
  async function serve(options: Partial<Options>, handler: (req: Request, res: Response) => unknown) {
    let now = 0
    const store = sluiceStore({ store: memoryStore({ clock: () => now }), name: freshName() })
    const app = express()
    app.get('/', rateLimit8({ windowMs: 60_000, limit: 2, validate: false, ...options, store }), async (req, res) => {
      await handler(req, res)
    })
    return { url: await listen(app), store, pass: (ms: number) => (now += ms) }
  }

  test('a refused client is accepted when its oldest request is one window old, repeatedly', async () => {
    const { url, pass } = await serve({}, (_req, res) => res.end())
    for (let round = 0; round < 2; round++) {
      expect(await statuses(url, 3)).toEqual([200, 200, 429])
      pass(59_999)
      expect(await statuses(url, 1)).toEqual([429])
      pass(1)
    }
  })

  test('a burst at the end of a window is not followed by another at the start of the next', async () => {
    const { url, pass } = await serve({}, (_req, res) => res.end())
    pass(59_000)
    expect(await statuses(url, 2)).toEqual([200, 200])
    pass(2000)
    expect(await statuses(url, 1)).toEqual([429])
  })
})

test('a window that looks like seconds is that of the peer, in ms, without a warning', async () => {
  const warn = vi.spyOn(process, 'emitWarning')
  const store = sluiceStore({ name: freshName() })
  store.init({ limit: 1, windowMs: 60 })
  await store.increment('ann')
  expect(warn.mock.calls).toEqual([])
  warn.mockRestore()
})

test('a store that is away is decided for as `unavailable` says', async () => {
  const away: Store = {
    ...(await inMemory()),
    decide: () => Promise.reject(new SluiceError('STORE_UNAVAILABLE', 'away')),
  }
  const hitsOf = async (decide: 'local' | 'allow' | 'deny') => {
    const store = sluiceStore({ name: freshName(), store: away, unavailable: { decide } })
    store.init({ limit: 1, windowMs: 60_000 })
    return [(await store.increment('ann')).totalHits, (await store.increment('ann')).totalHits]
  }
  expect(await hitsOf('local')).toEqual([1, 2])
  expect(await hitsOf('allow')).toEqual([1, 1])
  expect(await hitsOf('deny')).toEqual([2, 2])
})
