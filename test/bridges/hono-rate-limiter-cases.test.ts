/**
 * The own cases of hono-rate-limiter, each by its name: those of its stores, middleware, headers and WebSockets. A name that ends
 * with a reason in brackets differs by design.
 */
import { type HitStoreOptions, sluiceStore } from '@sluice/bridges/hono-rate-limiter'
import { memoryStore } from '@sluice/core'
import { type Context, Hono } from 'hono'
import { rateLimiter, webSocketLimiter } from 'hono-rate-limiter'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { redisForTests } from '../support/redis-for-tests.js'
import type { RedisServer } from '../support/redis-server.js'
import { casesOfHitsTakenBack, casesOfStores } from './shared-cases.js'
import { freshName, inMemory, type NewStore, oneOnRedis } from './support.js'

let server: RedisServer
beforeAll(async () => {
  ;({ server } = await redisForTests())
})

type Options = Parameters<typeof rateLimiter>[0]
interface Setup {
  readonly options?: Partial<Options>
  readonly bridge?: HitStoreOptions
  readonly handler?: (c: Context) => Response | Promise<Response>
}

const STORES: readonly [name: string, newStore: NewStore][] = [
  ['in memory', inMemory],
  ['on Redis', oneOnRedis(() => server)],
]

/** Responds with `?status=`, or fails with `?crash`. */
function byQuery(c: Context): Response {
  if (c.req.query('crash') !== undefined) throw new Error('crashed')
  return c.text('hi', Number(c.req.query('status') ?? 200) as 200)
}

const isOk = (c: Context) => c.res.status === 200
const hasSuccess = (c: Context) => c.req.query('success') === '1'

/** An app whose requests need no server, and its store. */
function serve({ options, bridge, handler = byQuery }: Setup = {}) {
  const store = sluiceStore({ name: freshName(), ...bridge })
  const app = new Hono()
  app.get(
    '/',
    rateLimiter({ windowMs: 60_000, limit: 2, keyGenerator: () => 'ann', ...options, store } as Options),
    handler,
  )
  app.onError((error, c) => c.text(error.message, 500))
  const fetch = async (query = '') => app.request(`/?${query}`)
  const statuses = async (count: number, query?: string) => {
    const seen: number[] = []
    for (let n = 0; n < count; n++) seen.push((await fetch(query)).status)
    return seen
  }
  return { app, store, fetch, statuses }
}

