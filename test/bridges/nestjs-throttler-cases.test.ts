/**
 * The own cases of @nestjs/throttler, each by its name: those of its storage, guard and servers. Two are left out, which look at
 * providers of the peer alone. Time passes by the clock of the store.
 */
import 'reflect-metadata'
import type { Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { Controller, Get, Module, Post } from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import {
  minutes,
  SkipThrottle,
  seconds,
  Throttle,
  ThrottlerGuard,
  ThrottlerModule,
  type ThrottlerModuleOptions,
} from '@nestjs/throttler'
import { sluiceStorage } from '@sluice/bridges/nestjs-throttler'
import { memoryStore } from '@sluice/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { redisForTests } from '../support/redis-for-tests.js'
import type { RedisServer } from '../support/redis-server.js'
import { freshName, inMemory, type NewStore, oneOnRedis } from './support.js'

let server: RedisServer
beforeAll(async () => {
  ;({ server } = await redisForTests())
})

const STORES: readonly [name: string, newStore: NewStore][] = [
  ['in memory', inMemory],
  ['on Redis', oneOnRedis(() => server)],
]

type Throttlers = Exclude<ThrottlerModuleOptions, readonly unknown[]>
type Routes = Record<string, MethodDecorator[]>
const dropApps: (() => Promise<void>)[] = []
afterAll(() => Promise.all(dropApps.map((drop) => drop())))

const PLATFORMS = [
  ['express', () => new ExpressAdapter()],
  ['fastify', () => new FastifyAdapter()],
] as const

/** A controller whose methods are named after their paths. */
function controllerOf(routes: Routes) {
  class Routed {}
  for (const [path, decorators] of Object.entries(routes)) {
    const method = { [path]: () => ({ success: true }) }[path]
    Object.defineProperty(Routed.prototype, path, { value: method, configurable: true, writable: true })
    const descriptor = Object.getOwnPropertyDescriptor(Routed.prototype, path) as PropertyDescriptor
    for (const decorate of [Get(path), ...decorators]) decorate(Routed.prototype, path, descriptor)
  }
  Controller()(Routed)
  return Routed
}

/** A server with these routes, by a clock that `pass` turns. */
async function serve(newAdapter: () => ExpressAdapter | FastifyAdapter, options: Partial<Throttlers>, routes: Routes) {
  let now = 0
  const storage = sluiceStorage({ name: freshName(), store: memoryStore({ clock: () => now }) })
  const all = { throttlers: [{ ttl: 60_000, limit: 5 }], ...options, storage }
  class App {}
  Module({
    imports: [ThrottlerModule.forRoot(all)],
    controllers: [controllerOf(routes)],
    providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
  })(App)
  const app = await NestFactory.create(App, newAdapter(), { logger: false })
  await app.listen(0, '127.0.0.1')
  dropApps.push(() => app.close())
  const { port } = (app.getHttpServer() as Server).address() as { port: number }
  const request = async (path = '/', headers: Record<string, string> = {}, method = 'GET') => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers, method })
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  const statuses = async (count: number, path?: string) => {
    const seen: number[] = []
    for (let n = 0; n < count; n++) seen.push((await request(path)).status)
    return seen
  }
  return { request, statuses, pass: (ms: number) => (now += ms) }
}

describe.each(STORES)('ThrottlerStorageService %s', (_name, newStore) => {
  const storage = async () => sluiceStorage({ name: freshName(), store: await newStore() })

  test('should increment the request count', async () => {
    const result = await (await storage()).increment('test', 1000, 1, 0, 'test')
    expect(result).toMatchObject({ totalHits: 1, timeToExpire: 1, isBlocked: false })
  })

  test('keys should be independent of each other over blocking and unblocking', async () => {
    const service = await storage()
    const hit = (key: string) => service.increment(key, 100, 3, 100, 'test')
    for (let round = 0; round < 4; round++) {
      expect((await hit('key1')).isBlocked).toBe(false)
      await hit('key2')
      await hit('key2')
      await sleep(50)
    }
  })
})

