import { setTimeout as sleep } from 'node:timers/promises'
import {
  concurrency,
  createLimiter,
  everyone,
  gcra,
  keyed,
  type Limit,
  type Limiter,
  memoryStore,
  perDay,
  perMinute,
  perSecond,
  redisStore,
  type Store,
  slidingLog,
  type Verdict,
} from '@sluice/core'
import { beforeEach, describe, expect, test } from 'vitest'
import { Clock } from '../contract/store-under-test.js'
import { redisForTests } from '../support/redis-for-tests.js'
import { until as eventually } from '../support/until.js'

const { server, client } = await redisForTests()
let clock: Clock
/** Two stores know no more of each other than two processes do. */
let here: Store
let there: Store
/** By Redis's own clock. */
let timed: Store
beforeEach(async () => {
  await server.flush()
  clock = new Clock()
  const options = { clock: clock.read, timeout: 5000 }
  here = redisStore(client, options)
  there = redisStore(client, options)
  timed = redisStore(client, { timeout: 5000 })
  return async () => {
    for (const store of [here, there, timed]) await store.close()
  }
})

/** How many scripts Redis runs meanwhile. */
async function runsOf(work: () => Promise<unknown>): Promise<number> {
  const before = await runs()
  await work()
  return (await runs()) - before
}

async function runs(): Promise<number> {
  const { cmdstat_evalsha = '', cmdstat_eval = '' } = await server.fields('INFO', 'commandstats')
  const calls = (stat: string) =>
    Number(/calls=(\d+)/.exec(stat)?.[1] ?? 0) - Number(/failed_calls=(\d+)/.exec(stat)?.[1] ?? 0)
  return calls(cmdstat_evalsha) + calls(cmdstat_eval)
}

const limiterOn = (store: Store, limits: readonly Limit<string>[]): Limiter =>
  createLimiter({ name: 'api', store, limits })

async function spend(limiter: Limiter, units: number, key = 'k'): Promise<Verdict> {
  const verdict = await limiter.consume(key, { cost: units })
  expect(verdict.allowed).toBe(true)
  return verdict
}

const refused = { allowed: false, reason: 'limited' }

describe('a flood of requests that are refused', () => {
  test('costs Redis about one script run a second, whatever it sends', async () => {
    const limiter = limiterOn(timed, [perSecond(50), perMinute(60), perDay(65)])
    await spend(limiter, 50)
    await server.call('CONFIG', 'RESETSTAT')
    const startedAt = performance.now()
    const ran = await runsOf(async () => {
      for (let i = 0; i < 30_000; i++) expect((await limiter.consume('k', { cost: 20 })).allowed).toBe(false)
    })
    const seconds = (performance.now() - startedAt) / 1000
    expect(ran).toBeLessThanOrEqual(2 + seconds * 1.1)
  })

  test('costs nothing while the refusal holds, and one run for each second of it', async () => {
    const limiter = limiterOn(here, [slidingLog({ limit: 3, window: '10s' })])
    await spend(limiter, 3)
    for (const seconds of [0, 1, 2]) {
      const ran = await runsOf(async () => {
        for (let ms = 0; ms < 1000; ms += 20) {
          clock.now = clock.now + 20
          expect(await limiter.consume('k')).toMatchObject({
            ...refused,
            retryAfterMs: 10_000 - 1000 * seconds - ms - 20,
          })
        }
      })
      expect(ran).toBe(1)
    }
  })

  test('by a key that is blocked costs nothing either, and hears how long it still is', async () => {
    const limiter = limiterOn(here, [perMinute(100)])
    await there.block('api', 'key=k', 5000, 'scraping')
    await limiter.consume('k')
    clock.now += 700
    const refused = async () => {
      const { reason, block } = await limiter.consume('k')
      expect({ reason, block }).toEqual({ reason: 'blocked', block: { reason: 'scraping', remainingMs: 4300 } })
    }
    // Once for each store, its look for new blocks reads this one, whenever that is due.
    await eventually('a refusal costs nothing', async () => (await runsOf(refused)) === 0)
  })

  test('by costs that no limit ever admits costs nothing', async () => {
    const limiter = limiterOn(here, [perMinute(10)])
    const ran = await runsOf(async () => {
      for (let i = 0; i < 5; i++) expect((await limiter.consume('k', { cost: 11 })).reason).toBe('impossible')
    })
    expect(ran).toBe(1)
  })

  test('costs nothing while the same key is admitted by another limiter, or others are to a limit that all share', async () => {
    const login = limiterOn(here, [slidingLog({ limit: 1, window: '1h' })])
    const api = limiterOn(here, [perMinute(100), gcra({ limit: 1000, window: '1s', key: everyone() })])
    await spend(login, 1)
    await login.consume('k')
    await spend(api, 100)
    await api.consume('k')
    const ran = await runsOf(async () => {
      for (let i = 0; i < 10; i++) {
        clock.now += 20
        expect((await api.consume(`other-${i}`)).allowed).toBe(true)
        expect((await api.consume('k')).allowed).toBe(false)
        expect((await login.consume('k')).allowed).toBe(false)
      }
    })
    expect(ran).toBe(10)
  })

  test('asks every time where the cache is off', async () => {
    const store = redisStore(client, { clock: clock.read, timeout: 5000, denyCache: false })
    const limiter = limiterOn(store, [perMinute(1)])
    await spend(limiter, 1)
    expect(
      await runsOf(async () => {
        for (let i = 0; i < 5; i++) await limiter.consume('k')
      }),
    ).toBe(5)
    await store.close()
  })
})

