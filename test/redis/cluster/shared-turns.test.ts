import { concurrency, createLimiter, everyone, slidingLog } from '@sluice/core'
import { beforeAll, describe, expect, test } from 'vitest'
import { clusterClients, namesOf } from '../../support/clients.js'
import { type RedisCluster, startCluster } from '../../support/redis-cluster.js'
import { openStore } from '../../support/stores.js'
import { until } from '../../support/until.js'

let cluster: RedisCluster
beforeAll(async () => {
  cluster = await startCluster()
  return () => cluster.stop()
})

describe.each(namesOf(clusterClients))('a cluster, over %s', (kind) => {
  test('who waits in one slot holds up what does not, and what these have on other slots is not charged', async () => {
    const { store, close } = await openStore(clusterClients[kind](cluster))
    const other = await openStore(clusterClients[kind](cluster))
    const options = {
      name: `turns-${kind.replace(/\W/g, '_')}`,
      sharedTurns: true,
      limits: [concurrency({ limit: 2, ttl: '1h', key: everyone() }), slidingLog({ limit: 50, window: '1h' })],
    }
    const limiter = createLimiter<string>({ ...options, store })
    const elsewhere = createLimiter<string>({ ...options, store: other.store })
    const first = await limiter.consume('ann')
    expect(first.allowed).toBe(true)
    const wait = new AbortController()
    const waiter = limiter.acquire('ann', { cost: 2, signal: wait.signal })
    const refused = await until('one that does not wait is refused', async () => {
      const verdict = await elsewhere.consume('bob')
      if (!verdict.allowed) return verdict
      await elsewhere.refund('bob', verdict)
      return undefined
    })
    expect(refused).toMatchObject({ reason: 'limited', cost: 0 })
    expect(refused.limits.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
      [true, 1],
      [true, 50],
    ])
    // One that waits is of the same class.
    const second = await elsewhere.acquire('bob')
    await elsewhere.release(second)
    await limiter.release(first)
    expect((await waiter).allowed).toBe(true)
    await limiter.release(await waiter)
    const third = await until('none waits any more', async () => {
      const verdict = await elsewhere.consume('bob')
      return verdict.allowed && verdict
    })
    expect(third.limits.map(({ remaining }) => remaining)).toEqual([1, 48])
    await other.close()
    await close()
  })
})