describe.each(STORES)('hono-rate-limiter %s', (_name, newStore) => {
  const make = async ({ bridge, ...setup }: Setup = {}) =>
    serve({ ...setup, bridge: { store: await newStore(), ...bridge } })
  const textOf = async (options: Partial<Options>) =>
    (await (await make({ options: { limit: 0, ...options } })).fetch()).text()

  describe('memory store test and redis store test', () => {
    casesOfStores(make)

    test('supports custom prefixes', async () => {
      const store = await newStore()
      const [one, two] = [await make({ bridge: { store } }), await make({ bridge: { store } })]
      await one.store.increment('ann')
      expect(await two.store.get('ann')).toBeUndefined()
      expect(one.store.prefix).not.toBe(two.store.prefix)
    })

    test('returns the current hit count and reset time for a key', async () => {
      const { store } = await make()
      await store.increment('ann')
      expect(await store.get('ann')).toMatchObject({ totalHits: 1, resetTime: expect.any(Date) })
    })

    test('fetches the count for a key in the store when `getKey` is called', async () => {
      const { store } = await make()
      await store.increment('ann')
      await store.increment('ann')
      expect(await store.get('ann')).toMatchObject({ totalHits: 2, resetTime: expect.any(Date) })
    })

    test('resets expiry time on change if `resetExpiryOnChange` is set to `true` [it is an error]', () => {
      expect(() => sluiceStore({ resetExpiryOnChange: true } as never)).toThrow('resetExpiryOnChange: unknown option')
    })

    test('can run in electron, with a window of -1 ms [a window is at least 1 ms]', async () => {
      await expect(make({ options: { windowMs: -1 } })).rejects.toThrow('windowMs: expected whole milliseconds')
    })
  })

  describe('middleware test', () => {
    test('should not modify the options object passed', async () => {
      const options = { keyGenerator: () => 'ann', store: sluiceStore({ name: freshName(), store: await newStore() }) }
      const before = { ...options }
      rateLimiter(options as unknown as Options)
      expect(options).toStrictEqual(before)
    })

    test('should call `init` even if no requests have come in', async () => {
      await expect((await make()).store.get('nobody')).resolves.toBeUndefined()
    })

    test('should let the first request through', async () => {
      expect(await (await (await make({ options: { limit: 1 } })).fetch()).text()).toBe('hi')
    })

    test('should refuse additional connections once IP has reached the max', async () => {
      expect(await (await make()).statuses(3)).toEqual([200, 200, 429])
    })

    test('should block all requests if max is set to 0', async () => {
      expect(await (await make({ options: { limit: 0 } })).statuses(1)).toEqual([429])
    })

    test('should show the provided message instead of the default message when max connections are reached', async () => {
      expect(await textOf({ message: 'slow down' })).toBe('slow down')
    })

    test('should allow the error status code to be customized', async () => {
      expect(await (await make({ options: { limit: 0, statusCode: 420 as never } })).statuses(1)).toEqual([420])
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
      expect(await textOf({ handler: ((c: Context) => c.text('own', 503)) as never })).toBe('own')
    })

    test('should allow custom key generators', async () => {
      const { statuses } = await make({ options: { limit: 1, keyGenerator: (c) => c.req.query('key') ?? '' } })
      expect(await statuses(2, 'key=a')).toEqual([200, 429])
      expect(await statuses(2, 'key=b')).toEqual([200, 429])
    })

    test('should allow custom skip function', async () => {
      expect(await (await make({ options: { limit: 1, skip: () => true } })).statuses(2)).toEqual([200, 200])
    })

    test('should allow custom skip function that returns a promise', async () => {
      expect(await (await make({ options: { limit: 1, skip: async () => true } })).statuses(2)).toEqual([200, 200])
    })

    test('should allow max to be a function', async () => {
      const { statuses } = await make({ options: { limit: () => 2 }, bridge: { maxLimit: 2 } })
      expect(await statuses(3)).toEqual([200, 200, 429])
    })

    test('should allow max to be a function that returns a promise', async () => {
      const { statuses } = await make({ options: { limit: async () => 2 }, bridge: { maxLimit: 2 } })
      expect(await statuses(3)).toEqual([200, 200, 429])
    })

    test('should calculate the remaining hits', async () => {
      const { fetch } = await make({ options: { limit: async () => 2 }, bridge: { maxLimit: 2 } })
      const { headers } = await fetch()
      expect([headers.get('ratelimit-limit'), headers.get('ratelimit-remaining')]).toEqual(['2', '1'])
    })

    test('should call `increment` on the store', async () => {
      const { fetch, store } = await make()
      await fetch()
      expect((await store.get('ann'))?.totalHits).toBe(1)
    })

    test.each([
      ['should call `resetKey` on the store', 'resetKey'],
      ['should call `get` on the store', 'getKey'],
    ] as const)('%s', async (_title, method) => {
      const { fetch, store } = await make({
        handler: async (c) => {
          const own = c.get('rateLimitStore' as never) as Record<typeof method, (key: string) => Promise<unknown>>
          return c.json((await own[method]('ann')) ?? {})
        },
      })
      const body = await (await fetch()).json()
      if (method === 'getKey') expect(body).toMatchObject({ totalHits: 1 })
      else expect(await store.get('ann')).toBeUndefined()
    })

    test.each(casesOfHitsTakenBack(isOk, hasSuccess))('%s', async (_title, options, query, isTakenBack) => {
      const { fetch, store } = await make({ options })
      await fetch(query)
      if (isTakenBack) await expect.poll(() => store.get('ann')).toBeUndefined()
      else expect((await store.get('ann'))?.totalHits).toBe(1)
    })

    test.each(['handler', 'skip'] as const)('should forward errors in `%s` using `next()`', async (option) => {
      const fail = () => {
        throw new Error('420')
      }
      const response = await (await make({ options: { limit: 0, [option]: fail } })).fetch()
      expect([response.status, await response.text()]).toEqual([500, '420'])
    })

    test.each([
      ['in the `request.rateLimiter` property', 'rateLimit'],
      ['with a custom property', 'limits'],
    ])('should pass the number of hits and the limit to the next request handler %s', async (_title, property) => {
      const { fetch } = await make({
        options: { requestPropertyName: property },
        handler: (c) => c.json(c.get(property as never)),
      })
      expect(await (await fetch()).json()).toMatchObject({ limit: 2, used: 1, remaining: 1 })
    })

    test('should handle two rate-limiters with different `requestPropertyNames` operating independently', async () => {
      const app = new Hono()
      for (const [requestPropertyName, limit] of [
        ['one', 3],
        ['two', 2],
      ] as const) {
        const store = sluiceStore({ name: freshName(), store: await newStore() })
        app.use(rateLimiter({ limit, keyGenerator: () => 'ann', requestPropertyName, store } as unknown as Options))
      }
      const remaining = (c: Context, property: string) => (c.get(property as never) as { remaining: number }).remaining
      app.get('/', (c) => c.json([remaining(c, 'one'), remaining(c, 'two')]))
      expect(await (await app.request('/')).json()).toEqual([2, 1])
      expect(await (await app.request('/')).json()).toEqual([1, 0])
      expect((await app.request('/')).status).toBe(429)
    })
  })

  describe('headers test', () => {
    test('should send correct `ratelimit-*` headers for the standard headers draft 6', async () => {
      const { headers } = await (await make()).fetch()
      const fields = ['policy', 'limit', 'remaining', 'reset'].map((field) => headers.get(`ratelimit-${field}`))
      expect(fields).toEqual(['2;w=60', '2', '1', '60'])
    })

    test('should send policy and combined ratelimit headers for the standard draft 7', async () => {
      const { headers } = await (await make({ options: { standardHeaders: 'draft-7' } })).fetch()
      expect(headers.get('ratelimit-policy')).toBe('2;w=60')
      expect(headers.get('ratelimit')).toBe('limit=2, remaining=1, reset=60')
    })

    test('should return the `retry-after` header once IP has reached the max', async () => {
      const { fetch } = await make({ options: { limit: 1 } })
      await fetch()
      expect((await fetch()).headers.get('retry-after')).toBe('60')
    })
  })

  describe('websockets middleware test', () => {
    const storeOf = async () => sluiceStore({ name: freshName(), store: await newStore() })

    test('should not modify the options object passed', async () => {
      const options = { keyGenerator: () => 'ann', store: await storeOf() }
      const before = { ...options }
      webSocketLimiter(options as never)
      expect(options).toStrictEqual(before)
    })

    test('should call `init` even if no requests have come in', async () => {
      const store = await storeOf()
      webSocketLimiter({ keyGenerator: () => 'ann', store } as never)
      await expect(store.get('nobody')).resolves.toBeUndefined()
    })

    test('should integrate with the server', async () => {
      const limited = webSocketLimiter({ limit: 2, keyGenerator: () => 'ann', store: await storeOf() } as never)
      const seen: unknown[] = []
      const events = await limited(() => ({ onMessage: (event: unknown) => void seen.push(event) }))({
        set: () => {},
      } as never)
      const close = vi.fn()
      for (const message of [1, 2, 3]) await events.onMessage?.(message as never, { close } as never)
      expect(seen).toEqual([1, 2])
      expect(close.mock.calls[0]?.[0]).toBe(1008)
    })
  })
})

