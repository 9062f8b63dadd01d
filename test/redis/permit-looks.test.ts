// Release: runs clusters.
import { concurrency, createLimiter, type RedisClient, type RedisStore, redisStore } from '@sluice/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { clusterClients, type Owned, singleClients } from '../support/clients.js'
import { type RedisCluster, startCluster } from '../support/redis-cluster.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { until } from '../support/until.js'

let server: RedisServer
let cluster: RedisCluster
beforeAll(async () => {
  ;[server, cluster] = await Promise.all([startRedis(), startCluster()])
})
afterAll(() => Promise.all([server.stop(), cluster.stop()]))

const KEYS = Array.from({ length: 100 }, (_, n) => `k${n}`)
const kinds = {
  'one server': { make: () => singleClients['ioredis 6'](server.port), servers: () => [server] },
  'a cluster': { make: () => clusterClients['redis 6 cluster'](cluster), servers: () => cluster.masters },
}

describe.each(Object.entries(kinds))('on %s', (_, { make, servers }) => {
  let owned: Owned<RedisClient>[]
  let stores: RedisStore[]
  beforeAll(async () => {
    owned = [make(), make()]
    await Promise.all(owned.map(({ ready }) => ready))
    stores = owned.map(({ client }) => redisStore(client, { timeout: 15_000 }))
    await Promise.all(stores.map((store) => store.ready()))
    return async () => {
      await Promise.all(stores.map((store) => store.close()))
      for (const { close } of owned) close()
    }
  })
  const limiters = (name: string) =>
    stores.map((store) => createLimiter({ name, store, limits: [concurrency({ limit: 2, ttl: '10m' })] }))

  async function commands(): Promise<number> {
    const all = await Promise.all(servers().map((each) => each.fields('INFO', 'commandstats')))
    const calls = (stats: Record<string, string>, name: string) =>
      Number(/^calls=(\d+)/.exec(stats[`cmdstat_${name}`] ?? '')?.[1] ?? 0)
    return all.reduce((sum, stats) => sum + calls(stats, 'eval') + calls(stats, 'evalsha'), 0)
  }

  test('waiters for permits of many keys look for them together, and receive permits that other processes release', async () => {
    const [here, there] = limiters('many') as [ReturnType<typeof createLimiter>, ReturnType<typeof createLimiter>]
    const held = await Promise.all(KEYS.map((key) => there.consume(key, { cost: { 'concurrent-requests': 2 } })))
    const waiting = KEYS.map((key) => here.acquire(key))
    let before = 0
    await until('all waiters look together', async () => {
      const now = await commands()
      const [since, isFirst] = [now - before, before === 0]
      before = now
      await new Promise((resolve) => setTimeout(resolve, 500))
      // One decision for each waiter every 50 ms would be a thousand in that time, in batches of at most 64.
      return !isFirst && since < 100
    })
    for (const verdict of held) await there.release(verdict)
    const verdicts = await Promise.all(waiting)
    expect(verdicts.every(({ allowed }) => allowed)).toBe(true)
    for (const verdict of verdicts) await here.release(verdict)
    expect((await there.peek('k0')).remaining).toBe(2)
  })

  test('a waiter whose cost exceeds the free permits keeps waiting', async () => {
    const [here, there] = limiters('cost') as [ReturnType<typeof createLimiter>, ReturnType<typeof createLimiter>]
    const [one, two] = [await there.consume('k'), await there.consume('k')]
    let isOver = false
    const waiting = here.acquire('k', { cost: { 'concurrent-requests': 2 } }).then((verdict) => {
      isOver = true
      return verdict
    })
    await there.release(one)
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(isOver).toBe(false)
    await there.release(two)
    expect((await waiting).allowed).toBe(true)
  })

  test('a client that is blocked while it waits is refused within seconds', async () => {
    const [here, there] = limiters('blocked') as [ReturnType<typeof createLimiter>, ReturnType<typeof createLimiter>]
    await there.consume('k', { cost: { 'concurrent-requests': 2 } })
    const waiting = here.acquire('k', { maxWait: '60s' })
    const refused = expect(waiting).rejects.toMatchObject({ code: 'WAIT_EXCEEDED' })
    await new Promise((resolve) => setTimeout(resolve, 200))
    const since = performance.now()
    await there.block('k', { for: '1h' })
    await refused
    expect(performance.now() - since).toBeLessThan(30_000)
  })
})
