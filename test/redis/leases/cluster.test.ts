// Release: runs clusters.
import { createLimiter, keyed, slidingLog } from '@sluice/core'
import { beforeAll, describe, expect, test } from 'vitest'
import { clusterClients, oneOfEach } from '../../support/clients.js'
import { type RedisCluster, startCluster } from '../../support/redis-cluster.js'
import { slotOfIdentity } from '../../support/slots.js'
import { openStore } from '../../support/stores.js'

let cluster: RedisCluster
beforeAll(async () => {
  cluster = await startCluster()
  return () => cluster.stop()
})

const lease = { size: 20, ttl: '10m' } as const

/** A value of another kind whose identity is on the slot of `key`. */
function onSlotOf(key: string, kind: string): string {
  for (let n = 0; ; n++) if (slotOfIdentity(`${n}`, kind) === slotOfIdentity(key)) return `${n}`
}

describe.each(oneOfEach(clusterClients))('a cluster, over %s', (kind) => {
  const name = `leases-${kind.replace(/\W/g, '_')}`

  test('a cluster grants leases for keys of one slot, and none for keys of different slots', async () => {
    const [here, elsewhere] = await Promise.all([0, 1].map(() => openStore(clusterClients[kind](cluster))))
    const [one, apart] = [cluster.identityOn(0), cluster.identityOn(1)]
    const shared = onSlotOf(one, 'shared')
    const limits = [
      slidingLog<string>({ limit: 100, window: '1h', lease }),
      slidingLog<string>({ limit: 150, window: '1h', key: keyed('shared', () => shared), lease }),
    ]
    const [first, second] = [here, elsewhere].map((open) =>
      createLimiter({ name, store: open?.store as never, limits }),
    )
    const ask = async (limiter: typeof first, key: string, times: number) => {
      let admitted = 0
      for (let n = 0; n < times; n++) if ((await limiter?.consume(key))?.allowed) admitted++
      return admitted
    }
    expect(await ask(first, apart, 40)).toBe(40)
    expect((await second?.peek(apart))?.limits.map(({ remaining }) => remaining)).toEqual([60, 110])
    expect(await ask(first, one, 10)).toBe(10)
    const rest = (await Promise.all([ask(first, apart, 100), ask(second, apart, 100)])).reduce((a, b) => a + b)
    expect(rest).toBe(60)
    expect((await ask(first, one, 100)) + (await ask(second, one, 100))).toBe(40)
    await Promise.all([here?.close(), elsewhere?.close()])
  })

  test('leases of two processes on one slot of a cluster admit exactly the limit', async () => {
    const opened = await Promise.all([0, 1].map(() => openStore(clusterClients[kind](cluster))))
    const limits = [slidingLog<string>({ limit: 200, window: '1h', lease })]
    const limiters = opened.map(({ store }) => createLimiter({ name: `${name}-one`, store, limits }))
    const verdicts = await Promise.all(
      limiters.map(async (limiter) => {
        const all = []
        for (let n = 0; n < 200; n++) all.push(await limiter.consume('everyone'))
        return all
      }),
    )
    expect(verdicts.flat().filter(({ allowed }) => allowed)).toHaveLength(200)
    await Promise.all(opened.map(({ close }) => close()))
  })
})
