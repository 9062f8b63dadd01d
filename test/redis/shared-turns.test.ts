import { setTimeout as sleep } from 'node:timers/promises'
import {
  concurrency,
  everyone,
  type Limiter,
  leakyBucket,
  type RedisStore,
  redisStore,
  slidingLog,
  tokenBucket,
} from '@sluice/core'
import { afterEach, describe, expect, test } from 'vitest'
import { createLimiter } from '../contract/create-limiter.js'
import { singleClients } from '../support/clients.js'
import { redisForTests } from '../support/redis-for-tests.js'
import { startRedis } from '../support/redis-server.js'
import { until } from '../support/until.js'

const { client } = await redisForTests()

/** A process sees a new waiter within this time, even when it has just looked. */
const UNSEEN_MS = 60

const stores: RedisStore[] = []
const waits: AbortController[] = []
afterEach(async () => {
  for (const wait of waits.splice(0)) wait.abort()
  for (const store of stores.splice(0)) await store.close()
  await client.flushall()
})

/** A limiter on a separate store, as another process has. */
function elsewhere(options: Partial<Parameters<typeof createLimiter<string>>[0]> = {}): Limiter {
  const store = redisStore(client, { timeout: 5000 })
  stores.push(store)
  return createLimiter({
    name: 'turns',
    store,
    sharedTurns: true,
    limits: [concurrency({ limit: 2, ttl: '1h' })],
    ...options,
  } as Parameters<typeof createLimiter<string>>[0])
}

function waitFor(limiter: Limiter, cost: number) {
  const wait = new AbortController()
  waits.push(wait)
  const ended = limiter.acquire('ann', { cost, signal: wait.signal }).then(
    (verdict) => verdict.allowed,
    () => 'left',
  )
  return { wait, ended }
}

const records = () => client.keys('*}:*:waiting')
const untilReported = (waiters = 1) =>
  until(`${waiters} waiters are reported`, async () => {
    const [key] = await records()
    return key !== undefined && (await client.strlen(key)) === 34 * waiters
  })
const untilNoneReported = () => until('no waiter is reported', async () => (await records()).length === 0)

/** The report of another process, valid for an hour, so that no pause of this one changes it: one waiter, of a class that came before all others. */
async function someoneWaits(cell: string, { headStartMs = 1, cameMsAgo = 1_000_000 } = {}): Promise<void> {
  const [seconds] = await client.time()
  const now = Number(seconds) * 1000
  const entry = Buffer.alloc(34)
  entry.write('some process')
  entry.writeDoubleBE(headStartMs, 12)
  entry.writeDoubleBE(now - cameMsAgo - headStartMs, 20)
  entry.writeUIntBE(now + 3_600_000, 28, 6)
  await client.set(`sluice:v1:{key=ann}:turns:${cell}:waiting`, entry, 'PX', 3_600_000)
  await client.set('sluice:v1:blocked:waiting', '', 'PX', 3_600_000)
}