describe.each(PLATFORMS)('ThrottlerGuard, HTTP Context, on %s', (_platform, newAdapter) => {
  const plain = { '/': [] }

  test('should add headers to the res', async () => {
    const { headers } = await (await serve(newAdapter, {}, plain)).request()
    const fields = ['limit', 'remaining', 'reset'].map((field) => headers.get(`x-ratelimit-${field}`))
    expect(fields).toEqual(['5', '4', '60'])
  })

  test('should return an error after passing the limit', async () => {
    const { request, statuses } = await serve(newAdapter, {}, plain)
    expect(await statuses(5)).toEqual([200, 200, 200, 200, 200])
    const { status, headers, text } = await request()
    expect([status, headers.get('retry-after')]).toEqual([429, '60'])
    expect(text).toContain('ThrottlerException')
  })

  test('should pull values from the reflector instead of options', async () => {
    const own = { '/': [Throttle({ default: { limit: 2, ttl: 1000 } })] }
    const { headers } = await (await serve(newAdapter, {}, own)).request()
    expect([headers.get('x-ratelimit-limit'), headers.get('x-ratelimit-remaining')]).toEqual(['2', '1'])
  })

  test('should skip due to the user-agent header', async () => {
    const { request } = await serve(newAdapter, { ignoreUserAgents: [/userAgentIgnore/] }, plain)
    const { status, headers } = await request('/', { 'user-agent': 'userAgentIgnore' })
    expect([status, headers.get('x-ratelimit-limit')]).toEqual([200, null])
  })

  test('should accept callback options for ttl and limit', async () => {
    const throttlers = [{ ttl: () => 60_000, limit: () => 5 }]
    const { headers } = await (await serve(newAdapter, { throttlers }, plain)).request()
    expect([headers.get('x-ratelimit-limit'), headers.get('x-ratelimit-remaining')]).toEqual(['5', '4'])
  })

  test('should not add headers to the response when setHeaders is false', async () => {
    const throttlers = [{ ttl: 60_000, limit: 5, setHeaders: false }]
    const { request, statuses } = await serve(newAdapter, { throttlers }, plain)
    expect(await statuses(5)).toEqual([200, 200, 200, 200, 200])
    const { status, headers } = await request()
    expect([status, headers.get('x-ratelimit-limit'), headers.get('retry-after')]).toEqual([429, null, null])
  })

  test('should respect setHeaders option from commonOptions', async () => {
    const { headers } = await (await serve(newAdapter, { setHeaders: false }, plain)).request()
    expect(headers.get('x-ratelimit-limit')).toBeNull()
  })
})

describe.each(PLATFORMS)('controllers, on %s', (_platform, newAdapter) => {
  test('AppController GET /ignored', async () => {
    const { request } = await serve(newAdapter, {}, { '/ignored': [SkipThrottle()] })
    const { status, headers } = await request('/ignored')
    expect([status, headers.get('x-ratelimit-limit')]).toEqual([200, null])
  })

  test('AppController GET /ignore-user-agents', async () => {
    const throttlers = [{ ttl: 10_000, limit: 2, ignoreUserAgents: [/throttler-test/g] }]
    const { request } = await serve(newAdapter, { throttlers }, { '/ignore-user-agents': [] })
    const { status, headers } = await request('/ignore-user-agents', { 'user-agent': 'throttler-test/0.0.0' })
    expect([status, headers.get('x-ratelimit-limit')]).toEqual([200, null])
  })

  test('AppController GET /', async () => {
    const { request } = await serve(newAdapter, { throttlers: [{ ttl: 10_000, limit: 2 }] }, { '/': [] })
    const { text, headers } = await request()
    expect(JSON.parse(text)).toEqual({ success: true })
    const fields = ['limit', 'remaining', 'reset'].map((field) => headers.get(`x-ratelimit-${field}`))
    expect(fields).toEqual(['2', '1', '10'])
  })

  /** Refused after the limit, until the block has ended and there is room. */
  test.each([
    ['LimitController GET [a block that is shorter than ttl makes no room]', 2, 10_000, 5000],
    ['LimitController GET /higher', 5, 10_000, 15_000],
    ['DefaultController GET /default [a block that is shorter than ttl makes no room]', 5, 60_000, 20_000],
  ])('%s', async (_title, limit, ttl, blockDuration) => {
    const throttlers = [{ ttl, limit, blockDuration }]
    const { request, statuses, pass } = await serve(newAdapter, { throttlers }, { '/': [] })
    for (let left = limit - 1; left >= 0; left--) {
      const { status, headers } = await request()
      expect([status, headers.get('x-ratelimit-remaining')]).toEqual([200, String(left)])
    }
    const { status, headers } = await request()
    expect([status, headers.get('retry-after')]).toEqual([429, String(Math.max(blockDuration, ttl) / 1000)])
    pass(blockDuration - 1)
    expect(await statuses(1)).toEqual([429])
    pass(Math.max(ttl - blockDuration, 0) + 1)
    expect((await request()).headers.get('x-ratelimit-remaining')).toBe(String(limit - 1))
  })

  test('ThrottlerTestController GET /test/throttle', async () => {
    const own = { '/test/throttle': [Post('/test/throttle'), Throttle({ default: { limit: 1, ttl: 1000 } })] }
    const { request, pass } = await serve(newAdapter, {}, own)
    const send = async () => (await request('/test/throttle', {}, 'POST')).status
    expect(await send()).toBe(201)
    pass(1000)
    expect([await send(), await send(), await send()]).toEqual([201, 429, 429])
  })

  test('should skip throttling if skipIf returns true', async () => {
    const { statuses } = await serve(
      newAdapter,
      { throttlers: [{ ttl: 1000, limit: 1, skipIf: () => true }] },
      { '/': [] },
    )
    expect(await statuses(3)).toEqual([200, 200, 200])
  })
})

