// Release: runs clusters.
import {
  concurrency,
  everyone,
  fixedWindow,
  gcra,
  type Limiter,
  redisStore,
  slidingLog,
  slidingWindow,
  type Verdict,
} from '@sluice/core'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createLimiter } from '../../contract/create-limiter.js'
import { clusterClients, oneOf } from '../../support/clients.js'
import { decided } from '../../support/decided.js'
import { type RedisCluster, startCluster } from '../../support/redis-cluster.js'
import { SLOTS, slotOf, slotOfIdentity } from '../../support/slots.js'
import { type OpenStore, openStore } from '../../support/stores.js'
import { until } from '../../support/until.js'

let cluster: RedisCluster
beforeAll(async () => {
  cluster = await startCluster()
  return () => cluster.stop()
})

const users = (count: number) => Array.from({ length: count }, (_, n) => `user-${n}`)
const times = <T>(count: number, make: () => T) => Array.from({ length: count }, make)
const admitted = (verdicts: readonly Verdict[]) => verdicts.filter(({ allowed }) => allowed).length

/** Limits on the user and on everyone, with windows far longer than a test. */
const pairs = {
  slidingLog: (user: number, all: number) => [
    slidingLog({ limit: user, window: '1h' }),
    slidingLog({ limit: all, window: '1h', key: everyone() }),
  ],
  gcra: (user: number, all: number) => [
    gcra({ limit: user, window: '1d' }),
    gcra({ limit: all, window: '1d', key: everyone() }),
  ],
  'fixedWindow by first request': (user: number, all: number) => [
    fixedWindow({ limit: user, window: '1h', anchor: 'first-request' }),
    fixedWindow({ limit: all, window: '1h', anchor: 'first-request', key: everyone() }),
  ],
  'fixedWindow by the calendar': (user: number, all: number) => [
    fixedWindow({ limit: user, window: 'year', timeZone: 'Asia/Tokyo' }),
    fixedWindow({ limit: all, window: 'year', key: everyone() }),
  ],
  slidingWindow: (user: number, all: number) => [
    slidingWindow({ limit: user, window: '1h', segments: 60, edge: 'strict' }),
    slidingWindow({ limit: all, window: '1h', segments: 60, edge: 'strict', key: everyone() }),
  ],
  concurrency: (user: number, all: number) => [
    concurrency({ limit: user, ttl: '1h' }),
    concurrency({ limit: all, ttl: '1h', key: everyone() }),
  ],
  mixed: (user: number, all: number) => [
    gcra({ limit: user, window: '1d' }),
    slidingLog({ limit: all, window: '1h', key: everyone() }),
  ],
}

const slotOfEveryone = slotOfIdentity('everyone', 'everyone')