test('denyCache is true or false', () => {
  expect(() => redisStore(client, { denyCache: 'no' as never })).toThrow(
    'redisStore: denyCache: expected true or false, got "no"',
  )
})

describe('a refusal that is told again', () => {
  test('is refused at every ms before the time it names and admitted exactly at it', async () => {
    const limiter = limiterOn(here, [gcra({ limit: 3, window: 2000, burst: 2 })])
    const oracle = limiterOn(memoryStore({ clock: clock.read }), [gcra({ limit: 3, window: 2000, burst: 2 })])
    for (const one of [limiter, oracle]) await spend(one, 2)
    for (let ms = 0; ms <= 667; ms++) {
      const verdict = await limiter.consume('k')
      expect(JSON.stringify(verdict), `${ms} ms on`).toBe(JSON.stringify(await oracle.consume('k')))
      expect(verdict.allowed).toBe(ms === 667)
      clock.now++
    }
  })

  test('says for every cost, at every ms, what memory says', async () => {
    const limits = [perSecond(4), gcra({ limit: 10, window: 3000 }), perMinute(20)]
    const limiter = limiterOn(here, limits)
    const oracle = limiterOn(memoryStore({ clock: clock.read }), limits)
    for (let ms = 0; ms < 3000; ms += 7) {
      for (const cost of [4, 3, 5, 1]) {
        const verdict = await limiter.consume('k', { cost })
        expect(JSON.stringify(verdict), `cost ${cost}, ${ms} ms on`).toBe(
          JSON.stringify(await oracle.consume('k', { cost })),
        )
      }
      clock.now += 7
    }
  })

  test('lets a client through that waits exactly so long, by Redis’s own clock', async () => {
    const limiter = limiterOn(timed, [gcra({ limit: 10, window: 1000, burst: 1 })])
    for (let round = 0; round < 10; round++) {
      await until(performance.now() + 101)
      expect((await limiter.consume('k')).allowed).toBe(true)
      await limiter.consume('k')
      await until(performance.now() + round * 5)
      const again = await limiter.consume('k')
      // On a machine that was busy elsewhere.
      if (again.allowed) continue
      await until(performance.now() + (again.retryAfterMs as number))
      expect((await limiter.consume('k')).allowed, `round ${round}`).toBe(true)
    }
  })

  test('of a large cost does not refuse a small one', async () => {
    const limiter = limiterOn(here, [perMinute(10)])
    await spend(limiter, 8)
    for (let i = 0; i < 3; i++) expect((await limiter.consume('k', { cost: 5 })).remaining).toBe(2)
    expect(await limiter.consume('k', { cost: 2 })).toMatchObject({ allowed: true, remaining: 0 })
    expect((await limiter.consume('k', { cost: 5 })).remaining).toBe(0)
  })

  test('of what is kept for others does not refuse a higher priority', async () => {
    const limiter = limiterOn(here, [gcra({ limit: 4, window: '1m', reserve: 2 })])
    await spend(limiter, 2)
    expect(await limiter.consume('k')).toMatchObject(refused)
    expect(await limiter.consume('k')).toMatchObject(refused)
    expect((await limiter.consume('k', { priority: 1 })).allowed).toBe(true)
  })

  test('is another one for another key, also where keys differ in a line break only', async () => {
    const limits = [
      perMinute(1, { key: keyed('before', (key: string) => key.split('/')[0]) }),
      perMinute(1, { key: keyed('after', (key: string) => key.split('/')[1]) }),
    ]
    const limiter = limiterOn(here, limits)
    await spend(limiter, 1, 'a\nb/c')
    expect((await limiter.consume('a\nb/c')).allowed).toBe(false)
    expect((await limiter.consume('a/b\nc')).allowed).toBe(true)
  })

  test('never says that a permit is missing when it was freed elsewhere', async () => {
    const limits = [concurrency({ limit: 1, ttl: '1m' }), perMinute(100)]
    const held = await spend(limiterOn(there, limits), 1)
    const limiter = limiterOn(here, limits)
    expect(await limiter.consume('k')).toMatchObject(refused)
    await limiterOn(there, limits).release(held)
    expect((await limiter.consume('k')).allowed).toBe(true)
  })

  test('is charged each time where refusals are charged', async () => {
    const options = { name: 'api', limits: [slidingLog({ limit: 2, window: '10s' })], onDeny: 'charge' } as const
    const limiter = createLimiter({ ...options, store: here })
    const oracle = createLimiter({ ...options, store: memoryStore({ clock: clock.read }) })
    for (let i = 0; i < 20; i++) {
      expect(JSON.stringify(await limiter.consume('k'))).toBe(JSON.stringify(await oracle.consume('k')))
      clock.now += 300
    }
  })

  test('does not last longer by a clock that steps back', async () => {
    const limiter = limiterOn(here, [perMinute(1)])
    await spend(limiter, 1)
    await limiter.consume('k')
    await limiterOn(there, [perMinute(1)]).reset('k')
    clock.now -= 5000
    expect((await limiter.consume('k')).allowed).toBe(true)
  })

  test('does not delay a request that waits for a turn', async () => {
    const limiter = limiterOn(here, [perMinute(1)])
    await spend(limiter, 1)
    expect(await limiter.consume('k')).toMatchObject(refused)
    await limiterOn(there, [perMinute(1)]).reset('k')
    expect((await limiter.acquire('k', { maxWait: 1 })).allowed).toBe(true)
  })
})

