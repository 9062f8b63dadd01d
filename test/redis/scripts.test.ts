// Release: runs clusters. Takes long: begins first.
import {
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  type Limiter,
  type RedisClient,
  slidingLog,
  slidingWindow,
} from '@sluice/core'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { clusterClients, type Owned, oneOfEach, singleClients } from '../support/clients.js'
import { type RedisCluster, startCluster } from '../support/redis-cluster.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { type OpenStore, openStore } from '../support/stores.js'
import { until } from '../support/until.js'

let server: RedisServer
let cluster: RedisCluster
beforeAll(async () => {
  ;[server, cluster] = await Promise.all([startRedis(), startCluster()])
})
afterAll(() => Promise.all([server.stop(), cluster.stop()]))

const kinds: [string, () => { owned: Owned<RedisClient>; servers: readonly Pick<RedisServer, 'call' | 'fields'>[] }][] =
  [
    ...oneOfEach(singleClients).map((name): (typeof kinds)[number] => [
      name,
      () => ({ owned: singleClients[name](server.port), servers: [server] }),
    ]),
    ...oneOfEach(clusterClients).map((name): (typeof kinds)[number] => [
      name,
      () => ({ owned: clusterClients[name](cluster), servers: cluster.masters }),
    ]),
  ]

const permits = concurrency({ limit: 1, ttl: '1m' })
const policies = {
  permits: [permits],
  bucket: [gcra({ limit: 100, window: '1h' })],
  log: [slidingLog({ limit: 100, window: '1m' })],
  logs: [slidingLog({ limit: 100, window: '1m' }), slidingLog({ limit: 200, window: '1h' })],
  counter: [fixedWindow({ limit: 100, window: '1m' })],
  segments: [slidingWindow({ limit: 100, window: '1m' })],
  both: [gcra({ limit: 100, window: '1h' }), permits],
}

/** Each test begins with scripts that Redis does not know. */
describe.each(kinds)('%s', (_, make) => {
  let servers: ReturnType<typeof make>['servers']
  let open: OpenStore
  let limiters: Limiter[]
  beforeEach(async () => {
    const made = make()
    servers = made.servers
    await everywhere('FLUSHALL')
    await everywhere('SCRIPT', 'FLUSH')
    await everywhere('CONFIG', 'RESETSTAT')
    // One decision per batch.
    open = await openStore(made.owned, { batch: 1 })
    limiters = Object.entries(policies).map(([name, limits]) => createLimiter({ name, store: open.store, limits }))
    return () => open.close()
  })

  async function everywhere(command: string, ...args: string[]): Promise<void> {
    await Promise.all(servers.map((each) => each.call(command, ...args)))
  }

  /** The number of NOSCRIPT replies. */
  async function misses(): Promise<number> {
    const stats = await Promise.all(servers.map((each) => each.fields('INFO', 'errorstats')))
    return stats.reduce((sum, { errorstat_NOSCRIPT = 'count=0' }) => sum + Number(errorstat_NOSCRIPT.split('=')[1]), 0)
  }

  test('a store refers to no script before it has sent it', async () => {
    for (const limiter of limiters) {
      const verdict = await limiter.consume('k')
      await limiter.peek('k')
      await limiter.refund('k', verdict)
      await limiter.release(verdict)
    }
    expect(await misses()).toBe(0)
  })

  test('servers receive a bounded number of scripts, however many policies there are', async () => {
    const many = Array.from({ length: 80 }, (_, i) =>
      createLimiter({ name: 'many', store: open.store, limits: [gcra({ limit: i + 1, window: '1m' })] }),
    )
    const decideAll = async (key: string) => {
      for (const [i, limiter] of many.entries()) expect((await limiter.consume(key)).remaining).toBe(i)
    }
    const mostCached = async () => {
      const memory = await Promise.all(servers.map((each) => each.fields('INFO', 'memory')))
      return Math.max(...memory.map(({ number_of_cached_scripts: scripts }) => Number(scripts)))
    }
    let keys = 0
    // On a cluster, one script decides for all policies until the process knows all blocks.
    await until('policies have scripts of their own', async () => {
      await decideAll(`${keys++}`)
      return (await mostCached()) >= 65
    })
    for (let i = 0; i < 5; i++) await decideAll(`${keys++}`)
    // One script for each of 64 policies, and one for all others.
    expect(await mostCached()).toBe(65)
  })

  test('a new connection is sent every script again', async () => {
    await Promise.all(limiters.map((limiter) => limiter.peek('k')))
    await everywhere('SCRIPT', 'FLUSH')
    await everywhere('CLIENT', 'KILL', 'TYPE', 'normal')
    await until('Redis decides again', () => limiters[0]?.peek('k'))
    await Promise.all(limiters.map((limiter) => limiter.peek('k')))
    expect(await misses()).toBe(0)
  })

  test('scripts that Redis loses are sent again, and each decision is charged once', async () => {
    const [, bucket] = limiters as [Limiter, Limiter]
    await bucket.consume('k')
    await everywhere('SCRIPT', 'FLUSH')
    const verdicts = await Promise.all([bucket.consume('k'), bucket.consume('k')])
    expect(verdicts.map(({ remaining }) => remaining).sort()).toEqual([97, 98])
    expect(await misses()).toBeGreaterThan(0)
  })

  test('a release takes effect before a later request, even when its script is new to Redis', async () => {
    const [permit] = limiters as [Limiter]
    const first = await permit.consume('k')
    expect((await permit.consume('k')).allowed).toBe(false)
    const [, second] = await Promise.all([permit.release(first), permit.consume('k')])
    expect(second.allowed).toBe(true)
  })
})
