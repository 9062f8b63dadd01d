import { setTimeout as sleep } from 'node:timers/promises'
import { concurrency, type Limiter, redisStore, type Store, slidingLog } from '@sluice/core'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { createLimiter } from '../contract/create-limiter.js'
import { algorithms } from '../support/algorithms.js'
import { insist } from '../support/outages.js'
import { redisForTests } from '../support/redis-for-tests.js'
import { until } from '../support/until.js'

const HOUR_MS = 3_600_000
/** The longest time by which a key may outlive its need. */
const SPARE_MS = 60_000

const { server, client } = await redisForTests()
const store = insist(redisStore(client, { timeout: 5000 }))
/** The clock of `timed`; the keys expire by real time all the same. */
let now = 0
const timed = insist(redisStore(client, { timeout: 5000, clock: () => now }))
beforeEach(async () => {
  now = 500 * HOUR_MS
  await server.flush()
})
afterAll(async () => {
  await store.close()
  await timed.close()
})

/** Expects every key to expire, and not much later than needed. */
async function expectLifetimes(step: string, maxMs: number): Promise<void> {
  for (const [key, leftMs] of await server.lifetimes()) {
    expect(leftMs, `${step}: ${key} has to expire`).toBeGreaterThan(0)
    expect(leftMs, `${step}: ${key} lives longer than needed`).toBeLessThanOrEqual(maxMs)
  }
}

