import {
  createLimiter,
  fixedWindow,
  gcra,
  keyed,
  type Limit,
  type Limiter,
  leakyBucket,
  memoryStore,
  perMinute,
  redisStore,
  type Store,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '@sluice/core'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { insist } from '../support/outages.js'
import { redisForTests } from '../support/redis-for-tests.js'

const HOUR_MS = 3_600_000

const { server, client } = await redisForTests()
/** The clock of the store stands still; keys live an hour longer than by the clock of Redis. */
let now = 0
const store = insist(redisStore(client, { timeout: 5000, clock: () => now, denyCache: false }))
beforeEach(async () => {
  now = 500 * HOUR_MS
  await server.flush()
})
afterAll(() => store.close())

const keys = async () => [...(await server.lifetimes()).keys()].sort()

const sharing: Record<string, readonly Limit<string>[]> = {
  buckets: [
    gcra({ limit: 3, window: '1m' }),
    tokenBucket({ capacity: 9, refill: 9, every: '1h' }),
    leakyBucket({ leak: 20, every: '1h', capacity: 20 }),
  ],
  counters: [fixedWindow({ limit: 3, window: '1m' }), fixedWindow({ limit: 20, window: '1h' })],
  segments: [slidingWindow({ limit: 3, window: '1m', edge: 'strict' }), slidingWindow({ limit: 20, window: '1h' })],
  'all of these': [
    slidingWindow({ limit: 20, window: '1h' }),
    gcra({ limit: 3, window: '1m' }),
    fixedWindow({ limit: 90, window: '1d' }),
    gcra({ limit: 500, window: '1h', unit: 'content-bytes' }),
  ],
}

test('a bucket refunds no unit twice, whatever is charged between two refunds', async () => {
  // One unit returns each second: 2 of the two charges by the first refund, and another one by the second.
  const limits = [gcra({ limit: 10, window: '10s' }), gcra({ limit: 100, window: '100s' })]
  const walked = async (own: Store) => {
    const limiter = createLimiter({ name: 'refunds', store: own, limits })
    const first = await limiter.consume('k', { cost: 5 })
    const second = await limiter.consume('k', { cost: 4 })
    now += 2000
    await limiter.refund('k', first)
    now += 1000
    await limiter.consume('k', { cost: 4 })
    await limiter.refund('k', second)
    return (await limiter.peek('k')).limits.map(({ remaining }) => remaining)
  }
  const start = now
  expect(await walked(store)).toEqual([6, 96])
  now = start
  expect(await walked(memoryStore({ clock: () => now }))).toEqual([6, 96])
})

describe.each(Object.entries(sharing))('%s of one identity', (_, limits) => {
  test('limits that share an identity are one key, read and written once, in any order of limits', async () => {
    const limiter = createLimiter({ name: 'same', store, limits })
    const turned = createLimiter({ name: 'same', store, limits: [...limits].reverse() })
    await limiter.consume('k', { bytes: 5 })
    await turned.consume('k', { bytes: 5 })
    expect((await limiter.peek('k', { bytes: 5 })).remaining).toBe(1)
    expect(await keys()).toHaveLength(1)

    // Now and then the store reads the marker of blocks between two commands: another decision has none of it.
    let decisions = 0
    const commandsOfDecision = async () => {
      await server.call('CONFIG', 'RESETSTAT')
      await limiter.consume(`k${decisions++}`, { bytes: 5 })
      const stats = String(await server.call('INFO', 'commandstats'))
      const calls = (command: string) => Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0)
      return { reads: calls('get'), writes: calls('set') + calls('setrange') }
    }
    // One of the reads is of the marker of blocks.
    await expect.poll(commandsOfDecision, { timeout: 30_000 }).toEqual({ reads: 2, writes: 1 })
  })

  test('limits that share a key start afresh when a limit is added', async () => {
    await createLimiter({ name: 'same', store, limits }).consume('k', { cost: 2, bytes: 5 })
    const changed = createLimiter({ name: 'same', store, limits: [...limits, gcra({ limit: 77, window: '1h' })] })
    expect((await changed.peek('k', { bytes: 5 })).limits.map(({ remaining, limit }) => limit - remaining)).toEqual(
      changed.limits.map(() => 0),
    )
  })

  test('a reset forgets all limits of a shared key, and leaves no key', async () => {
    const limiter = createLimiter({ name: 'same', store, limits })
    await limiter.consume('k', { cost: 3, bytes: 5 })
    expect((await limiter.consume('k', { bytes: 5 })).allowed).toBe(false)
    await limiter.reset('k')
    expect(await keys()).toEqual([])

    const first = await limiter.consume('k', { cost: 2, bytes: 5 })
    expect(await limiter.refund('k', first)).toBe(true)
    const { limits: left } = await limiter.peek('k', { bytes: 5 })
    expect(left.every(({ remaining, limit }) => remaining === limit || remaining >= 9)).toBe(true)
    now += 25 * HOUR_MS
    await limiter.consume('k', { bytes: 5 })
    expect(await keys()).toHaveLength(1)
  })

  test('a shared key lives as long as its longest limit needs', async () => {
    const limiter = createLimiter({ name: 'same', store, limits })
    for (const stepMs of [0, 1, 61_000, 61_000]) {
      now += stepMs
      const { limits: reported } = await limiter.consume('k', { bytes: 5 })
      const longest = Math.max(...reported.map(({ resetAfterMs }) => resetAfterMs))
      const [leftMs] = [...(await server.lifetimes()).values()] as [number]
      expect(leftMs).toBeGreaterThan(longest)
    }
  })

  test('a foreign value under a shared key counts as no state', async () => {
    const limiter = createLimiter({ name: 'same', store, limits })
    await limiter.consume('k', { cost: 2, bytes: 5 })
    const [key] = (await keys()) as [string]
    for (const put of [
      ['SET', key, 'not ours'],
      ['RPUSH', key, 'a'],
    ]) {
      await server.call('DEL', key)
      await server.call(put[0] as string, ...put.slice(1))
      const [before, here] = await Promise.all([
        limiter.consume(`before-${put[0]}`, { bytes: 5 }),
        limiter.consume('k', { bytes: 5 }),
      ])
      expect([before.allowed, here.allowed, here.remaining]).toEqual([true, true, 2])
    }
  })
})

