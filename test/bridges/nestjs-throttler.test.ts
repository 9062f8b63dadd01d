import 'reflect-metadata'
import type { Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { Controller, Get, Module } from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import { SkipThrottle, Throttle, ThrottlerGuard, ThrottlerModule, type ThrottlerModuleOptions } from '@nestjs/throttler'
import { sluiceStorage } from '@sluice/bridges/nestjs-throttler'
import { memoryStore } from '@sluice/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { redisForTests } from '../support/redis-for-tests.js'
import type { RedisServer } from '../support/redis-server.js'
import { freshName, inMemory, type NewStore, onRedis, statuses, statusOf } from './support.js'

let server: RedisServer
beforeAll(async () => {
  ;({ server } = await redisForTests())
})

const STORES: readonly [name: string, newStore: NewStore][] = [
  ['in memory', inMemory],
  ['on Redis', onRedis(() => server)],
]

type Throttlers = Exclude<ThrottlerModuleOptions, readonly unknown[]>
const dropApps: (() => Promise<void>)[] = []
afterAll(() => Promise.all(dropApps.map((drop) => drop())))

/** Applies a decorator as TypeScript does, to a method. */
function onMethod(target: object, name: string, ...decorators: MethodDecorator[]): void {
  const descriptor = Object.getOwnPropertyDescriptor(target, name) as PropertyDescriptor
  for (const decorate of decorators) decorate(target, name, descriptor)
}

/** A server with the routes `/`, `/other`, `/skipped` and `/own`, which has 1 per minute. */
async function serve(options: Throttlers): Promise<string> {
  class Routes {
    get() {
      return 'hi'
    }
    other() {
      return 'hi'
    }
    skipped() {
      return 'hi'
    }
    own() {
      return 'hi'
    }
  }
  onMethod(Routes.prototype, 'get', Get('/'))
  onMethod(Routes.prototype, 'other', Get('/other'))
  onMethod(Routes.prototype, 'skipped', Get('/skipped'), SkipThrottle())
  onMethod(Routes.prototype, 'own', Get('/own'), Throttle({ default: { limit: 1, ttl: 60_000 } }))
  Controller()(Routes)
  class App {}
  Module({
    imports: [ThrottlerModule.forRoot(options)],
    controllers: [Routes],
    providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
  })(App)
  const app = await NestFactory.create(App, { logger: false })
  await app.listen(0, '127.0.0.1')
  dropApps.push(() => app.close())
  const { port } = (app.getHttpServer() as Server).address() as { port: number }
  return `http://127.0.0.1:${port}`
}

describe.each(STORES)('@nestjs/throttler %s: its own cases', (_name, newStore) => {
  const storage = async () => sluiceStorage({ name: freshName(), store: await newStore() })
  const serveWith = async (options: Partial<Throttlers> = {}) =>
    serve({ throttlers: [{ ttl: 60_000, limit: 2 }], ...options, storage: await storage() })

  test('increments the request count', async () => {
    const service = await storage()
    expect(await service.increment('test', 1000, 1, 0, 'test')).toEqual({
      totalHits: 1,
      timeToExpire: 1,
      isBlocked: false,
      timeToBlockExpire: 0,
    })
  })

  test('keys are independent of each other over blocking and unblocking', async () => {
    const service = await storage()
    const hit = (key: string) => service.increment(key, 100, 3, 100, 'test')
    for (let round = 0; round < 4; round++) {
      expect((await hit('key1')).isBlocked).toBe(false)
      await hit('key2')
      await hit('key2')
      await sleep(60)
    }
  })

  test('adds headers to the response', async () => {
    const { headers } = await fetch(await serveWith())
    expect(headers.get('x-ratelimit-limit')).toBe('2')
    expect(headers.get('x-ratelimit-remaining')).toBe('1')
    expect(headers.get('x-ratelimit-reset')).toBe('60')
  })

  test('returns an error after the limit, with the time to wait', async () => {
    const url = await serveWith()
    expect(await statuses(url, 2)).toEqual([200, 200])
    const refused = await fetch(url)
    expect(refused.status).toBe(429)
    expect(refused.headers.get('retry-after')).toBe('60')
    expect(await refused.json()).toMatchObject({ statusCode: 429, message: 'ThrottlerException: Too Many Requests' })
  })

  test('takes values of the decorator instead of the options', async () => {
    const url = await serveWith()
    expect(await statuses(`${url}/own`, 2)).toEqual([200, 429])
    expect(await statuses(`${url}/other`, 3)).toEqual([200, 200, 429])
  })

  test('skips by the decorator, by `skipIf` and by the user agent', async () => {
    const url = await serveWith({ ignoreUserAgents: [/bot/] })
    expect(await statuses(`${url}/skipped`, 3)).toEqual([200, 200, 200])
    expect(await statuses(url, 3, { 'user-agent': 'bot' })).toEqual([200, 200, 200])
    const skipping = await serveWith({ skipIf: () => true })
    expect(await statuses(skipping, 3)).toEqual([200, 200, 200])
  })

  test('accepts functions for `ttl` and `limit`, and text', async () => {
    const url = await serveWith({ throttlers: [{ ttl: async () => 60_000, limit: () => 1 }] })
    expect(await statuses(url, 2)).toEqual([200, 429])
  })

  test('adds no headers where `setHeaders` is false', async () => {
    const { headers } = await fetch(await serveWith({ setHeaders: false }))
    expect(headers.get('x-ratelimit-limit')).toBeNull()
  })

  test('shows the error message that is set', async () => {
    const url = await serveWith({ throttlers: [{ ttl: 60_000, limit: 0 }], errorMessage: 'slow down' })
    expect(await (await fetch(url)).json()).toMatchObject({ message: 'slow down' })
  })

  test('generates keys and finds trackers by functions', async () => {
    const url = await serveWith({
      getTracker: (req) => String(req.headers['x-user']),
      generateKey: (_context, tracker, name) => `${name}:${tracker}`,
    })
    expect(await statuses(url, 3, { 'x-user': 'ann' })).toEqual([200, 200, 429])
    expect(await statusOf(`${url}/other`, { 'x-user': 'ann' })).toBe(429)
    expect(await statusOf(url, { 'x-user': 'bob' })).toBe(200)
  })

  test('several throttlers count by themselves', async () => {
    const throttlers = [
      { name: 'short', ttl: 60_000, limit: 5 },
      { name: 'long', ttl: 120_000, limit: 2 },
    ]
    const url = await serveWith({ throttlers, generateKey: (_context, tracker) => tracker })
    const { headers } = await fetch(url)
    expect([headers.get('x-ratelimit-remaining-short'), headers.get('x-ratelimit-remaining-long')]).toEqual(['4', '1'])
    await statusOf(url)
    const refused = await fetch(url)
    expect(refused.status).toBe(429)
    expect(refused.headers.get('retry-after-long')).toBe('120')
  })

  test('a limit of 0 refuses everything', async () => {
    const service = await storage()
    expect(await service.increment('ann', 60_000, 0, 60_000, 'default')).toEqual({
      totalHits: 1,
      timeToExpire: 60,
      isBlocked: true,
      timeToBlockExpire: 60,
    })
  })

  test('a wrong number is an error of the request', async () => {
    const service = await storage()
    await expect(service.increment('ann', 0, 5, 0, 'default')).rejects.toThrow('window: expected')
    await expect(service.increment('ann', 1000, 1.5, 0, 'default')).rejects.toThrow('limit: expected a whole number')
  })
})

describe('@nestjs/throttler, by a clock', () => {
  test('a refused key is blocked for `blockDuration`; without one it is admitted when there is room', async () => {
    let now = 0
    const service = sluiceStorage({ store: memoryStore({ clock: () => now }) })
    const hit = async (key: string, blockMs: number) => {
      const { isBlocked, timeToBlockExpire } = await service.increment(key, 10_000, 1, blockMs, 'default')
      return isBlocked ? timeToBlockExpire : 'admitted'
    }
    expect([await hit('ann', 30_000), await hit('bob', 0)]).toEqual(['admitted', 'admitted'])
    expect([await hit('ann', 30_000), await hit('bob', 0)]).toEqual([30, 10])
    now += 10_000
    expect([await hit('ann', 30_000), await hit('bob', 0)]).toEqual([20, 'admitted'])
    now += 20_000
    expect(await hit('ann', 30_000)).toBe('admitted')
    expect(await hit('ann', 30_000)).toBe(30)
  })

  test('numbers that change with each call are decided, more than there is room for', async () => {
    const service = sluiceStorage({ store: memoryStore() })
    const hit = (limit: number) => service.increment('ann', 60_000, limit, 0, 'default')
    for (let limit = 1; limit <= 1001; limit++) await hit(limit)
    expect((await hit(1)).isBlocked).toBe(true)
    expect((await hit(2)).isBlocked).toBe(false)
  })

  test('unknown options are refused', () => {
    expect(() => sluiceStorage({ ttl: 5 } as never)).toThrow('ttl: unknown option')
  })
})
