// Release: runs clusters.
import { createLimiter, type RedisClient, type RedisStoreOptions, redisStore } from '@sluice/core'
import { afterAll, describe, expect, test } from 'vitest'
import { clusterClients, namesOf, type Owned, oneOfEach, sentinelClients, singleClients } from '../support/clients.js'
import { closedAfterEach } from '../support/closed-after-each.js'
import { decided } from '../support/decided.js'
import { warningsDuring } from '../support/process-events.js'
import { startCluster } from '../support/redis-cluster.js'
import { startSentinels } from '../support/redis-sentinel.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { until } from '../support/until.js'

const open = closedAfterEach()

async function server(...settings: string[]): Promise<RedisServer> {
  const started = await startRedis({ settings })
  open.push(() => started.stop())
  return started
}

/** Makes two decisions on each key: the replies to the first commands of a store arrive before the second. */
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

describe.each(oneOfEach(singleClients))('over %s', (kind) => {
  test('a store warns once of a Redis that evicts keys, even after it reconnects', async () => {
    const redis = await server('maxmemory 100mb', 'maxmemory-policy allkeys-lru')
    const { client, close } = singleClients[kind](redis.port)
    open.push(close)
    const warnings = await warningsDuring(async () => {
      const store = redisStore(client, { timeout: 5000 })
      open.push(() => store.close())
      const limiter = createLimiter({ name: 'evicted', store, limit: 100, window: '1m' })
      for (let n = 0; n < 2; n++) {
        await until('Redis decides', () => decided(limiter.consume('k')))
        await decided(limiter.peek('k'))
        await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
      }
      await until('Redis decides', () => decided(limiter.consume('k')))
      await decided(limiter.peek('k'))
    })
    expect(warnings.filter((warning) => (warning as NodeJS.ErrnoException).code === 'SLUICE_EVICTION')).toEqual([
      EVICTION('allkeys-lru'),
    ])
  })

  test('the option of a store silences the eviction warning', async () => {
    const redis = await server('maxmemory 100mb', 'maxmemory-policy allkeys-lru')
    expect(await decideOn(singleClients[kind](redis.port), ['k'], { SLUICE_EVICTION: false })).toEqual([])
  })

  test.each([
    ['has no maximum', ['maxmemory 0', 'maxmemory-policy allkeys-lru']],
    ['evicts nothing', ['maxmemory 100mb', 'maxmemory-policy noeviction']],
    ['does not permit INFO', ['maxmemory 100mb', 'maxmemory-policy allkeys-lru']],
  ])('a store does not warn of a Redis that %s', async (what, settings) => {
    const redis = await server(...settings)
    if (what === 'does not permit INFO') await redis.call('ACL', 'SETUSER', 'default', '-info')
    expect(await decideOn(singleClients[kind](redis.port))).toEqual([])
  })
})

test.each(['allkeys-lfu', 'allkeys-random', 'volatile-lru', 'volatile-lfu', 'volatile-random', 'volatile-ttl'])(
  'a store warns of a Redis that may evict its keys under %s',
  async (policy) => {
    const redis = await server('maxmemory 100mb', `maxmemory-policy ${policy}`)
    expect(await decideOn(singleClients['ioredis 6'](redis.port))).toEqual([EVICTION(policy)])
  },
)

describe('in a cluster', async () => {
  const cluster = await startCluster()
  afterAll(() => cluster.stop())

  test.each(oneOfEach(clusterClients))(
    'a store on a cluster warns of the one master that evicts keys, over %s',
    async (kind) => {
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
    },
  )
})

test('a store by Sentinel warns of a master that evicts keys', async () => {
  const all = await startSentinels()
  open.push(() => all.stop())
  await all.servers[0]?.call('CONFIG', 'SET', 'maxmemory', '100mb', 'maxmemory-policy', 'allkeys-lru')
  for (const kind of namesOf(sentinelClients)) {
    const warnings = await decideOn(sentinelClients[kind](all))
    // One of ioredis without a detector of failovers has a warning of its own.
    const others = warnings.filter((warning) => !/failoverDetector/.test(warning.message))
    expect(others).toEqual([EVICTION('allkeys-lru')])
  }
})
