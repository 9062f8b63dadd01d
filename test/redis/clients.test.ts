// Release: runs clusters.
import {
  concurrency,
  createLimiter,
  gcra,
  type RedisClient,
  redisStore,
  type Store,
  slidingLog,
  slidingWindow,
} from '@sluice/core'
import { Cluster, Redis } from 'ioredis'
import { createClient, createClientPool, createCluster, createSentinel, RESP_TYPES } from 'redis'
import { createClient as createClient5, createSentinel as createSentinel5 } from 'redis5'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  clusterClients,
  namesOf,
  type Owned,
  ownedIoredis,
  ownedNodeRedis,
  sentinelClients,
  singleClients,
} from '../support/clients.js'
import { type RedisCluster, startCluster } from '../support/redis-cluster.js'
import { type RedisSentinels, startSentinels } from '../support/redis-sentinel.js'
import { HOST, type RedisServer, startRedis } from '../support/redis-server.js'
import { openStore } from '../support/stores.js'

let server: RedisServer
let cluster: RedisCluster
let sentinels: RedisSentinels
beforeAll(async () => {
  ;[server, cluster, sentinels] = await Promise.all([startRedis(), startCluster(), startSentinels()])
  return () => Promise.all([server.stop(), cluster.stop(), sentinels.stop()])
})

type Make = () => Owned<RedisClient>

const plain: [string, Make][] = [
  ...namesOf(singleClients).map((name): [string, Make] => [name, () => singleClients[name](server.port)]),
  ...namesOf(clusterClients).map((name): [string, Make] => [name, () => clusterClients[name](cluster)]),
  ...namesOf(sentinelClients).map((name): [string, Make] => [name, () => sentinelClients[name](sentinels)]),
]

/** Clients with options that users set for reasons of their own, and that a store must tolerate. */
const peculiar: Record<string, Make> = {
  'ioredis with a key prefix': () =>
    ownedIoredis(new Redis<'legacy'>({ host: HOST, port: server.port, keyPrefix: 'app:' })),
  'ioredis that returns numbers as text': () =>
    ownedIoredis(new Redis<'legacy'>({ host: HOST, port: server.port, stringNumbers: true })),
  'ioredis with automatic pipelines': () =>
    ownedIoredis(new Redis<'legacy'>({ host: HOST, port: server.port, enableAutoPipelining: true })),
  'ioredis on another database': () => ownedIoredis(new Redis<'legacy'>({ host: HOST, port: server.port, db: 3 })),
  'ioredis that connects late': () =>
    ownedLate(new Redis<'legacy'>({ host: HOST, port: server.port, lazyConnect: true })),
  'ioredis by URL': () => ownedIoredis(new Redis<'legacy'>(server.url)),
  'ioredis with RESP3': () => ownedIoredis(new Redis<'legacy'>({ host: HOST, port: server.port, protocol: 3 })),
  'ioredis Cluster with a key prefix': () =>
    ownedIoredis(new Cluster<'legacy'>([{ host: HOST, port: port(0) }], { keyPrefix: 'app:' })),
  'ioredis Cluster with a key prefix that has a tag': () =>
    ownedIoredis(new Cluster<'legacy'>([{ host: HOST, port: port(1) }], { keyPrefix: '{app}:' })),
  'ioredis Cluster with key prefix by node': () =>
    ownedIoredis(
      new Cluster<'legacy'>([{ host: HOST, port: port(0) }], {
        redisOptions: { keyPrefix: 'app:', stringNumbers: true },
      }),
    ),
  'ioredis Cluster that reads from replicas': () =>
    ownedIoredis(new Cluster<'legacy'>([{ host: HOST, port: port(0) }], { scaleReads: 'all' })),
  'ioredis Cluster with automatic pipelines': () =>
    ownedIoredis(new Cluster<'legacy'>([{ host: HOST, port: port(0) }], { enableAutoPipelining: true })),
  'redis on another database': () => ownedNodeRedis(createClient({ url: server.url, database: 4 })),
  'redis with RESP2': () => ownedNodeRedis(createClient({ url: server.url, RESP: 2 })),
  'redis 5 with RESP3': () => ownedNodeRedis(createClient5({ url: server.url, RESP: 3 })),
  'redis that returns numbers as text and text as buffers': () =>
    ownedNodeRedis(
      createClient({
        url: server.url,
        commandOptions: { typeMapping: { [RESP_TYPES.NUMBER]: String, [RESP_TYPES.BLOB_STRING]: Buffer } },
      }),
    ),
  'redis with its type mapping set later': () => {
    const { client, ready, close } = singleClients['redis 6'](server.port)
    return { client: client.withTypeMapping({ [RESP_TYPES.NUMBER]: String }), ready, close }
  },
  'redis cluster with options for its nodes': () =>
    ownedNodeRedis(
      createCluster({
        rootNodes: [{ url: cluster.masters[0]?.url ?? '' }],
        defaults: { socket: { noDelay: true } },
        minimizeConnections: true,
      }),
    ),
}

