// Release: runs clusters. Takes long: begins first.
import { setTimeout as sleep } from 'node:timers/promises'
import {
  createLimiter,
  gcra,
  type Limiter,
  type RedisClient,
  type RedisStoreOptions,
  redisStore,
  slidingLog,
} from '@sluice/core'
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { clusterClients, type Owned, oneOfEach, singleClients } from '../support/clients.js'
import { byEffort } from '../support/effort.js'
import { startProxy } from '../support/proxy.js'
import { type RedisCluster, startCluster } from '../support/redis-cluster.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { until } from '../support/until.js'

let server: RedisServer
let cluster: RedisCluster
beforeAll(async () => {
  vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  ;[server, cluster] = await Promise.all([startRedis(), startCluster()])
  return async () => {
    vi.restoreAllMocks()
    await Promise.all([server.stop(), cluster.stop()])
  }
})

const leaving: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const leave of leaving.splice(0)) await leave()
  await Promise.all([server.flush(), cluster.flush()])
})

/** A process that has just started, without waiting for its store. */
function member({ client, close }: Owned<RedisClient>, options: RedisStoreOptions = {}) {
  const store = redisStore(client, { timeout: 5000, ...options })
  const policies = {
    plain: { limit: 100_000, window: '1h' },
    several: {
      limits: [gcra({ limit: 100_000, window: '1h' }), gcra({ limit: 200_000, window: '1d' })],
    },
    leased: { limits: [slidingLog({ limit: 100_000, window: '1h', lease: { size: 10, ttl: '1s' } })] },
    relaxed: { limit: 100_000, window: '1h', consistency: { syncEvery: 50 } },
    banning: { limit: 100_000, window: '1h', ban: { after: 5, within: '1h', for: ['1h'] } },
  } as const
  const limiters = Object.entries(policies).map(([name, policy]) => createLimiter({ name, store, ...policy }))
  const byAddress = createLimiter({ name: 'by-address', store, limit: 100_000, window: '1h', key: address })
  const leave = async () => {
    await store.close()
    close()
  }
  leaving.push(leave)
  return { store, byAddress, limiters: limiters as [Limiter, ...Limiter[]] }
}

const address = Object.assign((text: string) => text, { kind: 'ip' })

const kinds = {
  ...Object.fromEntries(oneOfEach(singleClients).map((name) => [name, () => singleClients[name](server.port)])),
  ...Object.fromEntries(oneOfEach(clusterClients).map((name) => [name, () => clusterClients[name](cluster)])),
}

describe.each(Object.keys(kinds))('over %s', (name) => {
  const connect = () => {
    const owned = (kinds[name] as () => Owned<RedisClient>)()
    return owned
  }

  test('a new process admits no client with a store-wide block, however many blocks there are', async () => {
    const owned = connect()
    await owned.ready
    const { store } = member(owned)
    await store.ready()
    const since = Date.now()
    const entry = (value: string) => ({ kind: 'key', value, reason: '', since, until: since + 3_600_000, times: 1 })
    await store.blocks.import(Array.from({ length: 3000 }, (_, n) => entry(`u${n}`)))
    await store.blocks.add({ ip: '192.0.2.0/24' }, { for: '1h' })
    for (const isReady of [false, true]) {
      const other = connect()
      await other.ready
      const started = member(other)
      if (isReady) await started.store.ready()
      for (let round = 0; round < 3; round++) {
        const verdicts = await Promise.all([
          started.byAddress.consume('192.0.2.9'),
          ...started.limiters.flatMap((limiter) => [limiter.consume('u2999'), limiter.consume('u7')]),
        ])
        expect(verdicts.map(({ reason }) => reason)).toEqual(verdicts.map(() => 'blocked'))
      }
      expect((await started.limiters[0].consume('ann')).allowed).toBe(true)
      expect((await started.byAddress.consume('198.51.100.9')).allowed).toBe(true)
    }
  })

  test('a new process refuses by the keys of blocks after the index was evicted', async () => {
    const owned = connect()
    await owned.ready
    const { store } = member(owned)
    await store.ready()
    for (let n = 0; n < 20; n++) await store.blocks.add({ key: `u${n}` }, { for: '1h' })
    await leaving.shift()?.()
    const servers = name.includes('luster') ? cluster.masters : [server]
    for (const each of servers) {
      for (const key of (await each.call('KEYS', '*.store:*')) as string[]) {
        if (/:(index|changes)$/.test(key)) await each.call('DEL', key)
      }
    }
    const other = connect()
    await other.ready
    const { limiters } = member(other)
    const verdicts = await Promise.all(Array.from({ length: 20 }, (_, n) => limiters[0].consume(`u${n}`)))
    expect(verdicts.map(({ reason }) => reason)).toEqual(verdicts.map(() => 'blocked'))
  })
})

