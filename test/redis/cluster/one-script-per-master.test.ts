// Release: runs clusters.
import {
  concurrency,
  createLimiter,
  everyone,
  fixedWindow,
  gcra,
  redisStore,
  slidingLog,
  type Verdict,
} from '@sluice/core'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { clusterClients, oneOf } from '../../support/clients.js'
import { decided } from '../../support/decided.js'
import { type RedisCluster, startCluster } from '../../support/redis-cluster.js'
import { type OpenStore, openStore } from '../../support/stores.js'
import { until } from '../../support/until.js'

let cluster: RedisCluster
beforeAll(async () => {
  cluster = await startCluster()
  return () => cluster.stop()
})

const users = (count: number) => Array.from({ length: count }, (_, n) => `user-${n}`)
const admitted = (verdicts: readonly Verdict[]) => verdicts.filter(({ allowed }) => allowed).length

/** The number of scripts that all masters have executed since the last call. */
async function scriptsRun(): Promise<number> {
  const stats = await Promise.all(cluster.masters.map((master) => master.fields('INFO', 'commandstats')))
  await Promise.all(cluster.masters.map((master) => master.call('CONFIG', 'RESETSTAT')))
  const calls = stats.flatMap((each) => [each.cmdstat_eval, each.cmdstat_evalsha])
  return calls.reduce((sum, text = 'calls=0') => sum + Number(/calls=(\d+)/.exec(text)?.[1]), 0)
}