describe('room that is made', () => {
  const limits = [slidingLog<string>({ limit: 3, window: '1h' })]

  for (const [how, makeRoom] of Object.entries({
    reset: (limiter: Limiter) => limiter.reset('k'),
    refund: (limiter: Limiter, verdict: Verdict) => limiter.refund('k', verdict),
    settle: (_: Limiter, verdict: Verdict) => verdict.settle(1),
  })) {
    test(`here by ${how} counts at once, for a limiter that is made alike as well`, async () => {
      const limiter = limiterOn(here, limits)
      const alike = limiterOn(here, limits)
      const verdict = await spend(limiter, 3)
      for (const one of [limiter, alike]) expect(await one.consume('k')).toMatchObject(refused)
      await makeRoom(limiter, verdict)
      expect((await alike.consume('k')).allowed).toBe(true)
      expect((await limiter.consume('k')).allowed).toBe(true)
    })

    test(`here by ${how} counts although a refusal was still on its way`, async () => {
      const limiter = limiterOn(here, limits)
      const verdict = await spend(limiter, 3)
      const late = limiter.consume('k')
      await new Promise(setImmediate)
      const made = makeRoom(limiter, verdict)
      expect(await late).toMatchObject(refused)
      expect((await limiter.consume('k')).allowed).toBe(true)
      await made
    })

    test(`here by ${how} counts although a refusal was decided before it in the same batch`, async () => {
      const limiter = limiterOn(here, limits)
      const alike = limiterOn(here, limits)
      const verdict = await spend(limiter, 3)
      // The decisions of one limiter go together, so those of the other one are first.
      const asked = [alike.consume('other'), limiter.consume('k')]
      const made = makeRoom(limiter, verdict)
      await Promise.all([...asked, made])
      for (const one of [limiter, alike]) expect((await one.consume('k')).allowed).toBe(true)
    })

    test(`elsewhere by ${how} counts within a second`, async () => {
      const limiter = limiterOn(here, limits)
      const other = limiterOn(there, limits)
      const verdict = await spend(other, 3)
      expect(await limiter.consume('k')).toMatchObject(refused)
      await makeRoom(other, verdict)
      clock.now += 999
      await limiter.consume('k')
      clock.now++
      expect((await limiter.consume('k')).allowed).toBe(true)
    })
  }

  test('by an admission that takes the last of it is no room: the wait that is told grows with it', async () => {
    const limiter = limiterOn(here, [gcra({ limit: 10, window: 1000 })])
    await spend(limiter, 6)
    expect((await limiter.consume('k', { cost: 5 })).retryAfterMs).toBe(100)
    await spend(limiter, 3)
    expect((await limiter.consume('k', { cost: 5 })).retryAfterMs).toBe(400)
  })

  test('on one of several keys counts, and is what is refused there', async () => {
    const shared = [perMinute(1), slidingLog<string>({ limit: 2, window: '1h', key: everyone() })]
    const limiter = limiterOn(here, shared)
    await spend(limiter, 1, 'a')
    const last = await spend(limiter, 1, 'b')
    for (const key of ['a', 'b', 'c']) expect(await limiter.consume(key)).toMatchObject(refused)
    await limiter.refund('b', last)
    expect((await limiter.consume('a')).limits.map(({ allowed }) => allowed)).toEqual([false, true])
    expect((await limiter.consume('c')).allowed).toBe(true)
    expect((await limiter.consume('b')).limits.map(({ allowed }) => allowed)).toEqual([true, false])
  })

  test('within a tier counts in it', async () => {
    const limiter = createLimiter<string>({
      name: 'tiers',
      store: here,
      tiers: { free: [perMinute(1)], paid: [perMinute(2)] },
      tier: (key) => (key.startsWith('p') ? 'paid' : 'free'),
    })
    await spend(limiter, 2, 'p')
    expect(await limiter.consume('p')).toMatchObject(refused)
    await limiter.reset('p')
    expect((await limiter.consume('p')).allowed).toBe(true)
  })
})