describe('hono-rate-limiter, by a clock', () => {
  function byClock(windowMs: number) {
    let now = 0
    const bridge = { store: memoryStore({ clock: () => now }) }
    return { ...serve({ options: { windowMs }, bridge }), pass: (ms: number) => (now += ms) }
  }

  test('should (eventually) accept new connections from a blocked IP', async () => {
    const { statuses, pass } = byClock(50)
    expect(await statuses(3)).toEqual([200, 200, 429])
    pass(60)
    expect(await statuses(1)).toEqual([200])
  })

  test('should work repeatedly', async () => {
    const { statuses, pass } = byClock(50)
    for (let round = 0; round < 3; round++) {
      expect(await statuses(3)).toEqual([200, 200, 429])
      pass(60)
    }
  })

  test('resets the count for all the keys in the store when the timeout is reached', async () => {
    const { store, pass } = byClock(50)
    await Promise.all([store.increment('ann'), store.increment('bob')])
    pass(60)
    const [ann, bob] = await Promise.all([store.increment('ann'), store.increment('bob')])
    expect([ann.totalHits, bob.totalHits]).toEqual([1, 1])
  })

  test('does not allow a Client object to be assigned to two keys', async () => {
    const { store, pass } = byClock(100)
    await store.increment('ann')
    pass(100)
    await store.increment('ann')
    const [again, other] = [await store.increment('ann'), await store.increment('bob')]
    expect([again.totalHits, other.totalHits]).toEqual([2, 1])
  })
})