describe.each(oneOf(clusterClients, 'redis 5 cluster'))('a cluster, over %s', (kind) => {
  let open: OpenStore
  beforeEach(async () => {
    await cluster.flush()
    open = await openStore(clusterClients[kind](cluster))
  })
  afterEach(() => open.close())

  const decideAll = () => {
    const limiter = createLimiter({ name: 'many', store: open.store, limit: 1000, window: '1h' })
    return Promise.all(users(60).map((user) => decided(limiter.consume(user))))
  }

  /** Decides until the support of every master is known; returns the number of scripts for the decisions of one turn. */
  async function scriptsPerTurn(): Promise<number> {
    for (let turn = 0; turn < 5; turn++) await decideAll()
    await scriptsRun()
    await decideAll()
    return scriptsRun()
  }

  test('one script per master decides concurrent requests', async () => {
    expect(await scriptsPerTurn()).toBe(3)
  })

  test('one script per slot decides concurrent requests where undeclared keys are off', async () => {
    await open.close()
    open = await openStore(clusterClients[kind](cluster), { undeclaredKeys: false })
    expect(await scriptsPerTurn()).toBeGreaterThan(50)
  })

  test.each([
    ['one limit', [slidingLog<string>({ limit: 1000, window: '1h' })]],
    [
      'limits on several slots',
      [slidingLog<string>({ limit: 1000, window: '1h' }), gcra<string>({ limit: 9000, window: '1h', key: everyone() })],
    ],
  ])('one script per master decides with shared turns while no request waits: %s', async (what, limits) => {
    await scriptsPerTurn()
    const { store } = open
    const limiter = createLimiter({ name: `turns-${what.length}`, store, limits, sharedTurns: true })
    const perTurn = async () => {
      await scriptsRun()
      const verdicts = await Promise.all(users(60).map((user) => decided(limiter.consume(user))))
      expect(admitted(verdicts)).toBe(60)
      return scriptsRun()
    }
    await until('one script per master decides', async () => (await perTurn()) === 3)
    const permit = createLimiter({ name: 'place', store, sharedTurns: true, limits: [concurrency({ limit: 1 })] })
    const taken = await permit.consume('elsewhere')
    const leaving = new AbortController()
    const waiter = permit.acquire('elsewhere', { signal: leaving.signal })
    await until('one script per slot decides', async () => (await perTurn()) > 50)
    leaving.abort()
    await expect(waiter).rejects.toThrow()
    await permit.release(taken)
    await until('one script per master decides again', async () => (await perTurn()) === 3)
  })

  test('scripts for whole masters admit exactly the limit for each of many keys', async () => {
    await scriptsPerTurn()
    const limits = [slidingLog({ limit: 3, window: '1h' }), gcra({ limit: 4, window: '1d' }), concurrency({ limit: 9 })]
    const limiter = createLimiter({ name: 'three', store: open.store, limits })
    const single = createLimiter({
      name: 'one',
      store: open.store,
      limits: [fixedWindow({ limit: 2, window: '1h', anchor: 'first-request' })],
    })
    const ask = () => Promise.all(users(50).flatMap((user) => [limiter.consume(user), single.consume(user)]))
    const verdicts = (await Promise.all([ask(), ask(), ask(), ask(), ask()])).flat()
    expect(verdicts.every(({ kind }) => kind === 'decided')).toBe(true)
    expect(admitted(verdicts)).toBe(50 * (3 + 2))
  })

  test('a block refuses its identity alone among all that one script decides', async () => {
    await scriptsPerTurn()
    const limiter = createLimiter({ name: 'blocks', store: open.store, limit: 100, window: '1h' })
    await limiter.block('user-7', { for: '1h', reason: 'scraping' })
    const verdicts = await Promise.all(users(30).map((user) => limiter.consume(user)))
    expect(verdicts.flatMap(({ allowed }, n) => (allowed ? [] : [n]))).toEqual([7])
    expect(verdicts[7]).toMatchObject({ reason: 'blocked', block: { reason: 'scraping' } })
    await limiter.unblock('user-7')
    expect(admitted(await Promise.all(users(30).map((user) => limiter.consume(user))))).toBe(30)
  })

  test('a release takes effect before later decisions of the same turn', async () => {
    await scriptsPerTurn()
    const limiter = createLimiter({ name: 'permits', store: open.store, limits: [concurrency({ limit: 1 })] })
    const held = await Promise.all(users(20).map((user) => limiter.consume(user)))
    const again = await Promise.all(
      users(20).flatMap((user, n) => [limiter.release(held[n] as Verdict), limiter.consume(user)]),
    )
    expect(admitted(again.filter((one) => one !== undefined) as Verdict[])).toBe(20)
  })

  describe('a policy of several identities', () => {
    const limits = [slidingLog({ limit: 5, window: '1h' }), concurrency({ limit: 8, key: everyone() })]

    test('a policy of several identities is decided and refunded whether their keys share a master or not', async () => {
      await scriptsPerTurn()
      const limiter = createLimiter({ name: 'pairs', store: open.store, limits })
      const mixed = users(12)
      const verdicts = await Promise.all(mixed.map((user) => decided(limiter.consume(user))))
      expect(admitted(verdicts)).toBeLessThanOrEqual(8)
      for (const [n, verdict] of verdicts.entries())
        if (verdict.allowed) await limiter.refund(mixed[n] as string, verdict)
      for (const user of mixed)
        expect((await limiter.peek(user)).limits.map(({ remaining }) => remaining)).toEqual([5, 8])
    })

    test('a store that closes frees its permits on every master', async () => {
      await scriptsPerTurn()
      const store = redisStore(open.client, { timeout: 5000 })
      const limiter = createLimiter({ name: 'pairs', store, limits })
      const watch = createLimiter({ name: 'pairs', store: open.store, limits })
      // Until this store knows the support of every master, too.
      const others = createLimiter({ name: 'others', store, limit: 1000, window: '1h' })
      for (let turn = 0; turn < 5; turn++) await Promise.all(users(60).map((user) => decided(others.consume(user))))
      for (const user of users(8)) expect((await limiter.consume(user)).allowed).toBe(true)
      expect((await watch.peek('user-1')).limits[1]?.remaining).toBe(0)
      await store.close()
      expect((await watch.peek('user-1')).limits[1]?.remaining).toBe(8)
    })
  })

  test('each decision is charged once when a master denies reads for a while', async () => {
    const denying = cluster.masters[0] as RedisCluster['masters'][number]
    await scriptsPerTurn()
    // Without permission to read, that master decides nothing, by any script; later decisions are made as before.
    await denying.call('ACL', 'SETUSER', 'default', '-get')
    const limiter = createLimiter({ name: 'refused', store: open.store, limits: [gcra({ limit: 100, window: '1d' })] })
    await Promise.all(users(60).map((user) => limiter.consume(user).catch(() => undefined)))
    await denying.call('ACL', 'SETUSER', 'default', '+get')
    const verdicts = await until('every master decides', () =>
      Promise.all(users(60).map((user) => decided(limiter.consume(user)))),
    )
    for (const { remaining } of verdicts) expect([98, 99]).toContain(remaining)
  })
})
