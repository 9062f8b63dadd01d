// Release: runs clusters.
import { createLimiter, type Limiter } from '@sluice/core'
import { policies } from '@sluice/policies'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { clusterClients } from '../../support/clients.js'
import { LASTING_LIMITS } from '../../support/lasting-limits.js'
import { type RedisCluster, startCluster } from '../../support/redis-cluster.js'
import { type OpenStore, openStore } from '../../support/stores.js'

interface Client {
  readonly user: string
}

let cluster: RedisCluster
/** The stores of a process with the old document and of one with the next. */
let stores: readonly [OpenStore, OpenStore]
beforeAll(async () => {
  cluster = await startCluster()
  stores = [
    await openStore(clusterClients['ioredis 6 Cluster'](cluster)),
    await openStore(clusterClients['redis 6 cluster'](cluster)),
  ]
})
afterAll(async () => {
  for (const { close } of stores ?? []) await close()
  await cluster?.stop()
})

/** Limiters by two versions of a policy, each on its own store. */
async function versions(
  old: readonly object[],
  next: readonly object[],
): Promise<readonly [Limiter<Client>, Limiter<Client>]> {
  const limiterOn = async ({ store }: OpenStore, limits: readonly object[]) => {
    const loaded = await policies.from({
      object: { version: 1, policies: { api: { key: 'user', limits } } },
      keys: { user: (client: Client) => client.user },
    })
    return createLimiter<Client>({
      name: 'default',
      store,
      limits: [...(loaded.byName.get('api')?.options.limits ?? [])],
    })
  }
  return [await limiterOn(stores[0], old), await limiterOn(stores[1], next)]
}

/** The number of admitted requests out of `requests` at once. */
async function admits(limiter: Limiter<Client>, user: string, requests: number): Promise<number> {
  const verdicts = await Promise.all(Array.from({ length: requests }, () => limiter.consume({ user })))
  return verdicts.filter(({ allowed }) => allowed).length
}

describe('a cluster whose clients decide by two versions of a document, 100 and 20', () => {
  test.each(Object.entries(LASTING_LIMITS))(
    'two versions of a policy share the counts of %s on every master',
    async (algorithm, more) => {
      const [old, next] = await versions([{ ...more, limit: 100 }], [{ ...more, limit: 20 }])
      for (const master of [0, 1, 2]) {
        const user = cluster.identityOn(master, algorithm, 'user')
        expect(await admits(old, user, 15), 'by the old version').toBe(15)
        expect(await admits(next, user, 30), 'the room of the next version').toBe(5)
        const both = await Promise.all([admits(old, user, 120), admits(next, user, 120)])
        expect(both, 'both at once').toEqual([80, 0])

        const another = cluster.identityOn(master, `${algorithm}-new`, 'user')
        const [large, small] = await Promise.all([admits(old, another, 120), admits(next, another, 120)])
        expect(large + small, 'both at once from the start').toBe(100)
        expect(small).toBeLessThanOrEqual(20)
        expect(await cluster.masters[master]?.call('DBSIZE')).toBeGreaterThan(0)
      }
    },
  )

  test('each limit of two versions has its own count across several slots', async () => {
    const limits = (user: number, all: number) => [
      { name: 'user', limit: user, window: '30d' },
      { name: 'all', limit: all, window: '30d', key: 'everyone', algorithm: 'fixedWindow', anchor: 'first-request' },
    ]
    const [old, next] = await versions(limits(100, 500), limits(20, 60))
    expect(await admits(old, 'ann', 30)).toBe(30)
    expect(await admits(next, 'ann', 5), 'ann has used more than her 20').toBe(0)
    expect(await admits(next, 'bob', 30), 'bob has his 20').toBe(20)
    for (let n = 0; n < 10; n++) expect(await admits(next, 'cid', 1), '10 remain of the 60 of all').toBe(1)
    expect(await admits(next, 'cid', 1)).toBe(0)
    expect((await old.peek({ user: 'cid' })).limits.map(({ remaining }) => remaining)).toEqual([90, 440])
  })
})