describe('while a request waits in another process', () => {
  test.each([
    ['permits', concurrency({ limit: 3, ttl: '1h' }), 'concurrency.3.3600000'],
    ['a bucket', tokenBucket({ capacity: 3, refill: 1, every: '1h' }), 'bucket.1.3600000.3.1'],
    ['a log', slidingLog({ limit: 3, window: '1h' }), 'log.3.3600000'],
  ])(
    'a request that does not wait is refused while another process has a waiter, though it has room: %s',
    async (_what, limit, cell) => {
      const limiter = elsewhere({ limits: [limit] })
      const first = await limiter.consume('ann')
      expect(first.allowed).toBe(true)
      await someoneWaits(cell)
      await sleep(UNSEEN_MS)
      for (const verdict of [await limiter.consume('ann'), await limiter.peek('ann')]) {
        expect(verdict).toMatchObject({ allowed: false, reason: 'limited', remaining: 2, cost: 0 })
        expect(verdict.retryAfterMs).toBeGreaterThan(0)
      }
      expect((await limiter.consume('bob')).allowed).toBe(true)
      expect(await limiter.refund('ann', first)).toBe(true)
      expect(await limiter.peek('ann')).toMatchObject({ allowed: false, remaining: 3 })
      await client.del(...(await records()))
      expect(await limiter.consume('ann', { cost: 3 })).toMatchObject({ allowed: true, remaining: 0 })
    },
  )

  test('a refusal because of a waiter elsewhere is not charged, even with onDeny: "charge"', async () => {
    const limiter = elsewhere({ limits: [slidingLog({ limit: 3, window: '1h' })], onDeny: 'charge' })
    await limiter.consume('ann')
    await someoneWaits('log.3.3600000')
    await sleep(UNSEEN_MS)
    expect((await limiter.consume('ann')).allowed).toBe(false)
    await client.del(...(await records()))
    expect((await limiter.peek('ann')).remaining).toBe(2)
  })

  test.each([
    ['one after the other', (limiter: Limiter) => limiter.consume('ann')],
    ['many together', (limiter: Limiter) => Promise.all(['ann', 'bob', 'cem'].map((name) => limiter.consume(name)))],
    ['also while an identity is blocked', (limiter: Limiter) => limiter.consume('bob')],
  ])('a process looks for waiters at most once every 50 ms while there are none: %s', async (what, decide) => {
    const limits = [slidingLog({ limit: 1000, window: '1h' })]
    const [limiter, plain] = [elsewhere({ limits }), elsewhere({ limits, sharedTurns: false })]
    if (what.startsWith('also')) await limiter.block('dan', { for: '1h' })
    const looksOf = async (decides: Limiter) => {
      await client.config('RESETSTAT')
      for (let n = 0; n < 40; n++) await decide(decides)
      await sleep(UNSEEN_MS)
      await decide(decides)
      return Number(/cmdstat_exists:calls=(\d+)/.exec(await client.info('commandstats'))?.[1] ?? 0)
    }
    await decide(plain)
    // The look for block keys counts as the same command.
    const without = await looksOf(plain)
    await decide(limiter)
    const began = performance.now()
    const times = (await looksOf(limiter)) - without
    expect(times).toBeGreaterThan(0)
    expect(times).toBeLessThanOrEqual((performance.now() - began) / 50 + 1)
  })

  test('a waiter in the queue of one of several limits holds up requests of all', async () => {
    const limits = [slidingLog({ limit: 3, window: '1h' }), tokenBucket({ capacity: 3, refill: 1, every: '1h' })]
    const limiter = elsewhere({ limits })
    await someoneWaits('bucket.1.3600000.3.1')
    expect((await limiter.consume('ann')).allowed).toBe(false)
    await client.del(...(await records()))
    await someoneWaits('log.3.3600000')
    expect((await limiter.consume('ann')).allowed).toBe(false)
    await client.del(...(await records()))
    expect((await limiter.consume('ann')).allowed).toBe(true)
  })

  test('concurrent decisions on many keys each look at the queue of their own key', async () => {
    await someoneWaits('concurrency.2.3600000')
    const limiter = elsewhere()
    const names = ['ann', 'bob', 'cem', 'ann', 'dan', 'eve']
    const verdicts = await Promise.all(names.map((name) => limiter.consume(name)))
    expect(verdicts.map(({ allowed }) => allowed)).toEqual([false, true, true, false, true, true])
  })

  test.each([
    ['a class before its own', { headStartMs: 1, cameMsAgo: 3_600_000 }, false],
    ['a later class that came later', { headStartMs: 1, cameMsAgo: -3_600_000 }, true],
    ['its own class that came earlier', { headStartMs: 0, cameMsAgo: 3_600_000 }, true],
  ])('a waiter yields only to classes before its own: with one elsewhere of %s', async (_what, waiter, isAdmitted) => {
    await someoneWaits('concurrency.2.3600000', waiter)
    const limiter = elsewhere()
    const { wait, ended } = waitFor(limiter, 1)
    if (isAdmitted) expect(await ended).toBe(true)
    else {
      await untilReported(2)
      wait.abort()
      expect(await ended).toBe('left')
    }
    await untilReported(1)
    expect((await limiter.peek('ann')).remaining).toBe(isAdmitted ? 1 : 2)
  })
})

