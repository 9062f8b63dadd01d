// Release: runs clusters.
import { setTimeout as sleep } from 'node:timers/promises'
import { concurrency, everyone, type Limiter, slidingLog } from '@sluice/core'
import { beforeAll, describe, expect, test } from 'vitest'
import { createLimiter } from '../../contract/create-limiter.js'
import { clusterClients, oneOfEach } from '../../support/clients.js'
import { moveSlot } from '../../support/move-slot.js'
import { type RedisCluster, startCluster } from '../../support/redis-cluster.js'
import { slotOf, slotOfIdentity } from '../../support/slots.js'
import { openStore } from '../../support/stores.js'
import { until } from '../../support/until.js'

let cluster: RedisCluster
beforeAll(async () => {
  cluster = await startCluster()
  return () => cluster.stop()
})

describe.each(oneOfEach(clusterClients))('a cluster, over %s', (kind) => {
  test('a waiter on one slot holds up requests that do not wait, without charges on other slots', async () => {
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
    const refused = await until('a request that does not wait is refused', async () => {
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
    // A waiter of the same class is admitted.
    const second = await elsewhere.acquire('bob')
    await elsewhere.release(second)
    await limiter.release(first)
    expect((await waiter).allowed).toBe(true)
    await limiter.release(await waiter)
    const third = await until('no request waits', async () => {
      const verdict = await elsewhere.consume('bob')
      return verdict.allowed && verdict
    })
    expect(third.limits.map(({ remaining }) => remaining)).toEqual([1, 48])
    await other.close()
    await close()
  })

  test('waiters on other masters are seen while the master with the marker hangs', async () => {
    const open = await Promise.all([openStore(clusterClients[kind](cluster)), openStore(clusterClients[kind](cluster))])
    const [limiter, elsewhere] = open.map(({ store }) =>
      createLimiter({ name: 'marked', store, sharedTurns: true, limits: [concurrency({ limit: 2, ttl: '1h' })] }),
    ) as [Limiter, Limiter]
    const hung = cluster.masterOf(slotOf('sluice:v1:blocked:waiting'))
    const key = cluster.identityOn((cluster.masters.indexOf(hung) + 1) % 3, `marked-${kind.replace(/\W/g, '_')}`)
    const first = await limiter.consume(key)
    await elsewhere.refund(key, await elsewhere.consume(key))
    hung.kill('SIGSTOP')
    try {
      const waiter = limiter.acquire(key, { cost: 2 })
      const refused = await until('a request that does not wait is refused', async () => {
        const verdict = await elsewhere.consume(key)
        if (!verdict.allowed) return verdict
        await elsewhere.refund(key, verdict)
        return undefined
      })
      expect(refused).toMatchObject({ reason: 'limited', remaining: 1 })
      await limiter.release(first)
      await limiter.release(await waiter)
    } finally {
      hung.kill('SIGCONT')
    }
    for (const { close } of open) await close()
  })

  test('all waiters are served one at a time while their slot moves', async () => {
    const open = await Promise.all([openStore(clusterClients[kind](cluster)), openStore(clusterClients[kind](cluster))])
    const limiters = open.map(({ store }) =>
      createLimiter({ name: 'moving', store, sharedTurns: true, limits: [concurrency({ limit: 1, ttl: '1h' })] }),
    )
    const key = cluster.identityOn(0, `moving-${kind.replace(/\W/g, '_')}`)
    const [holder] = limiters as [Limiter]
    const held = await holder.consume(key)
    let [inside, most, served] = [0, 0, 0]
    const waiting = Array.from({ length: 8 }, async (_, i) => {
      const limiter = limiters[i % 2] as Limiter
      const verdict = await limiter.acquire(key, { priority: i % 3 })
      most = Math.max(most, ++inside)
      await sleep(10)
      inside--
      served++
      await limiter.release(verdict)
    })
    const [first, second] = cluster.masters as [RedisCluster['masters'][number], RedisCluster['masters'][number]]
    await moveSlot(cluster, slotOfIdentity(key), first, second)
    await holder.release(held)
    await moveSlot(cluster, slotOfIdentity(key), second, first)
    await Promise.all(waiting)
    expect([served, most]).toEqual([8, 1])
    for (const { close } of open) await close()
  })
})
