import { createRequire } from 'node:module'
import { type RouteStoreClass, sluiceStore } from '@sluice/bridges/fastify-rate-limit'
import { memoryStore } from '@sluice/core'
import fastify, { type FastifyInstance, type FastifyPluginAsync, type FastifyRequest } from 'fastify'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { redisForTests } from '../support/redis-for-tests.js'
import type { RedisServer } from '../support/redis-server.js'
import { freshName, inMemory, type NewStore, onRedis, statuses, statusOf } from './support.js'

/** The options of the peer. Its types and those of `@sluice/fastify` extend Fastify's by the same names, so one program has one. */
interface RateLimitOptions {
  readonly max?: number | ((req: FastifyRequest) => unknown)
  readonly timeWindow?: number | string | (() => unknown)
  readonly ban?: number
  readonly hook?: string
  readonly groupId?: string
  readonly allowList?: readonly string[] | (() => unknown)
  readonly keyGenerator?: (req: FastifyRequest) => unknown
  readonly global?: boolean
  readonly continueExceeding?: boolean
  readonly exponentialBackoff?: boolean
  readonly enableDraftSpec?: boolean
  readonly addHeaders?: Readonly<Record<string, boolean>>
  readonly addHeadersOnExceeding?: Readonly<Record<string, boolean>>
  readonly errorResponseBuilder?: (req: FastifyRequest, context: Record<string, unknown>) => object
  readonly onBanReach?: (req: FastifyRequest, key: string) => void
  readonly onExceeding?: (req: FastifyRequest, key: string) => void
  readonly onExceeded?: (req: FastifyRequest, key: string) => void
}
type Plugin = FastifyPluginAsync<RateLimitOptions & { readonly store: RouteStoreClass }>
const rateLimit: Plugin = createRequire(import.meta.url)('@fastify/rate-limit')

let server: RedisServer
beforeAll(async () => {
  ;({ server } = await redisForTests())
})

const STORES: readonly [name: string, newStore: NewStore][] = [
  ['in memory', inMemory],
  ['on Redis', onRedis(() => server)],
]

const apps: FastifyInstance[] = []
afterAll(() => Promise.all(apps.map((app) => app.close())))

interface Limited {
  readonly remaining: number
  readonly isExceeded: boolean
}
interface Limiting {
  createRateLimit(
    options?: RateLimitOptions,
  ): (req: FastifyRequest, options?: { increment: boolean }) => Promise<Limited>
}
type Routes = Record<string, RateLimitOptions | false | undefined>

/** A server whose routes have limits of their own, or none. */
async function serve(store: RouteStoreClass, options: RateLimitOptions = {}, routes: Routes = { '/': undefined }) {
  const app = fastify()
  apps.push(app)
  await app.register(rateLimit, { max: 2, timeWindow: 60_000, ...options, store })
  for (const [url, own] of Object.entries(routes)) {
    app.get(url, own === undefined ? {} : { config: { rateLimit: own as never } }, async () => 'hi')
  }
  return { app, url: await app.listen({ port: 0, host: '127.0.0.1' }) }
}