test('a process renews the report of its waiters every half second, even after Redis loses it', async () => {
  const limiter = elsewhere()
  await limiter.consume('ann')
  const { wait, ended } = waitFor(limiter, 2)
  for (let renewals = 0, before = 0; renewals < 3; ) {
    await untilReported()
    const leftMs = await client.pttl(key)
    // -2 means that it has just lapsed, as after a pause of this process.
    expect(leftMs).not.toBe(-1)
    expect(leftMs).toBeLessThanOrEqual(500)
    if (leftMs > before) renewals++
    before = leftMs
    await sleep(20)
  }
  await client.del(key)
  await untilReported()
  wait.abort()
  expect(await ended).toBe('left')
  await untilNoneReported()
})

test('waiters are not among the counts of an identity, and forgetting it erases them', async () => {
  await someoneWaits('concurrency.2.3600000')
  elsewhere()
  const [store] = stores as [RedisStore]
  expect((await store.kept({ key: 'ann' })).counts).toEqual([])
  await store.forget({ key: 'ann' })
  expect(await records()).toEqual([])
})

test('the waiters of two limiters are both reported', async () => {
  const [one, two] = [elsewhere(), elsewhere()]
  await one.consume('ann')
  waitFor(one, 2)
  const { wait } = waitFor(two, 2)
  await untilReported(2)
  wait.abort()
  await untilReported(1)
})

test.each([
  ['text', () => client.set(key, 'nothing of ours')],
  ['a list', () => client.rpush(key, 'nothing of ours')],
])('a foreign value under the key of waiters counts as none, and is replaced: %s', async (_what, write) => {
  await write()
  const limiter = elsewhere()
  expect((await limiter.consume('ann')).allowed).toBe(true)
  waitFor(limiter, 2)
  await until(
    'the foreign value is replaced',
    async () => (await client.type(key)) === 'string' && (await client.strlen(key)) === 34,
  )
})
const key = 'sluice:v1:{key=ann}:turns:concurrency.2.3600000:waiting'

test('a policy with shared turns writes nothing about waiters while there are none', async () => {
  const limiter = elsewhere({
    limits: [slidingLog({ limit: 50, window: '1h' }), tokenBucket({ capacity: 40, refill: 1, every: '1h' })],
  })
  const verdicts = await Promise.all(Array.from({ length: 60 }, () => limiter.consume('ann')))
  expect(verdicts.filter(({ allowed }) => allowed)).toHaveLength(40)
  expect(await records()).toEqual([])
})

test('the marker of waiters lives as long as the longest ttl, whichever process reports last', async () => {
  const marker = 'sluice:v1:blocked:waiting'
  const wait = async (ttl: '1m' | '1s') => {
    const limiter = elsewhere({ sharedTurns: { ttl }, name: `turns-${ttl}` })
    await limiter.consume('ann')
    return waitFor(limiter, 2)
  }
  await wait('1s')
  await until('a waiter is reported for a second', async () => (await client.pttl(marker)) > 0)
  expect(await client.pttl(marker)).toBeLessThanOrEqual(1000)
  await wait('1m')
  await until('a waiter is reported for a minute', async () => (await client.pttl(marker)) > 1000)
  const { wait: third, ended } = await wait('1s')
  await until('all waiters are reported', async () => (await records()).length === 2)
  third.abort()
  await ended
  expect(await client.pttl(marker)).toBeGreaterThan(30_000)
})