describe.each(Object.entries(algorithms))('%s', (_, limit) => {
  const on = (where: Store, units: number, windowMs: number, onDeny: 'none' | 'charge' = 'none'): Limiter =>
    createLimiter({ name: 'life', store: where, limits: [limit(units, windowMs)], onDeny })

  test('every key has an expiry after every kind of operation', async () => {
    // A separate prefix: other stores would restore its blocks after the flush of the next test.
    const own = insist(redisStore(client, { prefix: 'own:', timeout: 5000 }))
    const limiter = on(own, 5, HOUR_MS)
    const hammered = on(own, 5, HOUR_MS, 'charge')
    const first = await limiter.consume('k', { cost: 2 })
    const steps: Record<string, () => Promise<unknown>> = {
      consume: () => limiter.consume('k'),
      'a refused consume': () => limiter.consume('k', { cost: 4 }),
      'an impossible consume': () => limiter.consume('k', { cost: 6 }),
      peek: () => limiter.peek('k'),
      'peek at nothing': () => limiter.peek('nothing'),
      renew: () => limiter.renew(first),
      refund: () => limiter.refund('k', first),
      'a charged refusal': () => hammered.consume('k', { cost: 4 }),
      'another charged refusal': () => hammered.consume('k', { cost: 4 }),
      block: () => limiter.block('k', { for: '1h' }),
      'a blocked consume': () => limiter.consume('k'),
      'a shorter block': () => limiter.block('k', { for: '1m' }),
      unblock: () => limiter.unblock('k'),
      release: async () => limiter.release(await limiter.consume('k')),
      full: () => limiter.consume('full', { cost: 5 }),
      reset: () => limiter.reset('k'),
    }
    await expectLifetimes('consume', 2 * HOUR_MS + SPARE_MS)
    for (const [step, run] of Object.entries(steps)) {
      await run()
      await expectLifetimes(step, 2 * HOUR_MS + SPARE_MS)
    }
    expect([...(await server.lifetimes()).keys()].filter((key) => key.includes('nothing'))).toEqual([])
    await own.close()
  })

  const persistAll = async () => {
    for (const key of (await server.lifetimes()).keys()) await server.call('PERSIST', key)
  }

  test('a key without its expiry still counts, and has one again with the first charge after its window', async () => {
    const limiter = on(timed, 5, HOUR_MS)
    await limiter.consume('k')
    await persistAll()
    expect(await limiter.consume('k')).toMatchObject({ allowed: true, remaining: 3 })
    now += 2 * HOUR_MS
    expect(await limiter.consume('k')).toMatchObject({ allowed: true })
    await expectLifetimes('healed', 4 * HOUR_MS + SPARE_MS)
  })

  test('a key without its expiry has one again within a window of steady use', async () => {
    const limiter = on(timed, 5, HOUR_MS)
    await limiter.consume('k')
    await persistAll()
    for (let n = 0; n < 10; n++) {
      now += 7 * 60_000
      await limiter.consume('k')
    }
    await expectLifetimes('healed', 4 * HOUR_MS + SPARE_MS)
  })

  test('a key without its expiry admits again after its window, and has an expiry again', async () => {
    const limiter = on(store, 3, 200)
    await limiter.consume('k', { cost: 3 })
    await persistAll()
    await until('the key admits again', async () => (await limiter.consume('k')).allowed)
    await expectLifetimes('healed', 2 * 200 + SPARE_MS)
  })

  test('a key expires once nothing in it counts', async () => {
    const limiter = on(store, 3, 160)
    await limiter.consume('k', { cost: 2 })
    await limiter.consume('other')
    await until('all keys have expired', async () => (await server.lifetimes()).size === 0, {
      withinMs: 160 * 2 + SPARE_MS,
    })
  })

  test('a refund after its state has ended creates no key', async () => {
    const limiter = on(store, 3, 100)
    const verdict = await limiter.consume('k', { cost: 2 })
    await sleep(250)
    await server.flush()
    await limiter.refund('k', verdict)
    await limiter.release(verdict)
    await limiter.renew(verdict)
    expect(await server.call('DBSIZE')).toBe(0)
  })

  test('a refund leaves the charges of others and the life of their key, by the clock of Redis', async () => {
    const limiter = on(store, 6, HOUR_MS)
    await limiter.consume('k', { cost: 3 })
    const verdict = await limiter.consume('k', { cost: 2 })
    await sleep(20)
    await limiter.refund('k', verdict)
    const { remaining, resetAfterMs } = await limiter.peek('k')
    expect(remaining).toBe(3)
    for (const leftMs of (await server.lifetimes()).values()) expect(leftMs).toBeGreaterThan(resetAfterMs - SPARE_MS)
  })

  test('a refund after a reset creates no key and adds no room beyond the limit', async () => {
    const limiter = on(store, 3, HOUR_MS)
    const verdict = await limiter.consume('k', { cost: 2 })
    await limiter.reset('k')
    await limiter.refund('k', verdict)
    expect(await server.call('DBSIZE')).toBe(0)
    expect(await limiter.consume('k', { cost: 3 })).toMatchObject({ allowed: true, remaining: 0 })
    expect((await limiter.consume('k')).allowed).toBe(false)
  })

  test('a repeated refund counts once, even when both are concurrent', async () => {
    const limiter = on(store, 5, HOUR_MS)
    const verdict = await limiter.consume('k', { cost: 2 })
    await limiter.consume('k', { cost: 2 })
    expect(await Promise.all([limiter.refund('k', verdict), limiter.refund('k', verdict)])).toEqual([true, false])
    expect(await limiter.refund('k', verdict)).toBe(false)
    expect((await limiter.peek('k')).remaining).toBe(3)
  })

  test('a refund after its window leaves later charges', async () => {
    const limiter = on(timed, 4, HOUR_MS)
    const early = await limiter.consume('k', { cost: 2 })
    now += 2 * HOUR_MS
    await limiter.consume('k', { cost: 3 })
    await limiter.refund('k', early)
    expect((await limiter.peek('k')).remaining).toBe(1)
    await expectLifetimes('a late refund', 3 * HOUR_MS + SPARE_MS)
  })

  test.each([69, 70, 75])('a refund of the last charge that counts succeeds, %i minutes on', async (minutes) => {
    const MINUTE_MS = HOUR_MS / 60
    const limiter = on(timed, 7, HOUR_MS)
    await limiter.consume('k')
    now += 50 * MINUTE_MS
    await limiter.consume('k')
    now += 50 * MINUTE_MS
    const newest = await limiter.consume('k')
    // The charge before it lapsed after an hour; with a clock other than that of Redis, keys live an hour longer.
    now += minutes * MINUTE_MS
    expect(await limiter.refund('k', newest)).toBe(true)
    expect(await limiter.peek('k')).toMatchObject({ remaining: 7, resetAfterMs: 0 })
  })

  test('a refund while the clock is behind leaves no trace of its charge', async () => {
    const limiter = on(timed, 6, HOUR_MS)
    const verdict = await limiter.consume('k', { cost: 2 })
    now -= HOUR_MS / 4
    await limiter.refund('k', verdict)
    expect(await limiter.peek('k')).toMatchObject({ remaining: 6, resetAfterMs: 0 })
    expect(await server.call('DBSIZE')).toBe(0)
  })

  test('refunds of all charges leave a key as good as new', async () => {
    const limiter = on(timed, 6, HOUR_MS)
    const verdicts = []
    for (const cost of [1, 2, 3]) verdicts.push(await limiter.consume('k', { cost }))
    for (const verdict of verdicts.reverse()) await limiter.refund('k', verdict)
    expect(await limiter.peek('k')).toMatchObject({ remaining: 6, resetAfterMs: 0 })
    expect(await limiter.consume('k', { cost: 6 })).toMatchObject({ allowed: true, remaining: 0 })
  })
})