describe.each(PLATFORMS)('Custom-error-message, on %s', (_platform, newAdapter) => {
  test.each(['default', 'other'])('Route - %s: should receive a custom exception', async (name) => {
    const throttlers = ['default', 'other'].map((each) => ({ name: each, ttl: seconds(3), limit: 2 }))
    const errorMessage: Throttlers['errorMessage'] = (context, { tracker, totalHits }) =>
      `${context.getHandler().name} ${tracker} ${totalHits}`
    const routes = { '/default': [SkipThrottle({ other: true })], '/other': [SkipThrottle({ default: true })] }
    const { request, statuses } = await serve(newAdapter, { throttlers, errorMessage }, routes)
    expect(await statuses(2, `/${name}`)).toEqual([200, 200])
    expect((await request(`/${name}`)).text).toContain(`/${name} 127.0.0.1 3`)
  })
})

describe.each(PLATFORMS)('Function-Overrides-Throttler, on %s', (_platform, newAdapter) => {
  const throttlers = [
    { name: 'default', ttl: seconds(3), limit: 2 },
    {
      name: 'custom',
      ttl: seconds(3),
      limit: 2,
      getTracker: () => 'own tracker',
      generateKey: (_context: unknown, tracker: string, name: string) => `${name}-${tracker}`,
    },
  ]
  const routes = {
    '/': [SkipThrottle({ custom: true })],
    '/1': [SkipThrottle({ custom: true })],
    '/custom': [SkipThrottle({ default: true })],
    '/custom/1': [SkipThrottle({ default: true })],
  }

  test('Default Routes: should receive an exception when firing 3 requests within 3 seconds to the same endpoint', async () => {
    const { statuses } = await serve(newAdapter, { throttlers }, routes)
    expect(await statuses(3, '/')).toEqual([200, 200, 429])
    expect(await statuses(1, '/1')).toEqual([200])
  })

  test('Custom Routes: should receive an exception when firing 3 requests within 3 seconds to any endpoint', async () => {
    const { statuses } = await serve(newAdapter, { throttlers }, routes)
    expect(await statuses(2, '/custom')).toEqual([200, 200])
    expect(await statuses(1, '/custom/1')).toEqual([429])
  })
})

describe.each(PLATFORMS)('Multi-Throttler Named Usage, on %s', (_platform, newAdapter) => {
  const throttlers = [
    { ttl: seconds(5), limit: 2 },
    { name: 'long', ttl: minutes(1), limit: 5 },
    { name: 'short', ttl: seconds(1), limit: 1 },
  ]
  const routes = {
    '/': [],
    '/skip-short': [SkipThrottle({ short: true })],
    '/skip-default-and-long': [SkipThrottle({ default: true, long: true })],
  }
  const start = () => serve(newAdapter, { throttlers }, routes)

  test('should receive an exception when firing 2 requests within a second', async () => {
    const { request } = await start()
    const { headers } = await request()
    expect([headers.get('x-ratelimit-limit-short'), headers.get('x-ratelimit-remaining-short')]).toEqual(['1', '0'])
    const refused = await request()
    expect([refused.status, refused.headers.get('retry-after-short')]).toEqual([429, '1'])
  })

  test('should get an error if we send two more requests within the first five seconds', async () => {
    const { request, pass } = await start()
    await request()
    pass(1000)
    expect((await request()).headers.get('x-ratelimit-remaining')).toBe('0')
    pass(1000)
    const refused = await request()
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '5'])
  })

  test('should get an error if we smartly send 4 more requests within the minute', async () => {
    const { request, pass } = await start()
    for (const left of ['4', '3', '2', '1', '0']) {
      const { status, headers } = await request()
      expect([status, headers.get('x-ratelimit-remaining-long')]).toEqual([200, left])
      pass(5000)
    }
    const refused = await request()
    expect([refused.status, refused.headers.get('retry-after-long')]).toEqual([429, '60'])
  })

  test('should skip the short throttler', async () => {
    const { request } = await start()
    const left = async () => (await request('/skip-short')).headers.get('x-ratelimit-remaining')
    expect([await left(), await left()]).toEqual(['1', '0'])
  })

  test('should skip the default and long trackers', async () => {
    const { headers } = await (await start()).request('/skip-default-and-long')
    const left = ['-short', '', '-long'].map((suffix) => headers.get(`x-ratelimit-remaining${suffix}`))
    expect(left).toEqual(['0', null, null])
  })
})