function port(index: number): number {
  return cluster.masters[index]?.port ?? 0
}

function ownedLate(client: Redis): Owned<Redis> {
  return { ...ownedIoredis(client), ready: Promise.resolve() }
}

describe.each([...plain, ...Object.entries(peculiar)])('%s', (kind, make) => {
  test('a store makes every kind of decision over every client', async () => {
    const { store, close } = await openStore(make(), { prefix: `${kind.replaceAll(' ', '-')}:` })
    try {
      await decidesEverything(store)
    } finally {
      await close()
    }
  })

  test('a store decides by the clock of its user over every client', async () => {
    let now = 1_700_000_000_000
    const prefix = `${kind.replaceAll(' ', '-')}-clock:`
    const { store, close } = await openStore(make(), { clock: () => now, prefix })
    try {
      const limiter = createLimiter({
        name: 'clock',
        store,
        limits: [slidingLog({ limit: 2, window: '10s' }), gcra({ limit: 4, window: '40s' })],
      })
      expect(await limiter.consume('k')).toMatchObject({ allowed: true, remaining: 1 })
      now += 4000
      expect(await limiter.consume('k')).toMatchObject({ allowed: true, remaining: 0 })
      expect(await limiter.consume('k')).toMatchObject({ allowed: false, reason: 'limited', retryAfterMs: 6000 })
      now += 5999
      expect(await limiter.consume('k')).toMatchObject({ allowed: false, retryAfterMs: 1 })
      now += 1
      expect(await limiter.consume('k')).toMatchObject({
        allowed: true,
        remaining: 0,
        resetAfterMs: expect.any(Number),
      })
      await limiter.block('k', { for: 5000 })
      now += 4999
      expect(await limiter.consume('k')).toMatchObject({ reason: 'blocked', retryAfterMs: 1 })
      now += 1
      expect(await limiter.peek('k')).toMatchObject({ reason: undefined })
    } finally {
      await close()
    }
  })
})

async function decidesEverything(store: Store): Promise<void> {
  const single = createLimiter({ name: 'single', store, limit: 3, window: '1h' })
  const first = await single.consume('k', { cost: 2 })
  expect(first).toMatchObject({ allowed: true, remaining: 1, cost: 2, kind: 'decided' })
  expect(await single.peek('k')).toMatchObject({ allowed: true, remaining: 1 })
  expect(await single.consume('k', { cost: 2 })).toMatchObject({ allowed: false, remaining: 1, reason: 'limited' })
  expect(await single.consume('k', { cost: 4 })).toMatchObject({
    allowed: false,
    reason: 'impossible',
    retryAfterMs: undefined,
  })
  expect(await single.refund('k', first)).toBe(true)
  expect(await single.refund('k', first)).toBe(false)
  expect(await single.peek('k')).toMatchObject({ remaining: 3, resetAfterMs: 0 })
  await single.consume('k', { cost: 3 })
  await single.reset('k')
  expect(await single.peek('k')).toMatchObject({ remaining: 3 })

  const limits = [
    slidingLog({ limit: 2, window: '1h', name: 'log' }),
    gcra({ limit: 10, window: '1d', name: 'gcra' }),
    slidingWindow({ limit: 10, window: '1d', segments: 24, edge: 'strict', name: 'segments' }),
    slidingLog({ limit: 9, window: '1d', name: 'log-too' }),
  ]
  const several = createLimiter({ name: 'several', store, limits })
  const verdicts = await Promise.all(Array.from({ length: 5 }, () => several.consume('k')))
  expect(verdicts.filter(({ allowed }) => allowed)).toHaveLength(2)
  expect((await several.peek('k')).limits.map(({ name, remaining }) => [name, remaining])).toEqual([
    ['log', 0],
    ['gcra', 8],
    ['segments', 8],
    ['log-too', 7],
  ])

  await several.block('k', { for: '1h', reason: 'scraping: ü, "quoted"\r\n' })
  expect(await several.consume('k')).toMatchObject({
    allowed: false,
    reason: 'blocked',
    block: { reason: 'scraping: ü, "quoted"\r\n' },
  })
  expect((await several.consume('other')).allowed).toBe(true)
  await several.unblock('k')
  expect((await several.consume('k')).reason).toBe('limited')

  const permits = createLimiter({ name: 'permits', store, limits: [concurrency({ limit: 2 })] })
  const [one, two, three] = await Promise.all([permits.consume('k'), permits.consume('k'), permits.consume('k')])
  expect([one.allowed, two.allowed, three.allowed]).toEqual([true, true, false])
  await permits.renew(one)
  await permits.release(one)
  await permits.release(one)
  expect(await permits.peek('k')).toMatchObject({ allowed: true, remaining: 1 })
}