test('a renewed permit extends the life of its key', async () => {
  const limiter = createLimiter({ name: 'held', store, limits: [concurrency({ limit: 1, ttl: '1h' })] })
  const verdict = await limiter.consume('k')
  const [key] = [...(await server.lifetimes()).keys()] as [string]
  await server.call('PEXPIRE', key, 60_000)
  await limiter.renew(verdict)
  expect((await server.lifetimes()).get(key)).toBeGreaterThan(HOUR_MS - SPARE_MS)
})

test('a permit can be renewed up to the last millisecond of its ttl, and not after it', async () => {
  const limiter = createLimiter({ name: 'ends', store: timed, limits: [concurrency({ limit: 1, ttl: 1000 })] })
  const verdict = await limiter.consume('k')
  now += 999
  await limiter.renew(verdict)
  now += 999
  expect((await limiter.peek('k')).allowed).toBe(false)
  now += 1
  await limiter.renew(verdict)
  expect((await limiter.peek('k')).allowed).toBe(true)
})

test('a refused request leaves no key, also where charges are kept', async () => {
  const limiter = createLimiter({ name: 'kept', store, limit: 2, window: '1h', charges: { keep: '1h' } })
  for (let n = 0; n < 2; n++) expect((await limiter.consume('k')).id).toBeTypeOf('string')
  const before = [...(await server.lifetimes()).keys()].sort()
  for (let n = 0; n < 20; n++) expect((await limiter.consume('k')).allowed).toBe(false)
  expect([...(await server.lifetimes()).keys()].sort()).toEqual(before)
})

test('a log in long use frees the memory of lapsed entries', async () => {
  const limiter = createLimiter({ name: 'room', store: timed, limits: [slidingLog({ limit: 1000, window: 1000 })] })
  // All at once, so that all entries lapse at once.
  await limiter.consume('k', { cost: 1000 })
  now += 1000
  for (let i = 0; i < 300; i++) {
    now += 60
    expect((await limiter.consume('k')).allowed).toBe(true)
    const [key] = [...(await server.lifetimes()).keys()] as [string]
    // The header, and 4 bytes per entry: 17 entries count at a time, and room for four times as many is not worth freeing.
    expect(await server.call('STRLEN', key)).toBeLessThanOrEqual(68 + 4 * 4 * 17)
  }
})

test('a block expires, and a window beyond the range of timers neither overflows nor lapses', async () => {
  const limiter = createLimiter({ name: 'long', store, limit: 1, window: '400d' })
  await limiter.consume('k')
  expect(await limiter.consume('k')).toMatchObject({ allowed: false })
  await limiter.block('b', { for: '300d' })
  for (const leftMs of (await server.lifetimes()).values()) expect(leftMs).toBeGreaterThan(299 * 24 * HOUR_MS)
  await limiter.block('b', { for: 80 })
  expect((await limiter.consume('b')).reason).toBe('blocked')
  await until('the block has ended', async () => (await limiter.peek('b')).reason === undefined)
})
