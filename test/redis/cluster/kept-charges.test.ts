// Release: runs clusters.
import {
  type ChargeOutcome,
  concurrency,
  createLimiter,
  everyone,
  fixedWindow,
  keyed,
  type Limiter,
  redisStore,
  type Store,
  slidingLog,
} from '@sluice/core'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { clusterClients, type Owned, oneOfEach } from '../../support/clients.js'
import { decided } from '../../support/decided.js'
import { byEffort } from '../../support/effort.js'
import { moveSlot } from '../../support/move-slot.js'
import { type RedisCluster, startCluster, startReplica } from '../../support/redis-cluster.js'
import type { RedisServer } from '../../support/redis-server.js'
import { slotOfIdentity } from '../../support/slots.js'
import { until } from '../../support/until.js'

const charges = { keep: '1h' } as const

/** Two stores on a cluster, as in two processes. */
async function twoStores(kind: keyof typeof clusterClients, cluster: RedisCluster) {
  const owned = [clusterClients[kind](cluster), clusterClients[kind](cluster)] as Owned<never>[]
  await Promise.all(owned.map(({ ready }) => ready))
  const stores = owned.map(({ client }) => redisStore(client, { timeout: 2000 })) as readonly Store[]
  return {
    stores,
    close: async () => {
      for (const store of stores) await store.close()
      for (const { close } of owned) close()
    },
  }
}

/** Repeats a change until it succeeds, as a worker does. */
function eventually(change: () => Promise<ChargeOutcome>): Promise<ChargeOutcome> {
  return until('the charge is changed', () => change().catch(() => undefined), { withinMs: 30_000 })
}

describe.each(oneOfEach(clusterClients))('kept charges of a cluster, over %s', (kind) => {
  let cluster: RedisCluster
  let open: Awaited<ReturnType<typeof twoStores>>
  beforeAll(async () => {
    cluster = await startCluster()
    return () => cluster.stop()
  })
  beforeEach(async () => {
    await cluster.flush()
    open = await twoStores(kind, cluster)
  })
  afterEach(() => open.close())

  test('a charge on three slots is changed by its id in another process, each part once', async () => {
    const by = (kind: string) => keyed(kind, (key: string) => key)
    const limits = [
      slidingLog({ limit: 10, window: '1h' }),
      fixedWindow({ unit: 'tokens', limit: 1000, window: '1d', key: by('tenant') }),
      concurrency({ limit: 4, ttl: '1m', key: by('site') }),
      slidingLog({ limit: 50, window: '1h', key: everyone() }),
    ]
    const [web, worker] = open.stores.map((store) => createLimiter({ name: 'slots', store, limits, charges })) as [
      Limiter,
      Limiter,
    ]
    const left = async () => (await web.peek('ann')).limits.map(({ remaining }) => remaining)
    const { id = '' } = await web.consume('ann', { cost: { requests: 2, tokens: 100 } })
    expect(id).toMatch(/^[\w-]{22}([0-9a-z]{3}){3,4}$/)
    expect(await left()).toEqual([8, 900, 3, 48])
    // Another order, fewer or other slots are no id of this charge.
    const random = id.slice(0, 22)
    const slots = id.slice(22).match(/.{3}/g) as string[]
    for (const wrong of [slots.slice(1), [...slots].reverse(), [...slots, '000'], [...slots, 'zzz'], []]) {
      expect(await worker.refund(random + wrong.join(''))).toBe('unknown')
    }
    expect(await worker.settle(id, { tokens: 40 })).toBe('done')
    expect(await worker.release(id)).toBe('done')
    expect(await web.refund(id)).toBe('done')
    expect(await worker.refund(id)).toBe('done before')
    expect(await left()).toEqual([10, 960, 4, 50])
  })

  test('a refusal on one slot leaves no id, and charges nothing', async () => {
    const limits = [slidingLog({ limit: 10, window: '1h' }), slidingLog({ limit: 1, window: '1h', key: everyone() })]
    const [limiter] = open.stores.map((store) => createLimiter({ name: 'slots', store, limits, charges })) as [Limiter]
    expect((await limiter.consume('ann')).id).toBeDefined()
    const refused = await limiter.consume('bob')
    expect([refused.allowed, refused.id]).toEqual([false, undefined])
    expect((await limiter.peek('bob')).limits[0]?.remaining).toBe(10)
  })

  test('charges are settled exactly while their slots move between masters', async () => {
    const limits = [fixedWindow<string>({ unit: 'tokens', limit: 1_000_000, window: '1d' })]
    const limiters = open.stores.map((store) => createLimiter({ name: 'moving', store, limits, charges }))
    const users = Array.from({ length: 3 }, (_, n) => cluster.identityOn(0, `user-${n}`))
    const expected = new Map(users.map((user) => [user, 0]))
    let isOver = false
    const load = async (n: number) => {
      for (let i = n; !isOver; i++) {
        const user = users[i % users.length] as string
        const [web, worker] = [limiters[i % 2], limiters[(i + n) % 2]] as [Limiter, Limiter]
        const verdict = await web.consume(user, { cost: { tokens: 10 } })
        expect([verdict.kind, verdict.allowed]).toEqual(['decided', true])
        const tokens = i % 15
        const { id } = verdict
        if (id === undefined) expect(await verdict.settle({ tokens })).toBe(tokens !== 10)
        else {
          expect(await eventually(() => worker.settle(id, { tokens }))).not.toBe('unknown')
          expect(await eventually(() => web.refund(id))).not.toBe('unknown')
        }
        expected.set(user, (expected.get(user) ?? 0) + tokens)
      }
    }
    const loads = Promise.all([0, 1, 2, 3].map(load))
    const [first, second] = cluster.masters as [RedisServer, RedisServer]
    try {
      for (const user of users) {
        await moveSlot(cluster, slotOfIdentity(user), first, second)
        await moveSlot(cluster, slotOfIdentity(user), second, first)
      }
    } finally {
      isOver = true
      await loads
    }
    for (const user of users) {
      const { remaining } = await (limiters[0] as Limiter).peek(user, { cost: { tokens: 0 } })
      expect(1_000_000 - remaining).toBe(expected.get(user))
    }
  })
})

