/**
 * The own cases of @fastify/rate-limit that its stores decide, each by its name: all of its Redis store, and those of its global and
 * route limits. The rest runs from its package, in `fastify-own-tests`. A name that ends with a reason in brackets differs by design.
 */

import { createRequire } from 'node:module'
import { type RouteStoreClass, sluiceStore } from '@sluice/bridges/fastify-rate-limit'
import { memoryStore, SluiceError, type Store } from '@sluice/core'
import { BANS } from '@sluice/core/store'
import fastify, { type FastifyPluginAsync, type FastifyRequest } from 'fastify'
import { beforeAll, describe, expect, test } from 'vitest'
import { redisForTests } from '../support/redis-for-tests.js'
import type { RedisServer } from '../support/redis-server.js'
import { freshName, inMemory, type NewStore, oneOnRedis } from './support.js'

/** The options of the peer. Its types and those of `@sluice/fastify` extend Fastify's by the same names, so one program has one. */
type Plugin = FastifyPluginAsync<Record<string, unknown> & { readonly store: RouteStoreClass }>
const rateLimit: Plugin = createRequire(import.meta.url)('@fastify/rate-limit')

let server: RedisServer
beforeAll(async () => {
  ;({ server } = await redisForTests())
})

const STORES: readonly [name: string, newStore: NewStore][] = [
  ['in memory', inMemory],
  ['on Redis', oneOnRedis(() => server)],
]

type Check = (req: FastifyRequest, options?: { increment: boolean }) => Promise<{ remaining: number }>

/** The limit is that of the plugin, or that of a route. */
const LEVELS = ['Global rate limit', 'Route rate limit'] as const
type Level = (typeof LEVELS)[number]

/** An app with one route, and its responses: status, remaining requests and the time to wait. */
async function serve(level: Level, store: Store, own: Record<string, unknown>, plugin: Record<string, unknown> = {}) {
  const app = fastify()
  const isGlobal = level === 'Global rate limit'
  const Store = sluiceStore({ name: freshName(), store })
  await app.register(rateLimit, { global: isGlobal, ...plugin, ...(isGlobal && own), store: Store })
  app.get('/', isGlobal ? {} : { config: { rateLimit: own as never } }, async () => 'hello')
  const request = async (headers: Record<string, string> = {}) => {
    const { statusCode, headers: seen, body } = await app.inject({ url: '/', headers })
    return { status: statusCode, left: seen['x-ratelimit-remaining'], reset: seen['x-ratelimit-reset'], seen, body }
  }
  const statuses = async (count: number) => {
    const all: number[] = []
    for (let n = 0; n < count; n++) all.push((await request()).status)
    return all
  }
  return { app, request, statuses }
}

const keyOf = (req: FastifyRequest) => String(req.headers['x-key'])

/** A store by a clock. */
function byClock() {
  let now = 0
  return { store: memoryStore({ clock: () => now }), pass: (ms: number) => (now += ms) }
}

const fail = () => Promise.reject(new SluiceError('STORE_UNAVAILABLE', 'away'))
const bans = { block: fail, unblock: fail, strike: fail }
const away: Store = { decide: fail, reset: fail, close: fail, [BANS]: bans }

/** Options, and the statuses of requests one after the other. */
const CASES: readonly [title: string, own: Record<string, unknown>, statuses: number[]][] = [
  ['Basic', { max: 2, timeWindow: 60_000 }, [200, 200, 429]],
  ['With text timeWindow', { max: 2, timeWindow: '1m' }, [200, 200, 429]],
  ['With function timeWindow', { max: 2, timeWindow: () => 60_000 }, [200, 200, 429]],
  ['With ips allowList', { max: 1, allowList: ['127.0.0.1'] }, [200, 200, 200]],
  [
    'With ips allowList, not allowed ips should result in rate limiting',
    { max: 1, allowList: ['1.1.1.1'] },
    [200, 429, 429],
  ],
  ['With function allowList', { max: 1, allowList: () => true }, [200, 200, 200]],
  ['With async/await function allowList', { max: 1, allowList: async () => true }, [200, 200, 200]],
  ['With keyGenerator', { max: 1, keyGenerator: () => 'own' }, [200, 429, 429]],
  ['With async/await keyGenerator', { max: 1, keyGenerator: async () => 'own' }, [200, 429, 429]],
  ['variable max', { max: () => 2 }, [200, 200, 429]],
  ['Before async in "max"', { max: async () => 2 }, [200, 200, 429]],
  ['With ban', { max: 1, ban: 1 }, [200, 429, 403]],
  ['ban directly', { max: 1, ban: 0 }, [200, 403, 403]],
  ['on preValidation hook', { max: 1, hook: 'preValidation' }, [200, 429, 429]],
  ['on preHandler hook', { max: 1, hook: 'preHandler' }, [200, 429, 429]],
]

