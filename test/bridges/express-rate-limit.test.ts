import { setTimeout as sleep } from 'node:timers/promises'
import { type HitStoreOptions, sluiceStore } from '@sluice/bridges/express-rate-limit'
import { fixedWindow, memoryStore, SluiceError, type Store } from '@sluice/core'
import express, { type Request, type Response } from 'express'
import { type Options, rateLimit as rateLimit8 } from 'express-rate-limit'
import { rateLimit as rateLimit7 } from 'express-rate-limit7'
import { parseRateLimit } from 'ratelimit-header-parser'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { redisForTests } from '../support/redis-for-tests.js'
import type { RedisServer } from '../support/redis-server.js'
import { freshName, inMemory, listen, type NewStore, onRedis, statuses, statusOf } from './support.js'

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

describe.each(VERSIONS)('%s: its own cases', (_name, rateLimit, newStore) => {
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

  describe('middleware', () => {
    test('calls `init` even if no requests have come in', async () => {
      const { store } = await make()
      await expect(store.get('nobody')).resolves.toBeUndefined()
    })

    test('lets the first request through', async () => {
      const { url } = await serve()
      expect(await statuses(url, 1)).toEqual([200])
    })

    test('refuses additional connections once an address has reached the maximum', async () => {
      const { url } = await serve()
      expect(await statuses(url, 4)).toEqual([200, 200, 429, 429])
    })

    test('refuses all requests if the maximum is 0', async () => {
      const { url } = await serve({ options: { limit: 0 } })
      expect(await statuses(url, 2)).toEqual([429, 429])
    })

    test('shows the message, the status and the JSON that are set, or made by a function', async () => {
      const messages = ['slow down', { error: 'slow' }, () => 'made', async () => 'made late']
      for (const message of messages) {
        const { url } = await serve({ options: { limit: 0, message, statusCode: 420 } })
        const response = await fetch(url)
        expect(response.status).toBe(420)
        const expected = typeof message === 'function' ? await message() : message
        expect(await response.text()).toBe(typeof expected === 'string' ? expected : JSON.stringify(expected))
      }
    })

    test('uses a custom handler', async () => {
      const { url } = await serve({ options: { limit: 0, handler: (_req, res) => void res.status(503).end() } })
      expect(await statusOf(url)).toBe(503)
    })

    test('counts by custom keys', async () => {
      const { url } = await serve({ options: { limit: 1, keyGenerator: (req) => String(req.query.key) } })
      expect(await statuses(`${url}?key=a`, 2)).toEqual([200, 429])
      expect(await statuses(`${url}?key=b`, 2)).toEqual([200, 429])
    })

    test('leaves out requests that skip says, at once or later', async () => {
      for (const skip of [() => true, async () => true]) {
        const { url } = await serve({ options: { limit: 1, skip } })
        expect(await statuses(url, 3)).toEqual([200, 200, 200])
      }
    })

    test('allows the maximum to be a function, at once or later, up to `maxLimit`', async () => {
      const limits = [(req: Request) => Number(req.query.limit), async (req: Request) => Number(req.query.limit)]
      for (const limit of limits) {
        const { url } = await serve({ options: { limit }, bridge: { maxLimit: 4 } })
        expect(await statuses(`${url}?limit=1`, 2)).toEqual([200, 429])
        // The refused request counts, as the store cannot know of it.
        expect(await statuses(`${url}?limit=9`, 3)).toEqual([200, 200, 429])
      }
    })

    test('calculates the remaining hits', async () => {
      const { url } = await serve({ options: { standardHeaders: 'draft-6' } })
      const remaining: (string | null)[] = []
      for (let n = 0; n < 3; n++) remaining.push((await fetch(url)).headers.get('ratelimit-remaining'))
      expect(remaining).toEqual(['1', '0', '0'])
    })

    test('takes hits of failed requests back with `skipFailedRequests`', async () => {
      const { url } = await serve({
        options: { skipFailedRequests: true },
        handler: (req, res) => void res.status(Number(req.query.status)).end(),
      })
      expect(await statuses(`${url}?status=400`, 4)).toEqual([400, 400, 400, 400])
      expect(await statuses(`${url}?status=200`, 3)).toEqual([200, 200, 429])
    })

    test('takes hits back whose connection ended before the response with `skipFailedRequests`', async () => {
      const { url, store } = await serve({
        options: { skipFailedRequests: true, keyGenerator: () => 'ann' },
        handler: (req) => void req.socket.destroy(),
      })
      await expect(fetch(url)).rejects.toThrow()
      await expect.poll(() => store.get('ann')).toBeUndefined()
    })

    test('takes hits of successful requests back with `skipSuccessfulRequests`', async () => {
      const { url } = await serve({
        options: { skipSuccessfulRequests: true },
        handler: (req, res) => void res.status(Number(req.query.status)).end(),
      })
      expect(await statuses(`${url}?status=200`, 4)).toEqual([200, 200, 200, 200])
      expect(await statuses(`${url}?status=401`, 3)).toEqual([401, 401, 429])
    })

    test('takes back by `requestWasSuccessful`', async () => {
      const { url } = await serve({
        options: { skipSuccessfulRequests: true, requestWasSuccessful: (_req, res) => res.statusCode === 418 },
        handler: (req, res) => void res.status(Number(req.query.status)).end(),
      })
      expect(await statuses(`${url}?status=418`, 3)).toEqual([418, 418, 418])
      expect(await statuses(`${url}?status=200`, 3)).toEqual([200, 200, 429])
    })

    test('passes hits and limit to the next handler, also in a custom property', async () => {
      for (const requestPropertyName of ['rateLimit', 'limits']) {
        let info: { limit: number; used: number; remaining: number; resetTime: Date } | undefined
        const { url } = await serve({
          options: { requestPropertyName },
          handler: (req, res) => {
            info = (req as unknown as Record<string, typeof info>)[requestPropertyName]
            res.end()
          },
        })
        await statusOf(url)
        expect(info).toMatchObject({ limit: 2, used: 1, remaining: 1, resetTime: expect.any(Date) })
      }
    })

    test('handles two limiters with different properties independently', async () => {
      const one = await make({ options: { limit: 3, requestPropertyName: 'one' } })
      const two = await make({ options: { limit: 2, requestPropertyName: 'two' } })
      const app = express()
      app.get('/', one.limiter, two.limiter, (req, res) => {
        const { one, two } = req as unknown as Record<string, { remaining: number }>
        res.json([one?.remaining, two?.remaining])
      })
      const url = await listen(app)
      expect(await (await fetch(url)).json()).toEqual([2, 1])
      expect(await (await fetch(url)).json()).toEqual([1, 0])
      expect(await statusOf(url)).toBe(429)
    })
  })

  describe('headers', () => {
    test('sends correct legacy headers', async () => {
      const { url } = await serve()
      const { headers } = await fetch(url)
      expect(headers.get('x-ratelimit-limit')).toBe('2')
      expect(headers.get('x-ratelimit-remaining')).toBe('1')
      expect(Number(headers.get('x-ratelimit-reset')) - Date.now() / 1000).toBeCloseTo(60, -1)
    })

    test.each(['draft-6', 'draft-7', 'draft-8'] as const)('sends correct headers of %s', async (standardHeaders) => {
      const { url } = await serve({ options: { standardHeaders, legacyHeaders: false } })
      const { headers } = await fetch(url)
      const policy = { 'draft-6': '2;w=60', 'draft-7': '2;w=60' }[standardHeaders as string]
      if (policy) expect(headers.get('ratelimit-policy')).toBe(policy)
      else expect(headers.get('ratelimit-policy')).toContain('q=2; w=60')
      const text = headers.get('ratelimit') ?? `limit=2, remaining=${headers.get('ratelimit-remaining')}, reset=60`
      expect(text).toMatch(standardHeaders === 'draft-8' ? /r=1; t=60/ : /remaining=1, reset=60/)
    })

    test('returns `retry-after` once an address has reached the maximum, and none without headers', async () => {
      const { url } = await serve({ options: { limit: 1 } })
      await statusOf(url)
      expect((await fetch(url)).headers.get('retry-after')).toBe('60')
      const silent = await serve({ options: { limit: 0, legacyHeaders: false } })
      expect((await fetch(silent.url)).headers.get('retry-after')).toBeNull()
    })

    test('emits headers that ratelimit-header-parser reads', async () => {
      for (const standardHeaders of [false, 'draft-6', 'draft-7'] as const) {
        const { url } = await serve({ options: { standardHeaders, legacyHeaders: !standardHeaders } })
        expect(parseRateLimit((await fetch(url)) as never)).toMatchObject({ limit: 2, used: 1, remaining: 1 })
      }
    })
  })

  describe('store', () => {
    test('returns the hits and the reset time of a key', async () => {
      const { store } = await make()
      await store.increment('ann')
      const hits = await store.get('ann')
      expect(hits).toMatchObject({ totalHits: 1 })
      expect(Number(hits?.resetTime) - Date.now()).toBeGreaterThan(50_000)
    })

    test('sets the value to 1 on the first call to `increment`, and increments it', async () => {
      const { store } = await make()
      expect((await store.increment('ann')).totalHits).toBe(1)
      expect((await store.increment('ann')).totalHits).toBe(2)
      expect((await store.increment('ann')).totalHits).toBe(3)
    })

    test('decrements the key, never below 0', async () => {
      const { store } = await make({ options: { skipFailedRequests: true } })
      await store.increment('ann')
      await store.increment('ann')
      await store.decrement('ann')
      expect((await store.get('ann'))?.totalHits).toBe(1)
      for (let n = 0; n < 3; n++) await store.decrement('ann')
      expect(await store.get('ann')).toBeUndefined()
      expect((await store.increment('ann')).totalHits).toBe(1)
    })

    test('resets the count of a key', async () => {
      const { store, limiter } = await make()
      await store.increment('ann')
      await store.increment('bob')
      await limiter.resetKey('ann')
      expect(await limiter.getKey('ann')).toBeUndefined()
      expect(await limiter.getKey('bob')).toMatchObject({ totalHits: 1 })
    })

    test('forgets the counts of all keys when the window is over, repeatedly', async () => {
      const { store } = await make({ options: { windowMs: 60 } })
      for (let round = 0; round < 2; round++) {
        await store.increment('ann')
        expect((await store.increment('bob')).totalHits).toBe(1)
        await sleep(70)
        expect(await store.get('ann')).toBeUndefined()
      }
    })
  })

  describe('validations', () => {
    test('finds nothing to object to in a store that is used as documented', async () => {
      const log = vi.spyOn(console, 'error').mockImplementation(() => {})
      const { limiter } = await make({ options: { validate: true, keyGenerator: () => 'ann' } })
      const other = await make({ options: { validate: true, keyGenerator: () => 'ann', requestPropertyName: 'other' } })
      const app = express()
      app.get('/', limiter, other.limiter, (_req, res) => void res.end())
      await statuses(await listen(app), 3)
      expect(log.mock.calls).toEqual([])
      log.mockRestore()
    })
  })

  describe('the bridge', () => {
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
      expect(() => store.init({ windowMs: 60_000, limit: 3 })).toThrow(
        'another caller of this store has 2 per 60000 ms',
      )
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
      expect(() => init({}, 1.5)).toThrow('limit: expected a whole number')
      expect(() => init({}, 5, 0.5)).toThrow('window: expected')
      expect(() => init({}, 0, 0)).toThrow('window: expected')
      expect(() => sluiceStore({ prefix: 'api' } as never)).toThrow('prefix: unknown option')
      expect(() => sluiceStore({ name: 'a b' })).toThrow('name: expected 1 to 64 letters')
      expect(() => sluiceStore({ maxHits: 0 })).toThrow('maxHits: expected a whole number of at least 1')
      await expect(sluiceStore().increment('ann')).rejects.toThrow('expected init with the limit')
    })

    test('counts by another algorithm', async () => {
      const algorithm = (rate: { limit: number; window: number }) => fixedWindow({ ...rate, anchor: 'first-request' })
      const { store } = await make({ bridge: { algorithm } })
      const first = await store.increment('ann')
      await sleep(60)
      const second = await store.increment('ann')
      // The end of the window, where a log says when its newest entry expires.
      expect(Number(second.resetTime) - Number(first.resetTime)).toBeLessThan(50)
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
