/**
 * The own cases of express-rate-limit, each by its name: those of its store, middleware, headers and validations that a store has
 * a part in. A name that ends with a reason in brackets differs by design.
 */
import { get } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { type HitStoreOptions, sluiceStore } from '@sluice/bridges/express-rate-limit'
import { memoryStore } from '@sluice/core'
import express, { type Request, type Response } from 'express'
import { type Options, rateLimit as rateLimit8 } from 'express-rate-limit'
import { rateLimit as rateLimit7 } from 'express-rate-limit7'
import { parseRateLimit } from 'ratelimit-header-parser'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { redisForTests } from '../support/redis-for-tests.js'
import type { RedisServer } from '../support/redis-server.js'
import { casesOfHitsTakenBack, casesOfStores } from './shared-cases.js'
import { freshName, inMemory, listen, type NewStore, oneOnRedis, statuses, statusOf } from './support.js'

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
  ['express-rate-limit 8 on Redis', rateLimit8, oneOnRedis(() => server)],
  ['express-rate-limit 7 in memory', rateLimit7 as unknown as Limiter, inMemory],
]

/** Responds with `?status=`, or fails with `?crash`. */
function byQuery(req: Request, res: Response): void {
  if ('crash' in req.query) throw new Error('crashed')
  res.status(Number(req.query.status ?? 200)).send('hi')
}

const isOk = (_req: Request, res: Response) => res.statusCode === 200
const hasSuccess = (req: Request) => req.query.success === '1'

const TAKEN_BACK: readonly [title: string, options: Partial<Options>, query: string, isTakenBack: boolean][] = [
  ...casesOfHitsTakenBack(isOk, hasSuccess),
  [
    'should decrement hits when request finishes before `resetTime` with `skipSuccessfulRequests`',
    { skipSuccessfulRequests: true, windowMs: 500_000 },
    '',
    true,
  ],
]