describe.each(LEVELS)('%s', (level) => {
  test.each(CASES)('%s', async (_title, own, expected) => {
    const { statuses } = await serve(level, await inMemory(), own)
    expect(await statuses(3)).toEqual(expected)
  })

  test('variable max contenders', async () => {
    const own = { max: (_req: FastifyRequest, key: string) => (key === 'ann' ? 1 : 2), keyGenerator: keyOf }
    const { request } = await serve(level, await inMemory(), own)
    const seen: number[] = []
    for (const key of ['ann', 'ann', 'bob', 'bob', 'bob']) seen.push((await request({ 'x-key': key })).status)
    expect(seen).toEqual([200, 429, 200, 200, 429])
  })

  test('when passing NaN to max variable then it should use the default max - 1000', async () => {
    const { request } = await serve(level, await inMemory(), { max: Number.NaN })
    expect((await request()).seen['x-ratelimit-limit']).toBe('1000')
  })

  test('When passing NaN to the timeWindow property then the timeWindow should be the default value - 60 seconds', async () => {
    const { request } = await serve(level, await inMemory(), { max: 2, timeWindow: Number.NaN })
    expect((await request()).reset).toBe('60')
  })

  test.each([
    ['With onExceeding option', 'onExceeding', 1],
    ['With onExceeded option', 'onExceeded', 2],
  ])('%s', async (_title, option, requests) => {
    const seen: string[] = []
    const own = { max: 1, [option]: (_req: FastifyRequest, key: string) => void seen.push(key) }
    const { statuses } = await serve(level, await inMemory(), own)
    await statuses(requests - 1)
    expect(seen).toEqual([])
    await statuses(1)
    expect(seen).toEqual(['127.0.0.1'])
  })

  test.each(STORES)('With redis store, %s', async (_name, newStore) => {
    const { request } = await serve(level, await newStore(), { max: 2, timeWindow: 60_000 })
    expect(await request()).toMatchObject({ status: 200, left: '1', reset: '60' })
    expect(await request()).toMatchObject({ status: 200, left: '0', reset: '60' })
    const { status, left, seen, body } = await request()
    expect([status, left, seen['retry-after'], seen['content-type']]).toEqual([
      429,
      '0',
      '60',
      'application/json; charset=utf-8',
    ])
    expect(JSON.parse(body)).toEqual({
      statusCode: 429,
      error: 'Too Many Requests',
      message: 'Rate limit exceeded, retry in 1 minute',
    })
  })

  test('With redis store, after the window', async () => {
    const { store, pass } = byClock()
    const { request, statuses } = await serve(level, store, { max: 2, timeWindow: 1000 })
    expect(await statuses(3)).toEqual([200, 200, 429])
    pass(1000)
    expect(await request()).toMatchObject({ status: 200, left: '1' })
  })

  test('Skip on redis error [it is decided for]', async () => {
    const { request, statuses } = await serve(level, away, { max: 2, timeWindow: 60_000, skipOnError: true })
    expect(await request()).toMatchObject({ status: 200, left: '1' })
    expect(await statuses(2)).toEqual([200, 429])
  })

  test('Throw on redis error [it is decided for]', async () => {
    const { request } = await serve(level, away, { max: 2, timeWindow: 60_000, skipOnError: false })
    expect(await request()).toMatchObject({ status: 200, left: '1' })
  })

  test.each(STORES)('When continue exceeding is on, %s', async (_name, newStore) => {
    const own = { max: 1, timeWindow: 50_000, continueExceeding: true }
    const { request } = await serve(level, await newStore(), own)
    expect((await request()).status).toBe(200)
    expect(await request()).toMatchObject({ status: 429, left: '0', reset: '50' })
  })

  test('exponential backoff with redis store [exponentialBackoff is an error]', async () => {
    const own = { max: 2, timeWindow: 1000, exponentialBackoff: true }
    await expect(serve(level, await inMemory(), own)).rejects.toThrow('exponentialBackoff: expected false')
  })
})