describe.each(STORES)('@fastify/rate-limit %s with the bridge, by requests', (_name, newStore) => {
  const store = async () => sluiceStore({ name: freshName(), store: await newStore() })
  const serveWith = async (options?: RateLimitOptions, routes?: Routes) => serve(await store(), options, routes)

  test('basic: admits up to the maximum, with headers, and then refuses', async () => {
    const { url } = await serveWith()
    const first = await fetch(url)
    expect(first.headers.get('x-ratelimit-limit')).toBe('2')
    expect(first.headers.get('x-ratelimit-remaining')).toBe('1')
    expect(first.headers.get('x-ratelimit-reset')).toBe('60')
    expect(await statusOf(url)).toBe(200)
    const refused = await fetch(url)
    expect(refused.status).toBe(429)
    expect(refused.headers.get('retry-after')).toBe('60')
    expect(refused.headers.get('x-ratelimit-remaining')).toBe('0')
    expect(await refused.json()).toEqual({
      statusCode: 429,
      error: 'Too Many Requests',
      message: 'Rate limit exceeded, retry in 1 minute',
    })
  })

  test('a maximum of 0 refuses everything', async () => {
    const { url } = await serveWith({ max: 0 })
    expect(await statuses(url, 2)).toEqual([429, 429])
  })

  test('hides headers, and sends those of the draft', async () => {
    const hidden = await serveWith({
      addHeaders: { 'retry-after': false },
      addHeadersOnExceeding: { 'x-ratelimit-limit': false },
      max: 1,
    })
    expect((await fetch(hidden.url)).headers.get('x-ratelimit-limit')).toBeNull()
    expect((await fetch(hidden.url)).headers.get('retry-after')).toBeNull()
    const draft = await serveWith({ enableDraftSpec: true })
    expect((await fetch(draft.url)).headers.get('ratelimit-reset')).toBe('60')
  })

  test('stops the lifecycle after its hook, in each hook', async () => {
    for (const hook of ['onRequest', 'preParsing', 'preValidation', 'preHandler'] as const) {
      const { url } = await serveWith({ max: 1, hook })
      expect(await statuses(url, 2)).toEqual([200, 429])
    }
  })

  test('routes with limits of their own count by themselves, also with equal numbers', async () => {
    const { url } = await serveWith({ max: 3 }, { '/': undefined, '/a': { max: 1 }, '/b': { max: 1 }, '/free': false })
    expect(await statuses(`${url}/a`, 2)).toEqual([200, 429])
    expect(await statuses(`${url}/b`, 2)).toEqual([200, 429])
    expect(await statuses(`${url}/free`, 5)).toEqual([200, 200, 200, 200, 200])
    expect(await statuses(url, 4)).toEqual([200, 200, 200, 429])
  })

  test('routes take what they leave out from the plugin', async () => {
    const { url } = await serveWith({ max: 1, timeWindow: 120_000 }, { '/a': { max: 2 } })
    const { headers } = await fetch(`${url}/a`)
    expect([headers.get('x-ratelimit-limit'), headers.get('x-ratelimit-reset')]).toEqual(['2', '120'])
  })

  test('routes of one group share their count', async () => {
    const shared = { max: 2, groupId: 'search' }
    const { url } = await serveWith({}, { '/a': shared, '/b': shared, '/c': { max: 2, groupId: 'other' } })
    expect(await statuses(`${url}/a`, 1)).toEqual([200])
    expect(await statuses(`${url}/b`, 2)).toEqual([200, 429])
    expect(await statuses(`${url}/c`, 2)).toEqual([200, 200])
  })

  test('the handler of unknown paths can be limited', async () => {
    const app = fastify()
    apps.push(app)
    await app.register(rateLimit, { max: 5, timeWindow: 60_000, store: await store() })
    app.setNotFoundHandler(
      { preHandler: app.rateLimit({ max: 1 } as never) },
      (_req, reply) => void reply.code(404).send(),
    )
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    expect(await statuses(`${url}/none`, 2)).toEqual([404, 429])
  })

  test('the builder of errors gets the status, the maximum and the time', async () => {
    const { url } = await serveWith({
      max: 1,
      errorResponseBuilder: (_req, { statusCode, ban, max, after }) => ({
        statusCode: 418,
        told: [statusCode, ban, max, after],
      }),
    })
    await statusOf(url)
    const refused = await fetch(url)
    expect(refused.status).toBe(418)
    expect(await refused.json()).toMatchObject({ told: [429, false, 1, '1 minute'] })
  })

  test('limits in handlers, and reads without counting', async () => {
    const app = fastify()
    apps.push(app)
    await app.register(rateLimit, { global: false, max: 2, timeWindow: 60_000, store: await store() })
    const check = (app as unknown as Limiting).createRateLimit()
    app.get('/', async (req) => ({
      read: await check(req, { increment: false }),
      counted: await check(req),
      after: await check(req, { increment: false }),
    }))
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    const all: Record<'read' | 'counted' | 'after', Limited>[] = []
    for (let n = 0; n < 3; n++) all.push((await (await fetch(url)).json()) as (typeof all)[number])
    const seen = all.map(({ read, counted, after }) => [
      read.remaining,
      counted.remaining,
      counted.isExceeded,
      after.remaining,
    ])
    expect(seen).toEqual([
      [2, 1, false, 1],
      [1, 0, false, 0],
      [0, 0, true, 0],
    ])
  })

  test('limiters of `createRateLimit` and `rateLimit` count by themselves, or by their `groupId`', async () => {
    const app = fastify()
    apps.push(app)
    await app.register(rateLimit, { global: false, max: 9, timeWindow: 60_000, store: await store() })
    const { createRateLimit } = app as unknown as Limiting
    const made = { '/search': { max: 5 }, '/login': { max: 2 }, '/mail': { max: 2, groupId: 'out' } }
    for (const [url, options] of Object.entries({ ...made, '/sms': { max: 2, groupId: 'out' } })) {
      const check = createRateLimit(options)
      app.get(url, async (req, reply) => reply.code((await check(req)).isExceeded ? 429 : 200).send())
    }
    app.get('/hook', { onRequest: app.rateLimit({ max: 2 } as never) }, async () => 'hi')
    app.get('/hook2', { onRequest: app.rateLimit({ max: 2 } as never) }, async () => 'hi')
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    expect(await statuses(`${url}/search`, 5)).toEqual([200, 200, 200, 200, 200])
    for (const path of ['login', 'hook', 'hook2', 'mail'])
      expect([path, ...(await statuses(`${url}/${path}`, 3))]).toEqual([path, 200, 200, 429])
    expect(await statuses(`${url}/sms`, 1)).toEqual([429])
  })

  test('versions of a path, and hosts, count by themselves', async () => {
    const app = fastify()
    apps.push(app)
    await app.register(rateLimit, { global: false, max: 9, timeWindow: 60_000, store: await store() })
    const all: [max: number, headers: Record<string, string>][] = [
      [3, { 'accept-version': '1.0.0' }],
      [1, { 'accept-version': '2.0.0' }],
    ]
    for (const [max, headers] of all) {
      const constraints = { version: headers['accept-version'] as string }
      app.get('/', { constraints, config: { rateLimit: { max } as never } }, async () => 'hi')
    }
    app.get('/host', { constraints: { host: /^a\./ }, config: { rateLimit: { max: 1 } as never } }, async () => 'hi')
    app.get('/host', { constraints: { host: /^b\./ }, config: { rateLimit: { max: 1 } as never } }, async () => 'hi')
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    expect(await statuses(url, 3, all[0]?.[1])).toEqual([200, 200, 200])
    expect(await statuses(url, 2, all[1]?.[1])).toEqual([200, 429])
    const hosts: number[] = []
    for (const host of ['a.example', 'b.example', 'a.example'])
      hosts.push((await app.inject({ url: '/host', headers: { host } })).statusCode)
    expect(hosts).toEqual([200, 200, 429])
  })

  test('processes that make the same limiters share their counts', async () => {
    const name = freshName()
    const shared = await newStore()
    const urls: string[] = []
    for (const _process of ['one', 'two']) {
      const app = fastify()
      apps.push(app)
      await app.register(rateLimit, { global: false, timeWindow: 60_000, store: sluiceStore({ name, store: shared }) })
      app.get('/a', { onRequest: app.rateLimit({ max: 1 } as never) }, async () => 'hi')
      app.get('/b', { onRequest: app.rateLimit({ max: 1 } as never) }, async () => 'hi')
      urls.push(await app.listen({ port: 0, host: '127.0.0.1' }))
    }
    expect(await statuses(`${urls[0]}/b`, 1)).toEqual([200])
    expect([...(await statuses(`${urls[1]}/a`, 1)), ...(await statuses(`${urls[1]}/b`, 1))]).toEqual([200, 429])
  })

  test('several registrations count by themselves, by their names', async () => {
    const app = fastify()
    apps.push(app)
    for (const [prefix, max] of [
      ['/one', 1],
      ['/two', 2],
    ] as const) {
      await app.register(async (own) => {
        await own.register(rateLimit, { max, timeWindow: 60_000, store: await store() })
        own.get(prefix, async () => 'hi')
      })
    }
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    expect(await statuses(`${url}/one`, 2)).toEqual([200, 429])
    expect(await statuses(`${url}/two`, 3)).toEqual([200, 200, 429])
  })

  test('a wrong number of a function is an error of the request', async () => {
    const { url } = await serveWith({ max: () => -1 })
    expect(await statusOf(url)).toBe(500)
  })
})

