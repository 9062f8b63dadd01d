// Release: runs clusters.
import { createLimiter, everyone, gcra, keyed } from '@sluice/core'
import { beforeAll, describe, expect, test } from 'vitest'
import { clusterClients, oneOfEach } from '../../support/clients.js'
import { type RedisCluster, startCluster } from '../../support/redis-cluster.js'
import { openStore } from '../../support/stores.js'

let cluster: RedisCluster
beforeAll(async () => {
  cluster = await startCluster()
  return () => cluster.stop()
})

describe.each(oneOfEach(clusterClients))('a cluster, over %s', (kind) => {
  test('units, reserves and settlements work for limits on different slots of a cluster', async () => {
    const { store, close } = await openStore(clusterClients[kind](cluster))
    const limiter = createLimiter<string>({
      name: `charging-${kind.replace(/\W/g, '_')}`,
      store,
      limits: [
        gcra({ limit: 10, window: '1d' }),
        gcra({ limit: 22, window: '1d', key: everyone(), reserve: 5 }),
        gcra({ limit: 100, window: '1d', key: keyed('bytes', () => 'bytes'), unit: 'content-bytes' }),
        gcra({ limit: 50, window: '1d', key: keyed('org', () => 'org'), unit: 'tokens' }),
      ],
    })
    const remainders = async (user: string) => (await limiter.peek(user)).limits.map(({ remaining }) => remaining)
    for (const user of ['ann', 'bob', 'cid']) {
      const verdict = await limiter.consume(user, { cost: { requests: 7, tokens: 10 }, bytes: 10 })
      expect(verdict.allowed).toBe(true)
      expect(await verdict.settle(5)).toBe(true)
      expect(await verdict.settle(0)).toBe(false)
    }
    expect(await remainders('ann')).toEqual([5, 2, 70, 20])
    const refused = await limiter.consume('dan', { cost: { requests: 3, tokens: 21 }, bytes: 1 })
    expect(refused.limits.map(({ allowed }) => allowed)).toEqual([true, false, true, false])
    expect(await remainders('dan')).toEqual([10, 2, 70, 20])
    expect((await limiter.consume('dan', { cost: 7, bytes: 1, priority: 1 })).allowed).toBe(true)
    expect((await limiter.consume('eve', { cost: 1, bytes: 1, priority: 1 })).allowed).toBe(false)
    await close()
  })
})