test('a new process refuses by the keys of blocks while others restore the index', async () => {
  const wire = await startProxy(server.port)
  const slow = singleClients['ioredis 6'](wire.port)
  await slow.ready
  const { store } = member(slow, { timeout: 20_000 })
  await store.ready()
  const since = Date.now() - 60_000
  const names = Array.from({ length: 3000 }, (_, n) => `u${n}`)
  await store.blocks.import(
    names.map((value) => ({ kind: 'key', value, reason: '', since, until: since + 3_600_000, times: 1 })),
  )
  // A hundred blocks each fifth of a second: longer than the looks after which a process takes an index as complete.
  wire.toClient.pass(200)
  for (const key of (await server.call('KEYS', '*{blocks.*')) as string[]) await server.call('DEL', key)
  const owned = singleClients['ioredis 6'](server.port)
  await owned.ready
  const started = member(owned, { denyCache: false })
  while (started.store.blocks.known < names.length) {
    const some = Array.from({ length: 100 }, () => names[Math.floor(Math.random() * names.length)] as string)
    const verdicts = await Promise.all(some.map((name) => started.limiters[0].consume(name)))
    expect(verdicts.filter(({ allowed }) => allowed)).toEqual([])
    await sleep(10)
  }
  wire.toClient.pass()
  leaving.push(() => wire.stop())
})

test('a new process continues to refuse by the keys of blocks when no other restores the index', async () => {
  const before = singleClients['ioredis 6'](server.port)
  await before.ready
  await member(before).store.blocks.add({ key: 'spammer' }, { for: '1h' })
  await leaving.shift()?.()
  for (const key of (await server.call('KEYS', '*{blocks.*')) as string[]) await server.call('DEL', key)
  const owned = singleClients['redis 5'](server.port)
  await owned.ready
  const { limiters } = member(owned, { denyCache: false })
  const end = performance.now() + 5000
  while (performance.now() < end) {
    for (const limiter of limiters) expect((await limiter.consume('spammer')).reason).toBe('blocked')
    await sleep(100)
  }
})

/** The number of blocks that a process knows at most. Importing as many computes for ten seconds, so only in `npm run deep`. */
const MOST_KNOWN = byEffort({ usual: [], full: [100_000] })

test.each(MOST_KNOWN)('a store rejects blocks of networks beyond the %i that a process can know', async (most) => {
  const owned = singleClients['ioredis 6'](server.port)
  await owned.ready
  const { store, byAddress } = member(owned, { timeout: 20_000, denyCache: false })
  const since = Date.now()
  const network = (n: number) => `10.${n >> 10}.${(n >> 2) & 255}.${(n & 3) * 64}/26`
  const entries = Array.from({ length: most }, (_, n) => {
    return { kind: 'ip', value: network(n), reason: '', since, until: since + 3_600_000, times: 1 }
  })
  expect(await store.blocks.import(entries)).toBe(most)
  const one = { for: '1h' } as const
  await expect(store.blocks.add({ ip: '192.0.2.0/24' }, one)).rejects.toMatchObject({ code: 'STORE_FULL' })
  await expect(
    store.blocks.import([{ ...(entries[0] as (typeof entries)[0]), value: '192.0.2.0/24' }]),
  ).rejects.toThrow(`at most ${most} networks`)
  await store.blocks.add({ ip: network(most - 1) }, one)
  await store.blocks.add({ ip: '192.0.2.9' }, one)
  for (const ip of ['10.0.0.9', '10.97.167.193', '192.0.2.9']) {
    expect((await byAddress.consume(ip)).reason, ip).toBe('blocked')
  }
  expect((await byAddress.consume('192.0.2.8')).allowed).toBe(true)
})

test.each(MOST_KNOWN)('store-wide blocks hold beyond the %i that a process knows', async (most) => {
  const names = oneOfEach(singleClients)
  const first = singleClients[names[0] as 'ioredis 6'](server.port)
  await first.ready
  const { store, limiters } = member(first, { timeout: 20_000, denyCache: false })
  await store.ready()
  const since = Date.now()
  const some = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, n) => {
      return { kind: 'key', value: `u${from + n}`, reason: '', since, until: since + 3_600_000, times: 1 }
    })
  await store.blocks.import(some(0, most + 1000))
  expect(store.blocks.known).toBe(most)
  const admitted = async (limiter: Limiter, from: number) => {
    const verdicts = await Promise.all(some(from, from + 1000).map(({ value }) => limiter.consume(value)))
    return verdicts.filter(({ allowed }) => allowed).length
  }
  for (const limiter of limiters) expect(await admitted(limiter, most)).toBe(0)
  const second = singleClients[names[1] as 'redis 5'](server.port)
  await second.ready
  const other = member(second, { timeout: 20_000, denyCache: false })
  await until('the other process knows as many blocks as it can', () => other.store.blocks.known === most)
  for (let from = 0; from < most + 1000; from += 1000) expect(await admitted(other.limiters[0], from)).toBe(0)
})
