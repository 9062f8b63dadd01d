// Release: runs clusters. Takes long: begins first.
import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter, type Limiter, type RedisClient, redisStore, slidingLog, type Verdict } from '@sluice/core'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { clusterClients, type Owned, oneOfEach } from '../../support/clients.js'
import { decided } from '../../support/decided.js'
import { type RedisCluster, startCluster, startReplica } from '../../support/redis-cluster.js'
import type { RedisServer } from '../../support/redis-server.js'
import { until } from '../../support/until.js'

const LIMIT = 30

describe.each(oneOfEach(clusterClients))('a failover of a master, over %s', (kind) => {
  let cluster: RedisCluster
  let replica: RedisServer
  beforeEach(async () => {
    cluster = await startCluster()
    replica = await startReplica(cluster, cluster.masters[0] as RedisServer)
  })
  afterEach(async () => {
    await replica.stop()
    await cluster.stop()
  })

  /** Sends requests for every user from two stores, again and again, during an event. */
  async function underLoad(event: (limiters: Limiter[]) => Promise<void>): Promise<Map<string, Verdict[]>> {
    const owned: Owned<RedisClient>[] = [clusterClients[kind](cluster), clusterClients[kind](cluster)]
    await Promise.all(owned.map(({ ready }) => ready))
    const stores = owned.map(({ client }) => redisStore(client, { timeout: 1000, denyCache: false }))
    const limiters = stores.map((store) =>
      createLimiter({
        name: 'failover',
        store,
        limits: [slidingLog({ limit: LIMIT, window: '1h' })],
        unavailable: { decide: 'deny' },
      }),
    )
    const users = [0, 1, 2].flatMap((master) => [0, 1, 2].map((n) => cluster.identityOn(master, `${master}-${n}`)))
    const verdicts = new Map<string, Verdict[]>(users.map((user) => [user, []]))
    let isOver = false
    const loads = limiters.map(async (limiter) => {
      while (!isOver) {
        await Promise.all(users.map(async (user) => verdicts.get(user)?.push(await limiter.consume(user))))
        await sleep(20)
      }
    })
    try {
      await event(limiters)
    } finally {
      isOver = true
      await Promise.all(loads)
      await Promise.all(stores.map((store) => store.close()))
      for (const { close } of owned) close()
    }
    return verdicts
  }

  const admitted = (verdicts: Map<string, Verdict[]>) =>
    [...verdicts.values()].map((all) => all.filter(({ allowed }) => allowed).length)

  test('a planned failover admits at most the limits, and decisions continue after it', async () => {
    const verdicts = await underLoad(async (limiters) => {
      await sleep(100)
      await replica.call('CLUSTER', 'FAILOVER')
      await until('it is promoted', async () => (await replica.fields('INFO', 'replication')).role === 'master', {
        withinMs: 30_000,
      })
      const user = cluster.identityOn(0, 'after')
      for (const limiter of limiters)
        await until('the new master decides', () => decided(limiter.consume(user)), { withinMs: 30_000 })
      await sleep(800)
    })
    expect(admitted(verdicts).every((count) => count <= LIMIT)).toBe(true)
    // The other masters have decided throughout.
    for (const [user, all] of verdicts) {
      if (user.startsWith('0-')) continue
      expect(all.filter(({ kind }) => kind === 'unavailable')).toEqual([])
    }
  })
})
