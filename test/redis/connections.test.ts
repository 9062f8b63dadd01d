import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter, redisStore } from '@sluice/core'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { namesOf, singleClients } from '../support/clients.js'
import { decided } from '../support/decided.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { until } from '../support/until.js'

let server: RedisServer
beforeEach(async () => {
  server = await startRedis()
})
afterEach(() => server.stop())

/** Before it is used again, a connection that was idle for so long is tested for some turns of the event loop. */
const idle = () => sleep(150)

async function whileTurnsTake<T>(ms: number, run: () => Promise<T>): Promise<T> {
  let isOver = false
  const turn = () => {
    for (const end = performance.now() + ms; performance.now() < end; );
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  try {
    return await run()
  } finally {
    isOver = true
  }
}

describe.each(namesOf(singleClients))('stores over %s', (kind) => {
  test('stores of one client share one connection, which ends with the last of them', async () => {
    const { client, ready, close } = singleClients[kind](server.port)
    await ready
    const stores = Array.from({ length: 12 }, () => redisStore(client, { timeout: 5000 }))
    for (const store of stores) expect(await store.ready()).toEqual({ state: 'available', cause: undefined })
    expect(await server.connections()).toBe(2)
    const limiters = stores.map((store, n) => createLimiter({ name: `of-${n}`, store, limit: 5, window: '1h' }))
    for (const limiter of limiters) expect((await decided(limiter.consume('k'))).remaining).toBe(4)
    for (const store of stores.slice(1)) await store.close()
    expect((await decided((limiters[0] as (typeof limiters)[number]).consume('k'))).remaining).toBe(3)
    expect((await (limiters[1] as (typeof limiters)[number]).consume('k')).kind).toBe('unavailable')
    await stores[0]?.close()
    await until('only the client of the user is connected', async () => (await server.connections()) === 1)
    const again = redisStore(client, { timeout: 5000 })
    expect((await again.ready()).state).toBe('available')
    await again.close()
    close()
  })

  test('stores of one client with different timeouts have separate connections', async () => {
    const { client, ready, close } = singleClients[kind](server.port)
    await ready
    const stores = [10_000, 10_000, 20_000].map((timeout) => redisStore(client, { timeout }))
    for (const store of stores) expect((await store.ready()).state).toBe('available')
    expect(await server.connections()).toBe(3)
    for (const store of stores) await store.close()
    close()
  })

  test('ready() reports a Redis that replies also to a process that was idle, and has much to do', async () => {
    const { client, ready, close } = singleClients[kind](server.port)
    await ready
    const store = redisStore(client, { timeout: 10_000 })
    for (let round = 0; round < 6; round++) {
      await idle()
      const readiness = await whileTurnsTake(3, () => store.ready())
      expect(readiness).toEqual({ state: 'available', cause: undefined })
    }
    await store.close()
    close()
  })

  test('decisions wait for the test of a connection that was idle, also where that takes longer than their timeout', async () => {
    const { client, ready, close } = singleClients[kind](server.port)
    await ready
    const store = redisStore(client, { timeout: 100 })
    await until('it is available', async () => (await store.ready()).state === 'available')
    const limiter = createLimiter({ name: 'idle', store, limit: 5000, window: '1h' })
    // On a busy machine, Redis may reply too late, but not every time.
    await until('Redis decides five times in a row', async () => {
      for (let round = 0; round < 5; round++) {
        await idle()
        const { kind } = await whileTurnsTake(20, () => limiter.consume('k'))
        if (kind !== 'decided') return false
      }
      return true
    })
    await store.close()
    close()
  })

  test('decisions end in time also after a test of the application has replaced the timers', async () => {
    const { client, ready, close } = singleClients[kind](server.port)
    await ready
    const store = redisStore(client, { timeout: 100 })
    await until('it is available', async () => (await store.ready()).state === 'available')
    const limiter = createLimiter({ name: 'fakes', store, limit: 5, window: '1h' })
    // Until no timer is set for replies.
    await sleep(150)
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      await limiter.consume('k')
    } finally {
      vi.useRealTimers()
    }
    server.kill('SIGSTOP')
    const hung = new AbortController()
    const { kind: decidedBy } = await Promise.race([
      limiter.consume('k'),
      sleep(15_000, { kind: 'hangs' }, { signal: hung.signal }),
    ])
    hung.abort()
    server.kill('SIGCONT')
    expect(decidedBy).toBe('unavailable')
    await store.close()
    close()
  })

  test('ready() reports the state of a store, and never rejects', async () => {
    const port = server.port
    await server.stop()
    const { client, close } = singleClients[kind](port)
    const store = redisStore(client, { timeout: 1000 })
    const { state, cause } = await store.ready()
    expect([state, cause]).toEqual(['unavailable', expect.any(Error)])
    await store.close()
    expect((await store.ready()).state).toBe('unavailable')
    close()
  })

  test('a store that may not write is not ready', async () => {
    await server.call('CONFIG', 'SET', 'min-replicas-to-write', 1)
    const { client, ready, close } = singleClients[kind](server.port)
    await ready
    const store = redisStore(client, { timeout: 5000 })
    expect(await store.ready()).toMatchObject({ state: 'unavailable', cause: { code: 'STORE_UNAVAILABLE' } })
    await server.call('CONFIG', 'SET', 'min-replicas-to-write', 0)
    expect(await store.ready()).toEqual({ state: 'available', cause: undefined })
    await store.close()
    close()
  })

  test('a new store waits for a server that accepts connections and is slow to reply', async () => {
    server.kill('SIGSTOP')
    const { client, close } = singleClients[kind](server.port)
    const store = redisStore(client, { connectTimeout: '20s' })
    const limiter = createLimiter({ name: 'slow', store, limit: 5, window: '1h' })
    const verdicts = Promise.all(Array.from({ length: 10 }, () => limiter.consume('k')))
    // Many times the timeout of a decision.
    await new Promise((resolve) => setTimeout(resolve, 600))
    server.kill('SIGCONT')
    expect((await verdicts).map(({ kind, allowed }) => `${kind} ${allowed}`).sort()).toEqual([
      ...Array(5).fill('decided false'),
      ...Array(5).fill('decided true'),
    ])
    await store.close()
    close()
  })
})