test.each(['a string', {}, undefined, null, { duplicate: () => {} }])(
  'redisStore rejects a value that is no client: %j',
  (client) => {
    expect(() => redisStore(client as never)).toThrow(expect.objectContaining({ code: 'INVALID_POLICY' }))
  },
)

const sentinelRoots = () => ({
  name: sentinels.name,
  sentinelRootNodes: sentinels.sentinels.map(({ port }) => ({ host: HOST, port })),
})

test.each<[string, () => unknown]>([
  ['nothing', () => undefined],
  ['an address', () => 'redis://localhost'],
  ['redis 6 by Sentinel', () => createSentinel(sentinelRoots())],
  ['redis 5 by Sentinel', () => createSentinel5(sentinelRoots())],
  ['a pool of redis 6', () => createClientPool({ url: server.url })],
])('redisStore rejects %s, and names the clients that it accepts', (_, make) => {
  expect(() => redisStore(make() as never)).toThrow(
    /^redisStore: client: expected a client of ioredis \(single, Sentinel or Cluster; 5.4 or later\) or of redis \(single or cluster; 5 or later\), got /,
  )
})

/** A client of another library, as far as `redisStore` can tell. Its own package is not installed here. */
const withMethod = (name: string) => ({ [name]() {} })

test.each<[string, () => unknown, string]>([
  ['an address', () => 'redis://localhost', 'new Redis(url) of ioredis'],
  [
    'createSentinel of redis 6',
    () => createSentinel(sentinelRoots()),
    'new Redis({ sentinels, name, failoverDetector: true })',
  ],
  [
    'createSentinel of redis 5',
    () => createSentinel5(sentinelRoots()),
    'new Redis({ sentinels, name, failoverDetector: true })',
  ],
  ['createClientPool of redis', () => createClientPool({ url: server.url }), 'use createClient'],
  ['GLIDE', () => withMethod('customCommand'), 'a client of iovalkey, ioredis or redis for the same server'],
  ['Upstash', () => withMethod('createScript'), 'for the rediss:// address of the database'],
])('the error about a client of %s names the client to use', (_, make, remedy) => {
  expect(() => redisStore(make() as never)).toThrow(remedy)
})

test('stores share counts exactly when their prefixes are the same', async () => {
  const a = await openStore(singleClients['ioredis 6'](server.port), { prefix: 'a:' })
  const b = await openStore(singleClients['redis 6'](server.port), { prefix: 'b:' })
  const alsoA = await openStore(singleClients['redis 5'](server.port), { prefix: 'a:' })
  const limiter = (store: Store) => createLimiter({ name: 'shared', store, limit: 2, window: '1h' })
  expect((await limiter(a.store).consume('k')).remaining).toBe(1)
  expect((await limiter(b.store).consume('k')).remaining).toBe(1)
  expect((await limiter(alsoA.store).consume('k')).remaining).toBe(0)
  for (const { close } of [a, b, alsoA]) await close()
})

test.each(namesOf(singleClients))('%s sends keys and reasons of every alphabet unchanged', async (name) => {
  const { store, close } = await openStore(singleClients[name](server.port), { prefix: `сторож ${name}:` })
  const redis = new Redis({ host: HOST, port: server.port })
  try {
    const limiter = createLimiter({ name: 'text', store, limit: 2, window: '1h' })
    expect(await limiter.consume('ключ')).toMatchObject({ allowed: true, remaining: 1 })
    await limiter.block('ключ', { for: '1h', reason: 'занят 🚧' })
    expect(await limiter.consume('ключ')).toMatchObject({ reason: 'blocked', block: { reason: 'занят 🚧' } })
    const keys = await redis.keys(`сторож ${name}:v1:{key=${encodeURIComponent('ключ')}}:text:*`)
    expect(keys).toHaveLength(2)
  } finally {
    redis.disconnect()
    await close()
  }
})
