import type { Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { createAdaptorServer } from '@hono/node-server'
import { type HitStoreOptions, sluiceStore } from '@sluice/bridges/hono-rate-limiter'
import { type Context, Hono } from 'hono'
import { rateLimiter, webSocketLimiter } from 'hono-rate-limiter'
import { beforeAll, describe, expect, test } from 'vitest'
import { redisForTests } from '../support/redis-for-tests.js'
import type { RedisServer } from '../support/redis-server.js'
import { freshName, inMemory, listen, type NewStore, onRedis, statuses, statusOf } from './support.js'

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
  ['on Redis', onRedis(() => server)],
]

describe.each(STORES)('hono-rate-limiter %s: its own cases', (_name, newStore) => {
  async function serve({ options, bridge, handler = (c) => c.text('hi') }: Setup = {}) {
    const store = sluiceStore({ name: freshName(), store: await newStore(), ...bridge })
    const app = new Hono()
    const limiter = rateLimiter({ windowMs: 60_000, limit: 2, keyGenerator: () => 'ann', ...options, store } as Options)
    app.get('/', limiter, handler)
    return { url: await listen(createAdaptorServer(app) as Server), store }
  }
  const byStatus = (c: Context) => c.body(null, Number(c.req.query('status')) as 200)

  test('calls `init` even if no requests have come in', async () => {
    const { store } = await serve()
    await expect(store.get('nobody')).resolves.toBeUndefined()
  })

  test('lets the first request through, and refuses more once a key has reached the maximum', async () => {
    const { url } = await serve()
    expect(await statuses(url, 4)).toEqual([200, 200, 429, 429])
  })

  test('refuses all requests if the maximum is 0', async () => {
    const { url } = await serve({ options: { limit: 0 } })
    expect(await statuses(url, 2)).toEqual([429, 429])
  })

  test('shows the message, the status and the JSON that are set, or made by a function', async () => {
    for (const message of ['slow down', { error: 'slow' }, () => 'made', async () => 'made late']) {
      const { url } = await serve({ options: { limit: 0, message, statusCode: 420 as never } })
      const response = await fetch(url)
      expect(response.status).toBe(420)
      const expected = typeof message === 'function' ? await message() : message
      expect(await response.text()).toBe(typeof expected === 'string' ? expected : JSON.stringify(expected))
    }
  })

  test('uses a custom handler', async () => {
    const { url } = await serve({ options: { limit: 0, handler: ((c: Context) => c.text('no', 503)) as never } })
    expect(await statusOf(url)).toBe(503)
  })

  test('counts by custom keys', async () => {
    const { url } = await serve({ options: { limit: 1, keyGenerator: (c) => c.req.query('key') ?? '' } })
    expect(await statuses(`${url}?key=a`, 2)).toEqual([200, 429])
    expect(await statuses(`${url}?key=b`, 2)).toEqual([200, 429])
    // A missing key is an error, where the peer counts all such clients as one.
    expect(await statuses(url, 1)).toEqual([500])
  })

  test('leaves out requests that skip says, at once or later', async () => {
    for (const skip of [() => true, async () => true]) {
      const { url } = await serve({ options: { limit: 1, skip } })
      expect(await statuses(url, 3)).toEqual([200, 200, 200])
    }
  })

  test('allows the maximum to be a function, at once or later, up to `maxLimit`', async () => {
    for (const limit of [() => 9, async () => 9]) {
      const { url } = await serve({ options: { limit }, bridge: { maxLimit: 2 } })
      expect(await statuses(url, 3)).toEqual([200, 200, 429])
    }
  })

  test('sends the remaining hits and the policy in headers of drafts 6 and 7', async () => {
    const six = await serve()
    const { headers } = await fetch(six.url)
    expect(headers.get('ratelimit-policy')).toBe('2;w=60')
    expect(headers.get('ratelimit-remaining')).toBe('1')
    expect(headers.get('ratelimit-reset')).toBe('60')
    const seven = await serve({ options: { standardHeaders: 'draft-7' } })
    expect((await fetch(seven.url)).headers.get('ratelimit')).toBe('limit=2, remaining=1, reset=60')
  })

  test('returns `retry-after` once a key has reached the maximum', async () => {
    const { url } = await serve({ options: { limit: 1 } })
    await statusOf(url)
    expect((await fetch(url)).headers.get('retry-after')).toBe('60')
  })

  test('takes hits of failed requests back with `skipFailedRequests`', async () => {
    const { url } = await serve({ options: { skipFailedRequests: true }, handler: byStatus })
    expect(await statuses(`${url}?status=400`, 4)).toEqual([400, 400, 400, 400])
    expect(await statuses(`${url}?status=200`, 3)).toEqual([200, 200, 429])
  })

  test('takes hits of successful requests back with `skipSuccessfulRequests`', async () => {
    const { url } = await serve({ options: { skipSuccessfulRequests: true }, handler: byStatus })
    expect(await statuses(`${url}?status=200`, 4)).toEqual([200, 200, 200, 200])
    expect(await statuses(`${url}?status=401`, 3)).toEqual([401, 401, 429])
  })

  test('passes hits and limit to the next handler, also in a custom property', async () => {
    for (const requestPropertyName of ['rateLimit', 'limits']) {
      const { url } = await serve({
        options: { requestPropertyName },
        handler: (c) => c.json(c.get(requestPropertyName as never)),
      })
      expect(await (await fetch(url)).json()).toMatchObject({ limit: 2, used: 1, remaining: 1 })
    }
  })

  test('handles two limiters with different properties independently', async () => {
    const app = new Hono()
    for (const [property, limit] of [
      ['one', 3],
      ['two', 2],
    ] as const) {
      const store = sluiceStore({ name: freshName(), store: await newStore() })
      const options = { limit, keyGenerator: () => 'ann', requestPropertyName: property, store }
      app.use(rateLimiter(options as unknown as Options))
    }
    const remaining = (c: Context, property: string) => (c.get(property as never) as { remaining: number }).remaining
    app.get('/', (c) => c.json([remaining(c, 'one'), remaining(c, 'two')]))
    const url = await listen(createAdaptorServer(app) as Server)
    expect(await (await fetch(url)).json()).toEqual([2, 1])
    expect(await (await fetch(url)).json()).toEqual([1, 0])
    expect(await statusOf(url)).toBe(429)
  })

  test('limits messages of WebSockets', async () => {
    const store = sluiceStore({ name: freshName(), store: await newStore() })
    const seen: unknown[] = []
    const limited = webSocketLimiter({ limit: 2, keyGenerator: () => 'ann', store } as never)
    const make = limited(() => ({ onMessage: (event: unknown) => void seen.push(event) }))
    const events = await make({ set: () => {} } as never)
    const closed: number[] = []
    const socket = { close: (code: number) => closed.push(code) }
    for (const message of [1, 2, 3]) await events.onMessage?.(message as never, socket as never)
    expect([seen, closed]).toEqual([[1, 2], [1008]])
  })

  test('sets the value to 1 on the first call to `increment`, increments, decrements and resets it', async () => {
    const { store } = await serve({ options: { limit: 5, skipFailedRequests: true } })
    expect((await store.increment('ann')).totalHits).toBe(1)
    expect((await store.increment('ann')).totalHits).toBe(2)
    await store.decrement('ann')
    expect((await store.get('ann'))?.totalHits).toBe(1)
    await store.resetKey('ann')
    expect(await store.get('ann')).toBeUndefined()
    expect((await store.increment('ann')).totalHits).toBe(1)
  })

  test('forgets the counts of a key when the window is over', async () => {
    const { store } = await serve({ options: { windowMs: 60 } })
    await store.increment('ann')
    await sleep(70)
    expect((await store.increment('ann')).totalHits).toBe(1)
  })

  test('refuses a function as limit without `maxLimit`, and other numbers of a second caller, when it is made', async () => {
    const store = sluiceStore({ name: freshName() })
    expect(() => rateLimiter({ limit: () => 5, keyGenerator: () => 'ann', store } as Options)).toThrow(
      'maxLimit: expected',
    )
    const other = sluiceStore({ name: freshName() })
    rateLimiter({ limit: 5, keyGenerator: () => 'ann', store: other } as Options)
    expect(() => rateLimiter({ limit: 6, keyGenerator: () => 'ann', store: other } as Options)).toThrow(
      'another caller',
    )
  })
})