describe.each(oneOf(clusterClients, 'ioredis 6 Cluster'))('a cluster, over %s', (kind) => {
  let open: OpenStore
  beforeEach(async () => {
    await cluster.flush()
    open = await openStore(clusterClients[kind](cluster))
  })
  afterEach(() => open.close())

  async function left(limiter: Limiter, user: string): Promise<number[]> {
    return (await limiter.peek(user)).limits.map(({ remaining }) => remaining)
  }

  test('a cluster admits exactly the limit for each of many keys, spread over all masters', async () => {
    const limiter = createLimiter({ name: 'many', store: open.store, limit: 3, window: '1h' })
    const verdicts = await Promise.all(users(120).map((user) => Promise.all(times(5, () => limiter.consume(user)))))
    expect(verdicts.map(admitted)).toEqual(new Array(120).fill(3))
    for (const master of cluster.masters) expect(await master.call('DBSIZE')).toBeGreaterThan(10)
  })

  test('all limits of one identity are on one slot, and every key has a TTL', async () => {
    const limits = [
      slidingLog({ limit: 5, window: '1h' }),
      gcra({ limit: 5, window: '1h' }),
      fixedWindow({ limit: 5, window: '1h', anchor: 'first-request' }),
      slidingWindow({ limit: 5, window: '1h', segments: 6 }),
      concurrency({ limit: 5 }),
    ]
    const limiter = createLimiter({ name: 'one-slot', store: open.store, limits })
    for (const user of ['user-1', 'a:b', '{x}y', 'é', 'x'.repeat(500)]) {
      await cluster.flush()
      expect((await limiter.consume(user)).allowed).toBe(true)
      await limiter.block(user, { for: '1h' })
      // The log, the permits, the key that the other limits share, and the block; the index of blocks is separate.
      const keys = new Map([...(await cluster.lifetimes())].filter(([key]) => !key.includes('{blocks.')))
      expect([...keys.keys()]).toHaveLength(4)
      expect(new Set([...keys.keys()].map(slotOf)).size).toBe(1)
      expect([...keys.values()].every((leftMs) => leftMs > 0)).toBe(true)
      // A block whose key is lost would be restored beside the next one.
      await limiter.unblock(user)
    }
  })

  test('an identity cannot choose its slot', async () => {
    const limiter = createLimiter({ name: 'steer', store: open.store, limit: 3, window: '1h' })
    const crafted = Array.from({ length: 40 }, (_, n) => `{here}${n}`)
    await Promise.all(crafted.map((identity) => limiter.consume(identity)))
    const slots = [...(await cluster.lifetimes()).keys()].map(slotOf)
    expect(new Set(slots).size).toBeGreaterThan(35)
  })

  test('decisions remain exact after one master loses its scripts', async () => {
    const limiter = createLimiter({ name: 'no-script', store: open.store, limit: 3, window: '1h' })
    for (const [i, master] of cluster.masters.entries()) {
      const identity = cluster.identityOn(i)
      expect((await limiter.consume(identity)).remaining).toBe(2)
      await master.call('SCRIPT', 'FLUSH')
      expect((await limiter.consume(identity)).remaining).toBe(1)
      await master.call('SCRIPT', 'FLUSH')
      const rest = await Promise.all(users(30).map((user) => limiter.consume(user)))
      expect(admitted(rest)).toBe(30)
      await limiter.block(identity, { for: '1h' })
      expect((await limiter.peek(identity)).reason).toBe('blocked')
      await cluster.flush()
    }
  })

  test('decisions follow a slot that moves to another master', async () => {
    const [from, to] = cluster.masters as [RedisCluster['masters'][number], RedisCluster['masters'][number]]
    const identity = cluster.identityOn(0, `moved-${kind}`)
    const slot = slotOfIdentity(identity)
    const limiter = createLimiter({ name: 'moved', store: open.store, limit: 5, window: '1h' })
    await limiter.consume(identity)
    const ids = await Promise.all(cluster.masters.map((master) => master.call('CLUSTER', 'MYID')))
    const assign = async (owner: number) => {
      for (const master of cluster.masters) await master.call('CLUSTER', 'SETSLOT', slot, 'NODE', String(ids[owner]))
    }
    const migrate = async (source: typeof from, target: typeof to, owner: number) => {
      for (const key of (await source.lifetimes()).keys()) {
        if (slotOf(key) === slot) await source.call('MIGRATE', '127.0.0.1', target.port, key, 0, 5000)
      }
      await assign(owner)
    }
    await from.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', String(ids[1]))
    await to.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', String(ids[0]))
    await migrate(from, to, 1)
    try {
      expect((await limiter.consume(identity)).remaining).toBe(3)
      expect((await limiter.consume(identity)).remaining).toBe(2)
    } finally {
      await to.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', String(ids[0]))
      await from.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', String(ids[1]))
      await migrate(to, from, 0)
    }
    expect((await limiter.consume(identity)).remaining).toBe(1)
  })

  describe('a policy whose limits sit on different slots', () => {
    test('a charged refusal across slots takes no permit, and an impossible cost charges nothing', async () => {
      const limits = [slidingLog({ limit: 1, window: '1h' }), concurrency({ limit: 2, key: everyone() })]
      const limiter = createLimiter({ name: 'charged', store: open.store, limits, onDeny: 'charge' })
      expect((await limiter.consume('one')).allowed).toBe(true)
      expect((await limiter.consume('one')).reason).toBe('limited')
      expect((await limiter.consume('two', { cost: 2 })).reason).toBe('impossible')
      expect((await limiter.consume('two')).allowed).toBe(true)
      expect((await limiter.consume('three')).limits.map(({ allowed }) => allowed)).toEqual([false, false])
    })

    /** One user on each master. */
    const spread = () => [0, 1, 2].map((master) => cluster.identityOn(master, 'spread'))

    test('the identities of these tests have different slots', () => {
      expect(new Set([...spread().map((user) => slotOfIdentity(user)), slotOfEveryone]).size).toBe(4)
      expect(slotOfEveryone).toBeLessThan(SLOTS)
    })

    test.each(Object.entries(pairs))(
      'a user on another slot is charged nothing when the limit of everyone refuses: %s',
      async (_, limits) => {
        const limiter = createLimiter({ name: 'across', store: open.store, limits: limits(10, 2) })
        const [first, second] = spread() as [string, string]
        expect((await limiter.consume(first)).limits.map(({ remaining }) => remaining)).toEqual([9, 1])
        expect((await limiter.consume(first)).limits.map(({ remaining }) => remaining)).toEqual([8, 0])

        const refused = await limiter.consume(second)
        expect(refused.allowed).toBe(false)
        expect(refused.limits.map(({ allowed }) => allowed)).toEqual([true, false])
        expect(refused.limits.map(({ remaining }) => remaining)).toEqual([10, 0])
        expect(refused.retryAfterMs).toBeGreaterThan(0)
        expect(await left(limiter, second)).toEqual([10, 0])
      },
    )

    test.each(Object.entries(pairs))(
      'everyone on another slot is charged nothing when the limit of the user refuses: %s',
      async (_, limits) => {
        const limiter = createLimiter({ name: 'across', store: open.store, limits: limits(1, 10) })
        const [first, second] = spread() as [string, string]
        expect((await limiter.consume(first)).allowed).toBe(true)
        for (let n = 0; n < 12; n++)
          expect((await limiter.consume(first)).limits.map(({ allowed }) => allowed)).toEqual([false, true])
        expect(await left(limiter, first)).toEqual([0, 9])
        expect((await limiter.consume(second)).limits.map(({ remaining }) => remaining)).toEqual([0, 8])
      },
    )

    test.each(Object.entries(pairs))(
      'concurrent decisions across slots admit at most the limit, and charge only admissions: %s',
      async (_, limits) => {
        const limiter = createLimiter({ name: 'across', store: open.store, limits: limits(5, 8) })
        const other = await openStore(clusterClients[kind](cluster))
        const beside = createLimiter({ name: 'across', store: other.store, limits: limits(5, 8) })
        try {
          const counts = await Promise.all(
            spread().map(async (user) =>
              admitted(await Promise.all([limiter, beside].flatMap((one) => times(25, () => one.consume(user))))),
            ),
          )
          const total = counts.reduce((sum, count) => sum + count, 0)
          expect(Math.max(...counts)).toBeLessThanOrEqual(5)
          expect(total).toBeLessThanOrEqual(8)
          for (const [i, user] of spread().entries()) {
            expect(await left(limiter, user)).toEqual([5 - (counts[i] as number), 8 - total])
          }
          // Temporary refusals pass at the next attempt, or once they leave the deny cache.
          await until('the whole limit is used', async () => {
            for (const user of spread()) for (let n = 0; n < 5; n++) await limiter.consume(user)
            return (await left(limiter, spread()[0] as string))[1] === 0
          })
        } finally {
          await other.close()
        }
      },
    )

    test.each(Object.entries(pairs))('a refund takes effect once on both slots: %s', async (_, limits) => {
      const limiter = createLimiter({ name: 'across', store: open.store, limits: limits(5, 5) })
      const [user] = spread() as [string]
      const verdict = await limiter.consume(user, { cost: 3 })
      expect(await left(limiter, user)).toEqual([2, 2])
      expect(await limiter.refund(user, verdict)).toBe(true)
      expect(await left(limiter, user)).toEqual([5, 5])
      expect(await limiter.refund(user, verdict)).toBe(false)
      expect(await left(limiter, user)).toEqual([5, 5])
    })

    test('peeks, resets and blocks apply on both slots', async () => {
      const limiter = createLimiter({ name: 'across', store: open.store, limits: pairs.mixed(5, 5) })
      const [user] = spread() as [string]
      await limiter.consume(user, { cost: 3 })
      expect((await limiter.peek(user, { cost: 3 })).allowed).toBe(false)
      expect((await limiter.consume(user, { cost: 6 })).reason).toBe('impossible')
      await limiter.block({ key: user }, { for: '1h', reason: 'scraping' })
      const blocked = await limiter.consume(user)
      expect(blocked.reason).toBe('blocked')
      expect(blocked.block?.reason).toBe('scraping')
      await limiter.unblock({ key: user })
      expect(await left(limiter, user)).toEqual([2, 2])
      await limiter.reset(user)
      expect(await left(limiter, user)).toEqual([5, 5])
      // The index stores the end of a block for a while.
      expect([...(await cluster.lifetimes()).keys()].filter((key) => !key.includes('{blocks.'))).toEqual([])
    })

    test('a release frees permits on both slots', async () => {
      const limits = [concurrency({ limit: 2 }), concurrency({ limit: 3, key: everyone() })]
      const limiter = createLimiter({ name: 'across', store: open.store, limits })
      const [user] = spread() as [string]
      const verdict = await limiter.consume(user)
      expect(await left(limiter, user)).toEqual([1, 2])
      await limiter.renew(verdict)
      expect(await left(limiter, user)).toEqual([1, 2])
      await limiter.release(verdict)
      await limiter.release(verdict)
      expect(await left(limiter, user)).toEqual([2, 3])
    })

    test('a store that closes during a refusal across slots refunds its charges first', async () => {
      const limits = pairs.slidingLog(5, 1)
      const limiter = createLimiter({ name: 'across', store: open.store, limits })
      const [ann, bob] = spread() as [string, string]
      expect((await limiter.consume(ann)).allowed).toBe(true)
      for (const denyCache of [true, false]) {
        const store = redisStore(open.client, { timeout: 5000, denyCache })
        const leaving = createLimiter({ name: 'across', store, limits })
        await decided(leaving.peek(bob))
        const pending = leaving.consume(bob)
        await store.close()
        expect(await pending).toMatchObject({ kind: 'decided', allowed: false })
        expect(await left(limiter, bob)).toEqual([5, 0])
      }
    })

    test('the charge on a reachable slot is refunded when the other slot hangs', async () => {
      const store = redisStore(open.client, { timeout: 200 })
      const hung = cluster.masterOf(slotOfEveryone)
      const user = cluster.identityOn((cluster.masters.indexOf(hung) + 1) % 3, 'reachable')
      const limiter = createLimiter({ name: 'half', store, limits: pairs.slidingLog(5, 5) })
      await limiter.consume(user)
      hung.kill('SIGSTOP')
      try {
        const before = performance.now()
        expect((await limiter.consume(user)).kind).toBe('unavailable')
        // Far less than the master hangs.
        expect(performance.now() - before).toBeLessThan(5000)
        const alone = createLimiter({
          name: 'half',
          store,
          limits: [slidingLog({ limit: 5, window: '1h' })],
        })
        expect((await until('the charge is refunded', () => decided(alone.peek(user)))).remaining).toBe(4)
      } finally {
        hung.kill('SIGCONT')
      }
      await until('every master decides again', () => decided(limiter.peek(user)))
      const [mine, all] = await left(limiter, user)
      expect(mine).toBe(4)
      // The timed-out decision may have been charged on the master that hung, at most once.
      expect([3, 4]).toContain(all)
      await store.close()
    })
  })
})