describe('a block', () => {
  test('here counts at once also for a key that is refused, and so does its end', async () => {
    const limiter = limiterOn(here, [perMinute(1), perMinute(5, { key: everyone() })])
    await spend(limiter, 1)
    expect((await limiter.consume('k')).reason).toBe('limited')
    await limiter.block({ key: 'k' }, { for: '1h' })
    for (let i = 0; i < 2; i++) expect((await limiter.consume('k')).reason).toBe('blocked')
    await limiter.reset('k')
    expect((await limiter.consume('k')).reason).toBe('blocked')
    await limiter.unblock({ key: 'k' })
    expect((await limiter.consume('k')).allowed).toBe(true)
  })

  test('ends to the ms', async () => {
    const limiter = limiterOn(here, [perMinute(10)])
    await limiter.block('k', { for: 300 })
    for (let ms = 0; ms < 300; ms += 50) {
      expect((await limiter.consume('k')).block?.remainingMs).toBe(300 - ms)
      clock.now += 50
    }
    expect((await limiter.consume('k')).allowed).toBe(true)
  })

  test('that ends elsewhere ends here within a second', async () => {
    const limiter = limiterOn(here, [perMinute(10)])
    await limiter.block('k', { for: '1h' })
    expect((await limiter.consume('k')).reason).toBe('blocked')
    await limiterOn(there, [perMinute(10)]).unblock('k')
    clock.now += 1000
    expect((await limiter.consume('k')).allowed).toBe(true)
  })
})

test('no more than 10,000 refusals are kept, and they go by themselves', async () => {
  let asked = 0
  const watched: Store = {
    decide(ask) {
      const answer = here.decide(ask)
      if (answer instanceof Promise) asked++
      return answer
    },
    reset: () => {},
    block: () => {},
    unblock: () => {},
    close: async () => {},
  }
  const limiter = limiterOn(watched, [slidingLog({ limit: 0, window: '1m' })])
  const askAll = () => Promise.all(Array.from({ length: 12_000 }, (_, i) => limiter.consume(`k${i}`)))
  await askAll()
  expect(asked).toBe(12_000)
  // By this clock, which stands still, none of them has ended.
  await askAll()
  expect(asked).toBeGreaterThanOrEqual(14_000)
  await expect
    .poll(async () => {
      asked = 0
      await limiter.consume('k11999')
      return asked
    })
    .toBe(1)
})

/** Waits by the performance clock: a timer may be a little early. */
async function until(instant: number): Promise<void> {
  for (let left = instant - performance.now(); left > 0; left = instant - performance.now()) await sleep(left)
}