test('a waiter that is not served within maxWait leaves, and holds up no other', async () => {
  await someoneWaits('concurrency.2.3600000', { headStartMs: 1, cameMsAgo: 3_600_000 })
  const before = performance.now()
  await expect(elsewhere().acquire('ann', { maxWait: '200ms' })).rejects.toMatchObject({
    code: 'WAIT_EXCEEDED',
    refusal: { reason: 'limited', remaining: 2 },
  })
  expect(performance.now() - before).toBeGreaterThan(190)
  await untilReported(1)
})

test('a waiter that is blocked leaves, and holds up no other', async () => {
  const limits = [
    concurrency<string>({ limit: 1, ttl: '1h', key: everyone() }),
    slidingLog<string>({ limit: 50, window: '1h' }),
  ]
  const sharedTurns = { ttl: '1m' as const }
  const [one, other] = [elsewhere({ limits, sharedTurns }), elsewhere({ limits, sharedTurns })]
  const held = await other.consume('cem')
  const ann = one.acquire('ann', { priority: 1, maxWait: '1m' })
  const bob = other.acquire('bob')
  await untilReported(2)
  await other.block({ key: 'ann' }, { for: '1h' })
  await expect(ann).rejects.toMatchObject({ code: 'WAIT_EXCEEDED', refusal: { reason: 'blocked' } })
  await other.release(held)
  expect((await bob).allowed).toBe(true)
  await untilNoneReported()
})

describe('waiters while Redis is away', () => {
  test.each([
    ['local', 'admitted'],
    ['allow', 'admitted'],
    ['deny', 'WAIT_EXCEEDED'],
  ] as const)('waiters continue by the fallback while Redis is away, with unavailable: %s', async (decide, outcome) => {
    const server = await startRedis()
    const own = singleClients['ioredis 6'](server.port)
    try {
      await own.ready
      const limiters = [0, 1].map(() => {
        const store = redisStore(own.client, { timeout: 500 })
        stores.push(store)
        const limits = [tokenBucket({ capacity: 1, refill: 1, every: '300ms' })]
        return createLimiter({
          name: 'turns',
          store,
          sharedTurns: true,
          unavailable: { decide },
          limits,
        })
      })
      await limiters[0]?.consume('ann')
      const waiting = [0, 1, 2, 0, 1, 2].map((priority, i) =>
        (limiters[i % 2] as Limiter)
          .acquire('ann', { priority, ...(outcome !== 'admitted' && { maxWait: '2s' }) })
          .then(
            () => 'admitted',
            ({ code }) => code,
          ),
      )
      await until(
        'the waiters are reported',
        async () => Number(await own.client.exists('sluice:v1:blocked:waiting')) === 1,
      )
      await server.stop()
      const outcomes = await Promise.all(waiting)
      // One may have been admitted before the outage.
      expect(outcomes.filter((one) => one !== outcome).length).toBeLessThanOrEqual(1)
    } finally {
      own.close()
      await server.stop()
    }
  })
})

test('sharedTurns is rejected beside a lease and with invalid options', () => {
  const lease = { size: 2, ttl: '1s' as const }
  expect(() => elsewhere({ limits: [tokenBucket({ capacity: 10, refill: 1, every: '1s', lease })] })).toThrow(
    'policy "turns": sharedTurns: expected none beside lease',
  )
  expect(() => elsewhere({ sharedTurns: 1 as never })).toThrow(
    "sharedTurns: expected true, false or options such as { ttl: '500ms' }, got 1",
  )
  expect(() => elsewhere({ sharedTurns: { ttl: '99ms' } })).toThrow(
    "sharedTurns: ttl: expected a duration from '100ms' to '1m'",
  )
  expect(() => elsewhere({ sharedTurns: { until: 1 } as never })).toThrow('until')
  expect(() => elsewhere({ limits: [leakyBucket({ leak: 1, every: '1s', queue: true })] })).not.toThrow()
})
