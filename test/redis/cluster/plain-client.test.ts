// Release: runs clusters.
import { createLimiter, redisStore } from '@sluice/core'
import { expect, test } from 'vitest'
import { oneOfEach, singleClients } from '../../support/clients.js'
import { closedAfterEach } from '../../support/closed-after-each.js'
import { warningsDuring } from '../../support/process-events.js'
import { startCluster, startWiredMaster } from '../../support/redis-cluster.js'
import { until } from '../../support/until.js'

const open = closedAfterEach()

/** Clusters by their number of shards, with a port of one of their masters. */
const clusters = {
  async 'one shard'() {
    const { wire, stop } = await startWiredMaster()
    open.push(stop)
    return wire.port
  },
  async 'three shards'() {
    const cluster = await startCluster()
    open.push(() => cluster.stop())
    return cluster.masters[0]?.port as number
  },
}

test.each(
  oneOfEach(singleClients).flatMap((kind) =>
    Object.entries(clusters).map(([shards, start]) => [shards, kind, start] as const),
  ),
)('the first warning names the client to use for a cluster of %s, over %s', async (_shards, kind, start) => {
  const { client, ready, close } = singleClients[kind](await start())
  open.push(close)
  await ready
  const store = redisStore(client, { timeout: 5000, denyCache: false })
  open.push(() => store.close())
  const limiter = createLimiter({ name: 'plain', store, limit: 1000, window: '1h' })
  const warnings = await warningsDuring(() =>
    until('the store is away', async () => {
      await Promise.all(Array.from({ length: 20 }, (_, n) => limiter.consume(`client-${n}`)))
      return store.state === 'unavailable'
    }),
  )
  expect(warnings[0]?.message).toMatch(/is in cluster mode.* Use Cluster of ioredis or createCluster of redis/)
})