/** A test before a merge fails over one client. */
const failedOver = oneOfEach(clusterClients).filter((_, i) => byEffort({ usual: i === 0, full: true }))

describe.each(failedOver)('kept charges after a failover, over %s', (kind) => {
  test('a charge and its record are on the new master together, and are settled once', async () => {
    const cluster = await startCluster()
    const replica = await startReplica(cluster, cluster.masters[0] as RedisServer)
    const { stores, close } = await twoStores(kind, cluster)
    try {
      const limits = [fixedWindow<string>({ unit: 'tokens', limit: 1000, window: '1d' })]
      const [web, worker] = stores.map((store) => createLimiter({ name: 'failover', store, limits, charges })) as [
        Limiter,
        Limiter,
      ]
      const user = cluster.identityOn(0, 'ann')
      await until('the store decides', () => decided(web.peek(user)).catch(() => undefined), { withinMs: 30_000 })
      const charge = async () => (await decided(web.consume(user, { cost: { tokens: 100 } }))).id as string
      const [settled, open] = [await charge(), await charge()]
      expect(await worker.settle(settled, { tokens: 30 })).toBe('done')
      await until('the replica has it all', async () => {
        const [master, copy] = await Promise.all(
          [cluster.masters[0] as RedisServer, replica].map((server) => server.fields('INFO', 'replication')),
        )
        return master?.master_repl_offset === copy?.master_repl_offset
      })
      await replica.call('CLUSTER', 'FAILOVER')
      await until('it is promoted', async () => (await replica.fields('INFO', 'replication')).role === 'master', {
        withinMs: 30_000,
      })
      expect(await eventually(() => worker.settle(open, { tokens: 40 }))).toMatch(/^done/)
      expect(await eventually(() => web.refund(settled))).toBe('done before')
      expect((await web.peek(user, { cost: { tokens: 0 } })).remaining).toBe(930)
    } finally {
      await close()
      await replica.stop()
      await cluster.stop()
    }
  })
})