describe('Global rate limit alone', () => {
  const level = 'Global rate limit'

  test.each(STORES)('With redis store (ban), %s', async (_name, newStore) => {
    const { request } = await serve(level, await newStore(), { max: 1, ban: 1, timeWindow: 60_000 })
    expect(await request()).toMatchObject({ status: 200, left: '0', reset: '60' })
    expect(await request()).toMatchObject({ status: 429, left: '0', reset: '60' })
    const { status, seen, body } = await request()
    expect([status, seen['retry-after']]).toEqual([403, '60'])
    expect(JSON.parse(body)).toMatchObject({ statusCode: 403, error: 'Forbidden' })
  })

  test('With redis store (ban), after the window', async () => {
    const { store, pass } = byClock()
    const { statuses } = await serve(level, store, { max: 1, ban: 1, timeWindow: 1000 })
    expect(await statuses(3)).toEqual([200, 429, 403])
    pass(1000)
    expect(await statuses(1)).toEqual([200])
  })

  test('Redis with continueExceeding should not always return the timeWindow as ttl [a log ends with its newest entry]', async () => {
    const { store, pass } = byClock()
    const { request } = await serve(level, store, { max: 2, timeWindow: 3000, continueExceeding: true })
    expect(await request()).toMatchObject({ status: 200, left: '1', reset: '3' })
    pass(1000)
    expect(await request()).toMatchObject({ status: 200, left: '0', reset: '3' })
    expect(await request()).toMatchObject({ status: 429, left: '0' })
    pass(2500)
    expect((await request()).status).toBe(429)
  })

  test('When use a custom nameSpace [it is `name`; `nameSpace` in a route is an error]', async () => {
    await expect(serve('Route rate limit', await inMemory(), { max: 2, nameSpace: 'own:' })).rejects.toThrow(
      'nameSpace: expected none in a route',
    )
    const { request } = await serve(level, await inMemory(), { max: 1, timeWindow: 60_000, keyGenerator: keyOf })
    expect((await request({ 'x-key': 'name space' })).status).toBe(200)
    expect((await request({ 'x-key': 'name space' })).status).toBe(429)
  })

  const limits = { max: 2, timeWindow: 60_000 }

  /** Routes that count a request, and that only look. */
  async function serveChecks(store: Store) {
    const { app } = await serve('Route rate limit', store, limits, limits)
    const check = (app as unknown as { createRateLimit(): Check }).createRateLimit()
    const late = fastify()
    late.get('/peek', (req) => check(req, { increment: false }))
    late.get('/consume', (req) => check(req))
    return async (url: string) => (await late.inject(url)).json().remaining
  }

  test.each(STORES)(
    'With { increment: false } it reads the state without consuming it, %s',
    async (_name, newStore) => {
      const left = await serveChecks(await newStore())
      const seen: number[] = []
      for (const url of ['/peek', '/consume', '/peek', '/consume', '/peek']) seen.push(await left(url))
      expect(seen).toEqual([2, 1, 1, 0, 0])
    },
  )

  test('With { increment: false } it throws on redis error [it is decided for]', async () => {
    expect(await (await serveChecks(away))('/peek')).toBe(2)
  })
})

test('Route rate limit: When continue exceeding is off under route', async () => {
  const { store, pass } = byClock()
  const own = { max: 1, timeWindow: 5000, continueExceeding: false }
  const { statuses } = await serve('Route rate limit', store, own, { continueExceeding: true })
  expect(await statuses(2)).toEqual([200, 429])
  pass(4000)
  expect(await statuses(1)).toEqual([429])
  pass(1000)
  expect(await statuses(1)).toEqual([200])
})
