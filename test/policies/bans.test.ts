import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { memoryStore, redisStore, type Store } from '@sluice/core'
import { rateLimit } from '@sluice/express'
import { policies } from '@sluice/policies'
import express from 'express'
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

const STORES: Readonly<Record<string, () => Store>> = {
  memory: () => memoryStore(),
  Redis: () => {
    const client = new Redis(redis.port)
    const store = redisStore(client, { prefix: randomUUID() })
    open.push(
      () => client.quit(),
      () => store.close(),
    )
    return store
  },
}

const BAN = { after: 2, within: '1m', for: ['1h', '1d'], private: true }
const LIMITS = [{ limit: 1, window: '10m' }]

describe.each(Object.keys(STORES))('bans of a document on %s', (name) => {
  async function started(login: object, search: object = {}) {
    const loaded = await policies.from({
      object: {
        version: 1,
        policies: {
          all: { limits: [{ limit: 100, window: '1m' }] },
          login: { match: { paths: ['/login'] }, limits: LIMITS, ...login },
          search: { match: { paths: ['/search'] }, limits: LIMITS, ...search },
        },
      },
    })
    const middleware = rateLimit({ policies: loaded, store: (STORES[name] as () => Store)() })
    const app = express()
    app.use(middleware)
    app.use((_req, res) => void res.send('ok'))
    const server = createServer(app)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    open.push(() => new Promise((resolve) => server.close(resolve)))
    const { port } = server.address() as AddressInfo
    const send = async (path: string) => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { connection: 'close' } })
      const body = await response.text()
      return response.status === 200 ? body : (JSON.parse(body) as { type: string }).type.replace(/.*#/, '')
    }
    return { send, limiter: middleware.limiter }
  }

  test('bans of a document hold for their own policy, and unblock ends them', async () => {
    const { send, limiter } = await started({ ban: BAN }, { ban: BAN })
    expect(await send('/login')).toBe('ok')
    expect(await send('/login')).toBe('quota-exceeded')
    expect(await send('/login')).toBe('abnormal-usage-detected')
    expect(await send('/login')).toBe('abnormal-usage-detected')
    expect(await send('/')).toBe('ok')
    expect(await send('/search')).toBe('ok')

    await limiter.unblock({ ip: '127.0.0.1' })
    // Its strikes and its rung are cleared as well.
    expect(await send('/login')).toBe('quota-exceeded')
    expect(await send('/login')).toBe('abnormal-usage-detected')
  })

  test('bans with scope "store" hold for every policy', async () => {
    const { send, limiter } = await started({ ban: { ...BAN, scope: 'store' } })
    for (let n = 0; n < 3; n++) await send('/login')
    expect(await send('/login')).toBe('abnormal-usage-detected')
    expect(await send('/')).toBe('abnormal-usage-detected')
    await limiter.unblock({ ip: '127.0.0.1' })
    expect(await send('/')).toBe('ok')
  })

  test('a blocked identity is refused by policies with and without ban', async () => {
    const { send, limiter } = await started({ ban: BAN })
    await limiter.block({ ip: '127.0.0.1' }, { for: '1h' })
    expect(await send('/')).toBe('abnormal-usage-detected')
    expect(await send('/login')).toBe('abnormal-usage-detected')
  })

  test('a ban of a document can count outcomes as strikes instead of refusals', async () => {
    const { send } = await started({ limits: [{ limit: 50, window: '1m' }], ban: { ...BAN, count: { only: 200 } } })
    for (let n = 0; n < 2; n++) expect(await send('/login')).toBe('ok')
    await expect.poll(() => send('/login')).toBe('abnormal-usage-detected')
    expect(await send('/')).toBe('ok')
  })
})
