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
import { BANS } from '@sluice/core/store'
import { beforeEach, describe, expect, test } from 'vitest'
import { Clock } from '../contract/store-under-test.js'
import { redisForTests } from '../support/redis-for-tests.js'
import { until as eventually } from '../support/until.js'

const { server, client } = await redisForTests()
let clock: Clock
/** Two stores share no more than two processes do. */
let here: Store
let there: Store
/** A store that reads the clock of Redis. */
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

/** The number of scripts that Redis executes during `work`. */
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

describe('a flood of refused requests', () => {
  test('a flood of refused requests costs Redis about one script execution a second', async () => {
    const limiter = limiterOn(timed, [perSecond(50), perMinute(60), perDay(65)])
    await spend(limiter, 50)
    await server.call('CONFIG', 'RESETSTAT')
    const startedAt = performance.now()
    const ran = await runsOf(async () => {
      for (let i = 0; i < 30_000; i++) expect((await limiter.consume('k', { cost: 20 })).allowed).toBe(false)
    })
    const seconds = (performance.now() - startedAt) / 1000
    // One of them may be a script that the store runs by itself, as when it looks for new blocks.
    expect(ran).toBeLessThanOrEqual(3 + seconds * 1.1)
  })

  test('a refusal that repeats costs one script execution for each second that it holds', async () => {
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

  test('repeated requests by a blocked key cost nothing, and each reports the remaining time', async () => {
    const limiter = limiterOn(here, [perMinute(100)])
    await there[BANS]?.block('api', 'key=k', 5000, 'scraping')
    await limiter.consume('k')
    clock.now += 700
    const refused = async () => {
      const { reason, block } = await limiter.consume('k')
      expect({ reason, block }).toEqual({ reason: 'blocked', block: { reason: 'scraping', remainingMs: 4300 } })
    }
    // Each store reads this block once, in its next look for new blocks.
    await eventually('a refusal costs nothing', async () => (await runsOf(refused)) === 0)
  })

  test('the refusals of a client that was just banned cost nothing, also once its ban is in the index', async () => {
    const ban = { after: 1, within: '1h', for: ['1h'] } as const
    const limiter = createLimiter({ name: 'api', store: here, limit: 1, window: '1h', ban })
    const sources: string[] = []
    limiter.on('refused', ({ source }) => void sources.push(source))
    for (let n = 0; n < 2; n++) await limiter.consume('k')
    await eventually(
      'the ban is in the index',
      async () => (await here[BANS]?.blocks?.get({ key: 'k' }, { policy: 'api' })) !== undefined,
    )
    for (let n = 0; n < 2; n++) await limiter.consume('k')
    expect(sources).toEqual(['store', 'deny-cache', 'deny-cache'])
  })

  test('repeated requests with an impossible cost cost one script execution', async () => {
    const limiter = limiterOn(here, [perMinute(10)])
    const ran = await runsOf(async () => {
      for (let i = 0; i < 5; i++) expect((await limiter.consume('k', { cost: 11 })).reason).toBe('impossible')
    })
    expect(ran).toBe(1)
  })

  test('refusals that repeat cost nothing while other keys of a shared limit are admitted', async () => {
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

  test('every refused request reaches Redis where the deny cache is off', async () => {
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

test('redisStore rejects a denyCache other than true or false', () => {
  expect(() => redisStore(client, { denyCache: 'no' as never })).toThrow(
    'redisStore: denyCache: expected true or false, got "no"',
  )
})

describe('a refusal from the deny cache', () => {
  test('a cached refusal holds until the instant that it names, and a request is admitted exactly at it', async () => {
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

  test('cached refusals equal those of the memory store for every cost and instant', async () => {
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

  test('a client that waits exactly as long as a cached refusal says is admitted, by the clock of Redis', async () => {
    const limiter = limiterOn(timed, [gcra({ limit: 10, window: 1000, burst: 1 })])
    for (let round = 0; round < 10; round++) {
      await until(performance.now() + 101)
      expect((await limiter.consume('k')).allowed).toBe(true)
      await limiter.consume('k')
      await until(performance.now() + round * 5)
      const again = await limiter.consume('k')
      // On a busy machine the wait may already be over.
      if (again.allowed) continue
      await until(performance.now() + (again.retryAfterMs as number))
      expect((await limiter.consume('k')).allowed, `round ${round}`).toBe(true)
    }
  })

  test('a cached refusal of a large cost does not refuse a small one', async () => {
    const limiter = limiterOn(here, [perMinute(10)])
    await spend(limiter, 8)
    for (let i = 0; i < 3; i++) expect((await limiter.consume('k', { cost: 5 })).remaining).toBe(2)
    expect(await limiter.consume('k', { cost: 2 })).toMatchObject({ allowed: true, remaining: 0 })
    expect((await limiter.consume('k', { cost: 5 })).remaining).toBe(0)
  })

  test('a cached refusal because of a reserve does not refuse a higher priority', async () => {
    const limiter = limiterOn(here, [gcra({ limit: 4, window: '1m', reserve: 2 })])
    await spend(limiter, 2)
    expect(await limiter.consume('k')).toMatchObject(refused)
    expect(await limiter.consume('k')).toMatchObject(refused)
    expect((await limiter.consume('k', { priority: 1 })).allowed).toBe(true)
  })

  test('a cached refusal applies to its keys alone, even when others differ only in a line break', async () => {
    const limits = [
      perMinute(1, { key: keyed('before', (key: string) => key.split('/')[0]) }),
      perMinute(1, { key: keyed('after', (key: string) => key.split('/')[1]) }),
    ]
    const limiter = limiterOn(here, limits)
    await spend(limiter, 1, 'a\nb/c')
    expect((await limiter.consume('a\nb/c')).allowed).toBe(false)
    expect((await limiter.consume('a/b\nc')).allowed).toBe(true)
  })

  test('a request for a permit is never refused from the deny cache after another process frees one', async () => {
    const limits = [concurrency({ limit: 1, ttl: '1m' }), perMinute(100)]
    const held = await spend(limiterOn(there, limits), 1)
    const limiter = limiterOn(here, limits)
    expect(await limiter.consume('k')).toMatchObject(refused)
    await limiterOn(there, limits).release(held)
    expect((await limiter.consume('k')).allowed).toBe(true)
  })

  test('each refusal is charged where refusals are charged, whatever the deny cache has', async () => {
    const options = { name: 'api', limits: [slidingLog({ limit: 2, window: '10s' })], onDeny: 'charge' } as const
    const limiter = createLimiter({ ...options, store: here })
    const oracle = createLimiter({ ...options, store: memoryStore({ clock: clock.read }) })
    for (let i = 0; i < 20; i++) {
      expect(JSON.stringify(await limiter.consume('k'))).toBe(JSON.stringify(await oracle.consume('k')))
      clock.now += 300
    }
  })

  test('a clock that steps back does not prolong a cached refusal', async () => {
    const limiter = limiterOn(here, [perMinute(1)])
    await spend(limiter, 1)
    await limiter.consume('k')
    await limiterOn(there, [perMinute(1)]).reset('k')
    clock.now -= 5000
    expect((await limiter.consume('k')).allowed).toBe(true)
  })

  test('a cached refusal does not delay a request that waits for a turn', async () => {
    const limiter = limiterOn(here, [perMinute(1)])
    await spend(limiter, 1)
    expect(await limiter.consume('k')).toMatchObject(refused)
    await limiterOn(there, [perMinute(1)]).reset('k')
    expect((await limiter.acquire('k', { maxWait: 1 })).allowed).toBe(true)
  })
})

describe('new room after a cached refusal', () => {
  const limits = [slidingLog<string>({ limit: 3, window: '1h' })]

  for (const [how, makeRoom] of Object.entries({
    reset: (limiter: Limiter) => limiter.reset('k'),
    refund: (limiter: Limiter, verdict: Verdict) => limiter.refund('k', verdict),
    settle: (_: Limiter, verdict: Verdict) => verdict.settle(1),
  })) {
    test(`room from a ${how} in this process counts at once, also for another limiter with the same options`, async () => {
      const limiter = limiterOn(here, limits)
      const alike = limiterOn(here, limits)
      const verdict = await spend(limiter, 3)
      for (const one of [limiter, alike]) expect(await one.consume('k')).toMatchObject(refused)
      await makeRoom(limiter, verdict)
      expect((await alike.consume('k')).allowed).toBe(true)
      expect((await limiter.consume('k')).allowed).toBe(true)
    })

    test(`room from a ${how} in this process counts although a refusal is still on its way`, async () => {
      const limiter = limiterOn(here, limits)
      const verdict = await spend(limiter, 3)
      const late = limiter.consume('k')
      await new Promise(setImmediate)
      const made = makeRoom(limiter, verdict)
      expect(await late).toMatchObject(refused)
      expect((await limiter.consume('k')).allowed).toBe(true)
      await made
    })

    test(`room from a ${how} in this process counts although the same batch has an earlier refusal`, async () => {
      const limiter = limiterOn(here, limits)
      const alike = limiterOn(here, limits)
      const verdict = await spend(limiter, 3)
      // The decisions of one limiter are sent together, so those of the other one come first.
      const requests = [alike.consume('other'), limiter.consume('k')]
      const made = makeRoom(limiter, verdict)
      await Promise.all([...requests, made])
      for (const one of [limiter, alike]) expect((await one.consume('k')).allowed).toBe(true)
    })

    test(`room from a ${how} in another process counts within a second`, async () => {
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

  test('a later admission prolongs the wait that a cached refusal reports', async () => {
    const limiter = limiterOn(here, [gcra({ limit: 10, window: 1000 })])
    await spend(limiter, 6)
    expect((await limiter.consume('k', { cost: 5 })).retryAfterMs).toBe(100)
    await spend(limiter, 3)
    expect((await limiter.consume('k', { cost: 5 })).retryAfterMs).toBe(400)
  })

  test('a refund on one of several keys frees that key and the shared limit, and no other key', async () => {
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

  test('a reset in a tier ends the cached refusals of that tier', async () => {
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

describe('a cached block', () => {
  test('a block and its end count at once in this process, even for a key with a cached refusal', async () => {
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

  test('a cached block ends at the exact millisecond', async () => {
    const limiter = limiterOn(here, [perMinute(10)])
    await limiter.block('k', { for: 300 })
    for (let ms = 0; ms < 300; ms += 50) {
      expect((await limiter.consume('k')).block?.remainingMs).toBe(300 - ms)
      clock.now += 50
    }
    expect((await limiter.consume('k')).allowed).toBe(true)
  })

  test('a block that another process ends, ends here within a second', async () => {
    const limiter = limiterOn(here, [perMinute(10)])
    await limiter.block('k', { for: '1h' })
    expect((await limiter.consume('k')).reason).toBe('blocked')
    await limiterOn(there, [perMinute(10)]).unblock('k')
    clock.now += 1000
    expect((await limiter.consume('k')).allowed).toBe(true)
  })
})

test('the deny cache holds at most 10,000 refusals, and drops them in time', async () => {
  let requests = 0
  const watched: Store = {
    decide(ask) {
      const result = here.decide(ask)
      if (result instanceof Promise) requests++
      return result
    },
    reset: () => {},
    close: async () => {},
  }
  const limiter = limiterOn(watched, [slidingLog({ limit: 0, window: '1m' })])
  const askAll = () => Promise.all(Array.from({ length: 12_000 }, (_, i) => limiter.consume(`k${i}`)))
  await askAll()
  expect(requests).toBe(12_000)
  // None of them ends by this clock, which stands still.
  await askAll()
  expect(requests).toBeGreaterThanOrEqual(14_000)
  await expect
    .poll(async () => {
      requests = 0
      await limiter.consume('k11999')
      return requests
    })
    .toBe(1)
})

/** Waits by the performance clock: a timer may be a little early. */
async function until(instant: number): Promise<void> {
  for (let left = instant - performance.now(); left > 0; left = instant - performance.now()) await sleep(left)
}
