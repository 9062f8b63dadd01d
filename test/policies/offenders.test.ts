import { randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { memoryStore, type RedisStore, redisStore } from '@sluice/core'
import { byUser, rateLimit } from '@sluice/express'
import { policies } from '@sluice/policies'
import express, { type RequestHandler } from 'express'
import { Redis } from 'ioredis'
import { beforeAll, describe, expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
  return () => redis.stop()
})

const open = closedAfterEach()

const STORES = {
  memory: () => memoryStore({ offenders: true }),
  Redis: () => {
    const client = new Redis(redis.port)
    const store = redisStore(client, { prefix: randomUUID(), offenders: true, timeout: 10_000 })
    open.push(
      () => client.quit(),
      () => store.close(),
    )
    return store
  },
}

describe.each(Object.keys(STORES) as (keyof typeof STORES)[])('offenders on %s', (name) => {
  async function served(middleware: RequestHandler) {
    const app = express().set('trust proxy', 1).use(middleware)
    app.use((_req, res) => void res.send('ok'))
    const server = app.listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    open.push(() => new Promise((resolve) => server.close(resolve)))
    const { port } = server.address() as AddressInfo
    return async (path: string, user: string) => {
      const headers = { connection: 'close', 'x-user': user, 'x-forwarded-for': '192.0.2.7' }
      return (await fetch(`http://127.0.0.1:${port}${path}`, { headers })).status
    }
  }
  const listedIn = (store: Pick<RedisStore, 'offenders'>) => async (policy: string) => {
    const { offenders, refusals } = await store.offenders({ policy })
    return { refusals, offenders: offenders.map(({ kind, value, refusals }) => `${kind}=${value} ${refusals}`) }
  }

  test('refusals by hand count for offenders like those of requests', async () => {
    const store = STORES[name]()
    const listed = listedIn(store)
    const middleware = rateLimit({
      name: 'api',
      store,
      limit: 1,
      window: '1h',
      key: byUser((req) => req.get('x-user')),
    })
    const send = await served(middleware)
    expect([await send('/', 'ann'), await send('/', 'ann')]).toEqual([200, 429])
    for (let n = 0; n < 2; n++)
      expect(await middleware.limiter.consume({ user: 'ann' })).toMatchObject({ allowed: false })
    for (let n = 0; n < 3; n++) await middleware.limiter.consume({ user: 'bob' })
    await middleware.limiter.peek({ user: 'bob' })
    await middleware.limiter.acquire({ user: 'bob' }, { maxWait: '1s' }).catch(() => {})
    expect(await listed('api')).toEqual({ refusals: 6, offenders: ['user=ann 3', 'user=bob 3'] })
  })

  test('offenders are listed under the policy of the document that refused them', async () => {
    const store = STORES[name]()
    const listed = listedIn(store)
    const loaded = await policies.from({
      object: {
        version: 1,
        policies: {
          all: { limits: [{ limit: 4, window: '1h' }] },
          login: { key: 'user', match: { paths: ['/login'] }, limits: [{ limit: 1, window: '1h' }] },
          tiered: {
            key: 'user',
            match: { paths: ['/tiered'] },
            tier: 'plan',
            tiers: { free: [{ limit: 1, window: '1h' }] },
          },
          banning: {
            key: 'user',
            match: { paths: ['/banning'] },
            limits: [{ limit: 1, window: '1h' }],
            ban: { after: 1, within: '1m', for: ['1h'] },
          },
        },
      },
      keys: { user: (req) => req.get('x-user') },
      tiers: { plan: () => 'free' },
    })
    const middleware = rateLimit({ name: 'edge', policies: loaded, store })
    const { limiter } = middleware
    const send = await served(middleware)
    for (const status of [200, 429, 429]) expect(await send('/login', 'ann')).toBe(status)
    expect(await listed('login')).toEqual({ refusals: 2, offenders: ['user=ann 2'] })
    for (const status of [200, 200, 200, 429]) expect(await send('/', 'ann')).toBe(status)
    expect(await listed('all')).toEqual({ refusals: 1, offenders: ['ip=192.0.2.7 1'] })

    expect(await limiter.consume({ user: 'ann' }, { tier: 'login' })).toMatchObject({ allowed: false })
    expect(await listed('login')).toEqual({ refusals: 3, offenders: ['user=ann 3'] })
    expect(await limiter.consume({ user: 'eve' }, { tier: 'banning' })).toMatchObject({ allowed: true })
    for (let n = 0; n < 2; n++) {
      expect(await limiter.consume({ user: 'eve' }, { tier: 'banning' })).toMatchObject({ allowed: false })
    }
    expect(await listed('banning')).toEqual({ refusals: 2, offenders: ['user=eve 2'] })

    await limiter.consume({ user: 'ann' }, { tier: 'tiered.free' })
    expect(await send('/tiered', 'ann')).toBe(429)
    expect(await listed('tiered')).toEqual({ refusals: 1, offenders: ['user=ann 1'] })

    // A block names neither its identity nor its policy: it counts in each policy of the request.
    await limiter.block({ user: 'bob' }, { for: '1h' })
    expect(await send('/login', 'bob')).toBe(429)
    expect(await listed('login')).toEqual({ refusals: 4, offenders: ['user=ann 3', 'user=bob 1'] })
    expect(await listed('all')).toEqual({ refusals: 3, offenders: ['ip=192.0.2.7 3'] })
    expect(await listed('edge')).toEqual({ refusals: 0, offenders: [] })
  })
})
