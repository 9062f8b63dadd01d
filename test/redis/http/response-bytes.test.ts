import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { everyone, fixedWindow, redisStore, type Store } from '@sluice/core'
import { Redis } from 'ioredis'
import { afterAll, describe, expect, test } from 'vitest'
import { responseBytesContract } from '../../http/response-bytes.contract.js'
import type { AnyOptions } from '../../http/support/app.js'
import { receive } from '../../http/support/receive.js'
import { SENDING_APPS } from '../../http/support/sending-apps.js'
import { insist } from '../../support/outages.js'
import { startProxy } from '../../support/proxy.js'
import { redisForTests } from '../../support/redis-for-tests.js'

const { client, server: redis } = await redisForTests()
const stores: Store[] = []
afterAll(() => Promise.all(stores.map((store) => store.close())))

function newStore(): Store {
  const store = insist(redisStore(client, { timeout: 5000 }))
  stores.push(store)
  return store
}

for (const [name, factory] of Object.entries(SENDING_APPS)) responseBytesContract(name, factory, newStore)

const STEP = 64 * 1024
const MB = 1_000_000

describe('response bytes over processes and outages', () => {
  const [factory] = Object.values(SENDING_APPS) as [(typeof SENDING_APPS)[string]]

  async function start(store: Store, options: AnyOptions, size: number, whenAdmitted = () => {}) {
    const limits = [fixedWindow({ limit: 2 * MB, window: '1h', unit: 'response-bytes', anchor: 'first-request' })]
    const app = await factory({ store, key: everyone(), limits, ...options }, () => {
      whenAdmitted()
      return { whole: Buffer.alloc(size) }
    })
    app.server.listen(0, '127.0.0.1')
    await once(app.server, 'listening')
    const close = () => {
      app.server.close()
      app.server.closeAllConnections()
    }
    return { ...app, port: (app.server.address() as AddressInfo).port, close }
  }

  test('several processes share one quota of response bytes, each at most a step beyond it', async () => {
    const apps = await Promise.all([1, 2, 3].map(() => start(newStore(), { name: 'shared' }, 3 * MB)))
    const got = await Promise.all(apps.flatMap(({ port }) => [receive(port), receive(port)]))
    const sent = got.reduce((sum, { status, body }) => sum + (status === 200 ? body.length : 0), 0)
    expect(sent).toBeLessThanOrEqual(2 * MB + 6 * STEP)
    expect(got.some(({ status, isWhole }) => status === 200 && isWhole)).toBe(false)
    for (const { close } of apps) close()
  })

  /** Receives a response during which Redis stops replying. */
  async function silenced(options: AnyOptions) {
    const wire = await startProxy(redis.port)
    const own = new Redis({ port: wire.port, host: '127.0.0.1' })
    own.on('error', () => {})
    const store = redisStore(own, { timeout: 200 })
    await store.ready?.()
    const name = `silent-${options.unavailable?.decide}`
    const app = await start(store, { name, ...options }, 10 * MB, () => wire.toClient.hold())
    const got = await receive(app.port)
    app.close()
    await store.close()
    own.disconnect()
    await wire.stop()
    return got
  }

  test('response bytes count locally, up to the limit, when Redis stops replying', async () => {
    const got = await silenced({ unavailable: { decide: 'local' } })
    expect([got.status, got.isWhole]).toEqual([200, false])
    expect(got.body.length).toBeLessThanOrEqual(2 * MB + 2 * STEP)
  })

  test('a response is sent whole when Redis stops replying, with unavailable.decide "allow"', async () => {
    const got = await silenced({ unavailable: { decide: 'allow' } })
    expect([got.status, got.body.length, got.isWhole]).toEqual([200, 10 * MB, true])
  })

  test('a response is cut when Redis stops replying, with unavailable.decide "deny"', async () => {
    const got = await silenced({ unavailable: { decide: 'deny' } })
    expect([got.status, got.isWhole]).toEqual([200, false])
    expect(got.body.length).toBeLessThanOrEqual(STEP)
  })
})