describe('@fastify/rate-limit with the bridge', () => {
  test('a key is new when its window is over', async () => {
    let now = 0
    const { url } = await serve(sluiceStore({ store: memoryStore({ clock: () => now }) }), { max: 1 })
    expect(await statuses(url, 2)).toEqual([200, 429])
    now += 60_000
    expect(await statusOf(url)).toBe(200)
  })

  test('while a client continues to exceed, it stays refused with `continueExceeding`', async () => {
    let now = 0
    for (const [continueExceeding, later] of [
      [true, 429],
      [false, 200],
    ] as const) {
      const store = sluiceStore({ name: freshName(), store: memoryStore({ clock: () => now }) })
      const { url } = await serve(store, { max: 1, continueExceeding })
      await statusOf(url)
      now += 40_000
      expect(await statusOf(url)).toBe(429)
      now += 40_000
      expect(await statusOf(url)).toBe(later)
    }
  })

  test('a ban ends one window after it began', async () => {
    let now = 0
    const { url } = await serve(sluiceStore({ store: memoryStore({ clock: () => now }) }), { max: 1, ban: 0 })
    expect(await statuses(url, 2)).toEqual([200, 403])
    now += 59_999
    expect(await statusOf(url)).toBe(403)
    now += 1
    expect(await statusOf(url)).toBe(200)
  })

  test('a key of a client that looks like a route is counted apart', async () => {
    const store = sluiceStore({ name: freshName(), store: memoryStore() })
    const keyGenerator = (req: FastifyRequest) => String(req.headers['x-key'])
    const { url } = await serve(store, { max: 1, keyGenerator }, { '/': undefined, '/a': { max: 1 } })
    expect(await statusOf(url, { 'x-key': '["GET","/a"]ann' })).toBe(200)
    expect(await statusOf(`${url}/a`, { 'x-key': 'ann' })).toBe(200)
  })

  test('options that the peer would ignore, or that no log has, are refused at the start', async () => {
    const store = sluiceStore({ name: freshName() })
    await expect(serve(store, { exponentialBackoff: true })).rejects.toThrow('exponentialBackoff: expected false')
    await expect(serve(store, { max: 2_000_000_000, timeWindow: '1y' })).rejects.toThrow(
      'max: expected units times window',
    )
    await expect(serve(store, { timeWindow: 0 })).rejects.toThrow('timeWindow: expected whole milliseconds')
    for (const field of ['cache', 'redis', 'nameSpace', 'store']) {
      const routes = { '/': { [field]: 5 } as RateLimitOptions }
      await expect(serve(store, {}, routes)).rejects.toThrow(`${field}: expected none in a route`)
    }
    expect(() => sluiceStore({ redis: {} } as never)).toThrow('redis: unknown option: use store')
    expect(() => sluiceStore({ name: 'a b' })).toThrow('name: expected 1 to 64 letters')
  })
})
