import { createLimiter, type RedisClient, type RedisStoreOptions, redisStore } from '@sluice/core'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { clusterClients, namesOf, type Owned, sentinelClients, singleClients } from '../support/clients.js'
import { decided } from '../support/decided.js'
import { warningsDuring } from '../support/process-events.js'
import { startCluster } from '../support/redis-cluster.js'
import { startSentinels } from '../support/redis-sentinel.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { until } from '../support/until.js'

const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

async function server(...settings: string[]): Promise<RedisServer> {
  const started = await startRedis({ settings })
  open.push(() => started.stop())
  return started
}

/** Takes decisions on these keys: what a store asks when it connects is answered before the second of each. */
function decideOn(
  { client, close }: Owned<RedisClient>,
  keys: readonly string[] = ['k'],
  warnings: RedisStoreOptions['warnings'] = {},
): Promise<Error[]> {
  open.push(close)
  return warningsDuring(async () => {
    const store = redisStore(client, { timeout: 5000, warnings })
    open.push(() => store.close())
    const limiter = createLimiter({ name: 'evicted', store, limit: 100, window: '1m' })
    for (let n = 0; n < 2; n++) for (const key of keys) await decided(limiter.consume(key))
  })
}

const EVICTION = (policy: string) =>
  expect.objectContaining({
    code: 'SLUICE_EVICTION',
    message: expect.stringContaining(`maxmemory-policy ${policy}`),
  })

describe.each(namesOf(singleClients))('over %s', (kind) => {
  test('a Redis that evicts is warned of, once per store, also after another connection', async () => {
    const redis = await server('maxmemory 100mb', 'maxmemory-policy allkeys-lru')
    const { client, close } = singleClients[kind](redis.port)
    open.push(close)
    const warnings = await warningsDuring(async () => {
      const store = redisStore(client, { timeout: 5000 })
      open.push(() => store.close())
      const limiter = createLimiter({ name: 'evicted', store, limit: 100, window: '1m' })
      for (let n = 0; n < 2; n++) {
        await until('it decides', () => decided(limiter.consume('k')))
        await decided(limiter.peek('k'))
        await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
      }
      await until('it decides', () => decided(limiter.consume('k')))
      await decided(limiter.peek('k'))
    })
    expect(warnings.filter((warning) => (warning as NodeJS.ErrnoException).code === 'SLUICE_EVICTION')).toEqual([
      EVICTION('allkeys-lru'),
    ])
  })

  test('nothing is said where the option of the store silences it', async () => {
    const redis = await server('maxmemory 100mb', 'maxmemory-policy allkeys-lru')
    expect(await decideOn(singleClients[kind](redis.port), ['k'], { SLUICE_EVICTION: false })).toEqual([])
  })

  test.each([
    ['has no maximum', ['maxmemory 0', 'maxmemory-policy allkeys-lru']],
    ['evicts nothing', ['maxmemory 100mb', 'maxmemory-policy noeviction']],
    ['does not tell', ['maxmemory 100mb', 'maxmemory-policy allkeys-lru']],
  ])('nothing is said of a Redis that %s', async (what, settings) => {
    const redis = await server(...settings)
    if (what === 'does not tell') await redis.call('ACL', 'SETUSER', 'default', '-info')
    expect(await decideOn(singleClients[kind](redis.port))).toEqual([])
  })
})

test.each(['allkeys-lfu', 'allkeys-random', 'volatile-lru', 'volatile-lfu', 'volatile-random', 'volatile-ttl'])(
  'under %s all keys can be evicted: it is warned of',
  async (policy) => {
    const redis = await server('maxmemory 100mb', `maxmemory-policy ${policy}`)
    expect(await decideOn(singleClients['ioredis 6'](redis.port))).toEqual([EVICTION(policy)])
  },
)

describe('in a cluster', async () => {
  const cluster = await startCluster()
  afterAll(() => cluster.stop())

  test.each(namesOf(clusterClients))('the one master that evicts is warned of, over %s', async (kind) => {
    const [, , last] = cluster.masters as [RedisServer, RedisServer, RedisServer]
    for (const master of cluster.masters) {
      await master.call(
        'CONFIG',
        'SET',
        'maxmemory',
        '100mb',
        'maxmemory-policy',
        master === last ? 'volatile-ttl' : 'noeviction',
      )
    }
    const owned = clusterClients[kind](cluster)
    await owned.ready
    const warnings = await decideOn(
      owned,
      cluster.masters.map((_, i) => cluster.identityOn(i)),
    )
    expect(warnings).toEqual([EVICTION('volatile-ttl')])
    expect(warnings[0]?.message).toContain(`:${last.port}`)
  })
})

test('by Sentinel the master is asked', async () => {
  const all = await startSentinels()
  open.push(() => all.stop())
  await all.servers[0]?.call('CONFIG', 'SET', 'maxmemory', '100mb', 'maxmemory-policy', 'allkeys-lru')
  for (const kind of namesOf(sentinelClients)) {
    expect(await decideOn(sentinelClients[kind](all))).toEqual([EVICTION('allkeys-lru')])
  }
})