test('a shared key names its limits where that is short, and has their hash otherwise', async () => {
  const short = [fixedWindow({ limit: 3, window: '1m' }), fixedWindow({ limit: 20, window: '1h' })]
  await createLimiter({ name: 'short', store, limits: short }).consume('k')
  await createLimiter({ name: 'long', store, limits: [...short, gcra({ limit: 9, window: '1m' })] }).consume('k')
  expect(await keys()).toEqual([
    expect.stringMatching(/^sluice:v1:\{key=k\}:long:joint\.[\w-]{22}$/),
    'sluice:v1:{key=k}:short:fixed.20.3600000+fixed.3.60000',
  ])
})

test('limits on other identities, logs, and limits by tier, with leases or by functions have separate keys', async () => {
  const limits = [gcra({ limit: 9, window: '1m' }), fixedWindow({ limit: 9, window: '1h' })]
  const other = keyed<string>('other', () => 'o')
  const lease = { size: 5, ttl: '1s' } as const
  const leased = [gcra({ limit: 90, window: '1m', lease }), fixedWindow({ limit: 90, window: '1h', lease })]
  const made: readonly Limiter[] = [
    createLimiter({
      name: 'two',
      store,
      limits: [gcra({ limit: 9, window: '1m' }), gcra({ limit: 9, window: '1m', key: other })],
    }),
    createLimiter({
      name: 'logs',
      store,
      limits: [perMinute(9), slidingLog({ limit: 9, window: '1h' }), gcra({ limit: 9, window: '1m' })],
    }),
    createLimiter({ name: 'tier', store, tier: () => 'free', tiers: { free: limits } }),
    createLimiter({ name: 'leases', store, limits: leased }),
    createLimiter<string>({
      name: 'functions',
      store,
      limits: [gcra({ limit: () => 9, window: '1m' }), gcra({ limit: 9, window: '1m' })],
    }),
  ]
  for (const limiter of made) {
    await server.flush()
    await limiter.consume('k')
    expect({ name: limiter.name, keys: (await keys()).length }).toEqual({ name: limiter.name, keys: 2 })
  }
})