describe.each(VERSIONS)('%s', (version, rateLimit, newStore) => {
  const isSeven = version.includes('7')

  async function make({ options = {}, bridge = {} }: Setup = {}) {
    const store = sluiceStore({ name: freshName(), store: await newStore(), ...bridge })
    const all = { windowMs: 60_000, limit: 2, validate: false, keyGenerator: () => 'ann', ...options, store }
    return { store, limiter: rateLimit(all) }
  }
  async function serve({ handler = byQuery, ...setup }: Setup = {}) {
    const { store, limiter } = await make(setup)
    const app = express()
    app.get('/', limiter, async (req, res) => void (await handler(req, res)))
    app.use((error: Error, _req: Request, res: Response, _next: unknown) => void res.status(500).send(error.message))
    return { url: await listen(app), store, limiter }
  }
  const textOf = async (options: Partial<Options>) => {
    const { url } = await serve({ options: { limit: 0, ...options } })
    return (await fetch(url)).text()
  }
  const headersOf = async (options: Partial<Options>) => (await fetch((await serve({ options })).url)).headers

  describe('memory store test', () => {
    casesOfStores(make)

    test('returns the current hit count and reset time for a key', async () => {
      const { store } = await make()
      await store.increment('ann')
      const hits = await store.get('ann')
      expect(hits?.totalHits).toBe(1)
      expect(Number(hits?.resetTime) - Date.now()).toBeGreaterThan(0)
    })

    test('does not decrement the key below 0 when `decrement` is called [a key without hits is undefined]', async () => {
      const { store } = await make({ options: { skipFailedRequests: true } })
      await store.increment('ann')
      await store.decrement('ann')
      await store.decrement('ann')
      expect(await store.get('ann')).toBeUndefined()
      expect((await store.increment('ann')).totalHits).toBe(1)
    })

    test('resetKey should remove the key from storage', async () => {
      const { store } = await make()
      await store.increment('ann')
      await store.resetKey('ann')
      expect(await store.get('ann')).toBeUndefined()
    })

    test('can run in electron, with a window of -1 ms [a window is at least 1 ms]', async () => {
      const { store } = await make({ bridge: { name: freshName() } })
      expect(() => sluiceStore({ name: freshName() }).init({ limit: 2, windowMs: -1 })).toThrow(
        'windowMs: expected whole milliseconds',
      )
      expect((await store.increment('ann')).totalHits).toBe(1)
    })
  })

  describe('middleware test', () => {
    test('should not modify the options object passed', async () => {
      const options = { limit: 2, store: sluiceStore({ name: freshName(), store: await newStore() }) }
      const before = { ...options }
      rateLimit(options)
      expect(options).toStrictEqual(before)
    })

    test('should call `init` even if no requests have come in', async () => {
      const { store } = await make()
      await expect(store.get('nobody')).resolves.toBeUndefined()
    })

    test('should catch synchronous errors thrown from store.init()', async () => {
      const store = sluiceStore({ name: freshName(), store: await newStore() })
      const error = vi.fn()
      const start = () =>
        rateLimit({ limit: Number.NaN, store, validate: false, logger: { error, warn: () => {} } } as never)
      if (isSeven) expect(start).toThrow('limit: expected a whole number')
      else {
        start()
        expect(error.mock.calls[0]?.[0]).toMatchObject({ message: expect.stringContaining('limit: expected') })
      }
      await expect(store.increment('ann')).rejects.toThrow('limit: expected')
    })

    test('should let the first request through', async () => {
      const { url } = await serve({ options: { limit: 1 } })
      expect(await (await fetch(url)).text()).toBe('hi')
    })

    test('should refuse additional connections once IP has reached the max', async () => {
      const { url } = await serve()
      expect(await statuses(url, 3)).toEqual([200, 200, 429])
    })

    test('should block all requests if max is set to 0', async () => {
      const { url } = await serve({ options: { limit: 0 } })
      expect(await statusOf(url)).toBe(429)
    })

    test('should show the provided message instead of the default message when max connections are reached', async () => {
      expect(await textOf({ message: 'slow down' })).toBe('slow down')
    })

    test('should allow the error status code to be customized', async () => {
      const { url } = await serve({ options: { limit: 0, statusCode: 420 } })
      expect(await statusOf(url)).toBe(420)
    })

    test('should allow responding with a JSON message', async () => {
      expect(JSON.parse(await textOf({ message: { error: 'slow' } }))).toEqual({ error: 'slow' })
    })

    test('should allow message to be a function', async () => {
      expect(await textOf({ message: () => 'made' })).toBe('made')
    })

    test('should allow message to be a function that returns a promise', async () => {
      expect(await textOf({ message: async () => 'made late' })).toBe('made late')
    })

    test('should use a custom handler when specified', async () => {
      expect(await textOf({ handler: (_req, res) => void res.status(503).send('own') })).toBe('own')
    })

    test('should allow custom key generators', async () => {
      const { url } = await serve({ options: { limit: 1, keyGenerator: (req) => String(req.query.key) } })
      expect(await statuses(`${url}?key=a`, 2)).toEqual([200, 429])
      expect(await statuses(`${url}?key=b`, 2)).toEqual([200, 429])
    })

    test('should allow custom skip function', async () => {
      const { url } = await serve({ options: { limit: 1, skip: () => true } })
      expect(await statuses(url, 2)).toEqual([200, 200])
    })

    test('should allow custom skip function that returns a promise', async () => {
      const { url } = await serve({ options: { limit: 1, skip: async () => true } })
      expect(await statuses(url, 2)).toEqual([200, 200])
    })

    test('should allow max to be a function', async () => {
      const { url } = await serve({ options: { limit: () => 2 }, bridge: { maxLimit: 2 } })
      expect(await statuses(url, 3)).toEqual([200, 200, 429])
    })

    test('should allow max to be a function that returns a promise', async () => {
      const { url } = await serve({ options: { limit: async () => 2 }, bridge: { maxLimit: 2 } })
      expect(await statuses(url, 3)).toEqual([200, 200, 429])
    })

    test('should calculate the remaining hits', async () => {
      const { url } = await serve({ options: { limit: async () => 2 }, bridge: { maxLimit: 2 } })
      const { headers } = await fetch(url)
      expect([headers.get('x-ratelimit-limit'), headers.get('x-ratelimit-remaining')]).toEqual(['2', '1'])
      expect(headers.get('retry-after')).toBeNull()
    })

    test('should call `increment` on the store', async () => {
      const { url, store } = await serve()
      await statusOf(url)
      expect((await store.get('ann'))?.totalHits).toBe(1)
    })

    test('should call `resetKey` on the store', async () => {
      const { url, store, limiter } = await serve()
      await statusOf(url)
      await limiter.resetKey('ann')
      expect(await store.get('ann')).toBeUndefined()
    })

    test('should call `get` on the store', async () => {
      const { url, limiter } = await serve()
      await statusOf(url)
      expect((await limiter.getKey('ann'))?.totalHits).toBe(1)
    })

    test.each(TAKEN_BACK)('%s', async (_title, options, query, isTakenBack) => {
      const { url, store } = await serve({ options })
      await statusOf(`${url}?${query}`)
      if (isTakenBack) await expect.poll(() => store.get('ann')).toBeUndefined()
      else expect((await store.get('ann'))?.totalHits).toBe(1)
    })

    test.skipIf(isSeven)(
      'should not decrement hits when request finishes after `resetTime` with `skipSuccessfulRequests`',
      async () => {
        const options = { skipSuccessfulRequests: true, windowMs: 20 }
        const { url, store } = await serve({ options, handler: (_req, res) => sleep(40).then(() => res.send('late')) })
        const decrement = vi.spyOn(store, 'decrement')
        await statusOf(url)
        await sleep(5)
        expect(decrement).not.toHaveBeenCalled()
      },
    )

    test('should decrement hits when response closes and `skipFailedRequests` is set to true (server)', async () => {
      let open = () => {}
      const opened = new Promise<void>((resolve) => (open = resolve))
      const { url, store } = await serve({ options: { skipFailedRequests: true }, handler: () => open() })
      const request = get(url).on('error', () => {})
      await opened
      request.destroy()
      await expect.poll(() => store.get('ann')).toBeUndefined()
    })

    test('should decrement hits when response closes and `skipFailedRequests` is set to true', async () => {
      const { url, store } = await serve({
        options: { skipFailedRequests: true },
        handler: (req) => void req.socket.destroy(),
      })
      await expect(fetch(url)).rejects.toThrow()
      await expect.poll(() => store.get('ann')).toBeUndefined()
    })

    test('should decrement hits when rate limit is reached and `skipFailedRequests` is set to true', async () => {
      const { url, store } = await serve({ options: { skipFailedRequests: true } })
      const decrement = vi.spyOn(store, 'decrement')
      expect(await statuses(url, 3)).toEqual([200, 200, 429])
      await expect.poll(() => decrement.mock.calls).toEqual([['ann']])
      expect((await store.get('ann'))?.totalHits).toBe(2)
    })

    test.each(['handler', 'skip'] as const)('should forward errors in `%s` using `next()`', async (option) => {
      const fail = () => {
        throw new Error('420')
      }
      const { url } = await serve({ options: { limit: 0, [option]: fail } })
      const response = await fetch(url)
      expect([response.status, await response.text()]).toEqual([500, '420'])
    })

    test.each([
      ['in the `request.rateLimit` property', 'rateLimit'],
      ['with a custom property', 'limits'],
    ])('should pass the number of hits and the limit to the next request handler %s', async (_title, property) => {
      const { url } = await serve({
        options: { requestPropertyName: property },
        handler: (req, res) => res.json((req as unknown as Record<string, object>)[property]),
      })
      expect(await (await fetch(url)).json()).toMatchObject({ limit: 2, used: 1, remaining: 1 })
    })

    test('should handle two rate-limiters with different `requestPropertyNames` operating independently', async () => {
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

    // A store that is away is decided for. An empty key is an error.
    const broken = { limit: 1, keyGenerator: () => '' }

    test('should not pass if the store throws an error by default', async () => {
      expect(await statusOf((await serve({ options: broken })).url)).toBe(500)
    })

    test('should pass if the store throws an error and passOnStoreError is true', async () => {
      const log = vi.spyOn(console, 'error').mockImplementation(() => {})
      expect(await statusOf((await serve({ options: { ...broken, passOnStoreError: true } })).url)).toBe(200)
      expect(log).toHaveBeenCalledTimes(1)
      log.mockRestore()
    })

    test('should only call next once when passOnStoreError causes it to skip limiting', async () => {
      const log = vi.spyOn(console, 'error').mockImplementation(() => {})
      const { limiter } = await make({ options: { ...broken, passOnStoreError: true } })
      const next = vi.fn()
      await limiter({} as Request, {} as Response, next)
      expect(next.mock.calls).toEqual([[]])
      log.mockRestore()
    })

    test.skipIf(isSeven)(
      'should use the logger instead of the console when the store throws an error and passOnStoreError is true',
      async () => {
        const error = vi.fn()
        const logger = { error, warn: () => {} }
        const { limiter } = await make({ options: { ...broken, passOnStoreError: true, logger } as never })
        await limiter({} as Request, {} as Response, () => {})
        expect(error).toHaveBeenCalledTimes(1)
      },
    )
  })

  describe('headers test', () => {
    test('should send correct `x-ratelimit-limit`, `x-ratelimit-remaining`, and `x-ratelimit-reset` headers', async () => {
      const headers = await headersOf({})
      expect([headers.get('x-ratelimit-limit'), headers.get('x-ratelimit-remaining')]).toEqual(['2', '1'])
      expect(Number(headers.get('x-ratelimit-reset')) - Date.now() / 1000).toBeCloseTo(60, -1)
    })

    test('should send correct `ratelimit-*` headers for the standard headers draft 6', async () => {
      const headers = await headersOf({ standardHeaders: 'draft-6' })
      const fields = ['policy', 'limit', 'remaining', 'reset'].map((field) => headers.get(`ratelimit-${field}`))
      expect(fields).toEqual(['2;w=60', '2', '1', '60'])
    })

    test('should send policy and combined ratelimit headers for the standard draft 7', async () => {
      const headers = await headersOf({ standardHeaders: 'draft-7' })
      expect(headers.get('ratelimit-policy')).toBe('2;w=60')
      expect(headers.get('ratelimit')).toBe('limit=2, remaining=1, reset=60')
    })

    test('should send correct headers for the standard draft 8', async () => {
      const headers = await headersOf({ standardHeaders: 'draft-8' })
      expect(headers.get('ratelimit-policy')).toMatch(/^"2-in-1min"; q=2; w=60; pk=:.+:$/)
      expect(headers.get('ratelimit')).toBe('"2-in-1min"; r=1; t=60')
    })

    test('should send multiple headers correctly for the standard draft 8', async () => {
      const options = { standardHeaders: 'draft-8' } as const
      const app = express()
      const limiters = [await make({ options: { ...options, limit: 5 } }), await make({ options })]
      app.get('/', ...limiters.map(({ limiter }) => limiter), (_req, res) => void res.end())
      const { headers } = await fetch(await listen(app))
      expect(headers.get('ratelimit')).toBe('"5-in-1min"; r=4; t=60, "2-in-1min"; r=1; t=60')
    })

    test('should override the quota name if specified for the standard draft 8', async () => {
      const headers = await headersOf({ standardHeaders: 'draft-8', identifier: 'own' })
      expect(headers.get('ratelimit')).toBe('"own"; r=1; t=60')
    })

    test('should return the `retry-after` header once IP has reached the max', async () => {
      const { url } = await serve({ options: { limit: 1 } })
      await statusOf(url)
      expect((await fetch(url)).headers.get('retry-after')).toBe('60')
    })

    test('should not set the `retry-after` header if all headers have been disabled', async () => {
      expect((await headersOf({ limit: 0, legacyHeaders: false })).get('retry-after')).toBeNull()
    })

    test.each([
      ['should emit legacy headers that ratelimit-header-parser can read', {}],
      ['should emit standard draft-6 headers that ratelimit-header-parser can read', { standardHeaders: 'draft-6' }],
      [
        'should emit a standard draft 7 combined header that ratelimit-header-parser can parse',
        { standardHeaders: 'draft-7' },
      ],
    ] as const)('%s', async (_title, options) => {
      const { url } = await serve({ options: { legacyHeaders: !('standardHeaders' in options), ...options } })
      expect(parseRateLimit((await fetch(url)) as never)).toMatchObject({ limit: 2, used: 1, remaining: 1 })
    })
  })
})

describe('express-rate-limit 8, by a clock', () => {
  async function serve(windowMs: number) {
    let now = 0
    const store = sluiceStore({ store: memoryStore({ clock: () => now }), name: freshName() })
    const app = express()
    app.get('/', rateLimit8({ windowMs, limit: 2, validate: false, store }), (_req, res) => void res.end())
    return { url: await listen(app), store, pass: (ms: number) => (now += ms) }
  }

  test('should (eventually) accept new connections from a blocked IP', async () => {
    const { url, pass } = await serve(50)
    expect(await statuses(url, 3)).toEqual([200, 200, 429])
    pass(60)
    expect(await statusOf(url)).toBe(200)
  })

  test('should work repeatedly', async () => {
    const { url, pass } = await serve(50)
    for (let round = 0; round < 3; round++) {
      expect(await statuses(url, 3)).toEqual([200, 200, 429])
      pass(60)
    }
  })

  test('resets the count for all the keys in the store when the timeout is reached', async () => {
    const { store, pass } = await serve(50)
    await Promise.all([store.increment('ann'), store.increment('bob')])
    pass(60)
    const [ann, bob] = await Promise.all([store.increment('ann'), store.increment('bob')])
    expect([ann.totalHits, bob.totalHits]).toEqual([1, 1])
  })

  test('does not allow a Client object to be assigned to two keys', async () => {
    const { store, pass } = await serve(100)
    await store.increment('ann')
    pass(100)
    await store.increment('ann')
    const [again, other] = [await store.increment('ann'), await store.increment('bob')]
    expect(again).not.toBe(other)
    expect([again.totalHits, other.totalHits]).toEqual([2, 1])
  })
})

describe('express-rate-limit 8, validations tests', () => {
  const make = (options: HitStoreOptions = {}) => sluiceStore({ name: freshName(), ...options })

  /** The codes that limiters on these stores log, when they are made and for some requests. */
  async function codes(stores: ReturnType<typeof make>[], requests = 1): Promise<unknown[]> {
    const error = vi.fn()
    const logger = { error, warn: error }
    const options = { limit: 5, keyGenerator: () => 'ann', logger, windowMs: 60_000 }
    const app = express()
    app.get('/', ...stores.map((store) => rateLimit8({ ...options, store })), (_req, res) => void res.end())
    await statuses(await listen(app), requests)
    return error.mock.calls.map(([{ code }]) => code)
  }

  test('should log an error if a store instance is used in two limiters', async () => {
    const store = make()
    expect(await codes([store, store])).toContain('ERR_ERL_STORE_REUSE')
  })

  test('should not log an error if multiple store instances are used', async () => {
    expect(await codes([make(), make()])).toEqual([])
  })

  test('should log an error if a request is double-counted with separate instances of an external store', async () => {
    const shared = { name: freshName(), store: memoryStore() }
    expect(await codes([make(shared), make(shared)])).toEqual(['ERR_ERL_DOUBLE_COUNT'])
  })

  test('should not log an error for multiple requests from the same key', async () => {
    expect(await codes([make()], 3)).toEqual([])
  })

  test('should not log an error if a request is double-counted with separate instances of an external store with different prefixes', async () => {
    const store = memoryStore()
    expect(await codes([make({ store }), make({ store })])).toEqual([])
  })
})
