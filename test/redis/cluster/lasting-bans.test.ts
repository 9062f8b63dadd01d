// Release: runs clusters.
import { createLimiter, type RedisStore, redisStore } from '@sluice/core'
import { afterEach, beforeAll, expect, test, vi } from 'vitest'
import { clusterClients, oneOfEach } from '../../support/clients.js'
import { type RedisCluster, startCluster } from '../../support/redis-cluster.js'
import { until } from '../../support/until.js'

let cluster: RedisCluster
beforeAll(async () => {
  cluster = await startCluster()
  return () => cluster.stop()
})

const open: (() => unknown)[] = []
afterEach(async () => {
  vi.restoreAllMocks()
  for (const close of open.splice(0).reverse()) await close()
  await cluster.flush()
})

const listed = async (store: RedisStore) => (await store.blocks.list()).entries

test.each(oneOfEach(clusterClients))(
  'bans and their rungs are restored after a cluster loses its keys, except ended ones, over %s',
  async (kind) => {
    // Other tests cover the warning about restored blocks.
    vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
    let now = Date.now()
    const member = async () => {
      const { client, ready, close } = clusterClients[kind](cluster)
      open.push(close)
      await ready
      const store = redisStore(client, { timeout: 2000, denyCache: false, clock: () => now })
      open.push(() => store.close())
      await store.ready()
      const ban = { after: 1, within: '1h', for: ['1h', '1d'] } as const
      return { store, banning: createLimiter({ name: 'banning', store, limit: 1, window: '365d', ban }) }
    }
    const here = await member()
    const guessers = cluster.masters.map((_, index) => cluster.identityOn(index, 'guesser'))
    for (const guesser of [...guessers, 'pardoned']) {
      await here.banning.consume(guesser)
      expect((await here.banning.consume(guesser)).ban?.rung).toBe(1)
    }
    await until('all bans are in the index', async () => (await listed(here.store)).length === guessers.length + 1)
    now += 1
    await here.banning.unblock('pardoned')
    await cluster.flush()
    await until('the bans are restored', async () => (await listed(here.store)).length === guessers.length)
    const later = await member()
    for (const guesser of guessers) expect((await later.banning.consume(guesser)).reason).toBe('banned')
    expect((await later.banning.consume('pardoned')).allowed).toBe(true)
    now += 3_600_000
    for (const guesser of guessers) {
      await later.banning.consume(guesser)
      expect((await later.banning.consume(guesser)).ban?.rung, guesser).toBe(2)
    }
  },
)
