// Release: runs clusters.
import { createLimiter, fixedWindow, type Limiter, slidingWindow } from '@sluice/core'
import { beforeAll, describe, expect, test } from 'vitest'
import { clusterClients, oneOfEach } from '../../support/clients.js'
import { moveSlot } from '../../support/move-slot.js'
import { type RedisCluster, startCluster } from '../../support/redis-cluster.js'
import { slotOfIdentity } from '../../support/slots.js'
import { openStore } from '../../support/stores.js'
import { until } from '../../support/until.js'

let cluster: RedisCluster
beforeAll(async () => {
  cluster = await startCluster()
  return () => cluster.stop()
})

const limits = [
  fixedWindow<string>({ limit: 100, window: '30d' }),
  slidingWindow<string>({ limit: 100, window: '30d' }),
]

/** The number of scripts that all masters have executed. */
async function calls(): Promise<number> {
  const counts = await Promise.all(
    cluster.masters.map(async (master) => {
      const stats = String(await master.call('INFO', 'commandstats')).matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)
      return [...stats].reduce((sum, [, count]) => sum + Number(count), 0)
    }),
  )
  return counts.reduce((a, b) => a + b)
}

const leftOf = async (limiter: Limiter, key: string) =>
  (await limiter.peek(key)).limits.map(({ remaining }) => remaining)

describe.each(oneOfEach(clusterClients))('a cluster, over %s', (kind) => {
  const name = `relaxed-${kind.replace(/\W/g, '_')}`

  test('a cluster exchanges keys of all masters in few scripts where servers take undeclared keys', async () => {
    const [here, elsewhere] = await Promise.all([0, 1].map(() => openStore(clusterClients[kind](cluster))))
    const make = (open: typeof here, syncEvery: '1m' | '50ms') =>
      createLimiter({ name, store: open?.store as never, limits, consistency: { syncEvery } })
    const [first, second] = [make(here, '1m'), make(elsewhere, '50ms')]
    let warmed = 0
    await until('the store uses undeclared keys', async () => {
      const before = await calls()
      const some = Array.from({ length: 40 }, () => `${name}-warm-${warmed++}`)
      await Promise.all(some.map((key) => first.consume(key)))
      return (await calls()) - before < 30
    })
    const keys = Array.from({ length: 300 }, (_, n) => `${name}-${n}`)
    for (let times = 0; times < 3; times++) await Promise.all(keys.map((key) => first.consume(key)))
    const before = await calls()
    await here?.close()
    // 600 counts of 300 slots.
    expect((await calls()) - before).toBeLessThan(60)
    for (const key of keys) expect(await leftOf(second, key)).toEqual([97, 97])
    await elsewhere?.close()
  })

  test('a slot that moves while it is in use loses no relaxed count', async () => {
    const [here, elsewhere] = await Promise.all([0, 1].map(() => openStore(clusterClients[kind](cluster))))
    const make = (open: typeof here, syncEvery: '20ms') =>
      createLimiter({ name: `${name}-moving`, store: open?.store as never, limits, consistency: { syncEvery } })
    const [first, second] = [make(here, '20ms'), make(elsewhere, '20ms')]
    const key = cluster.identityOn(0, name)
    await first.consume(key)
    let admitted = 1
    const move = moveSlot(cluster, slotOfIdentity(key), ...(cluster.masters.slice(0, 2) as [never, never]))
    let isMoved = false
    const moved = move.then(() => {
      isMoved = true
    })
    while (!isMoved || admitted < 30) {
      if (admitted < 60 && (await first.consume(key)).allowed) admitted++
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    await moved
    const all = 100 - admitted
    await until('all counts are exchanged', async () => (await leftOf(second, key)).every((left) => left === all))
    await moveSlot(cluster, slotOfIdentity(key), ...([1, 0].map((i) => cluster.masters[i]) as [never, never]))
    await Promise.all([here?.close(), elsewhere?.close()])
  })
})
