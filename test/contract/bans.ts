import { concurrency, createLimiter, type Limiter, type ManagedStore } from '@sluice/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { byEffort } from '../support/effort.js'
import { BanOracle, type BanSpec } from '../support/oracle/bans.js'
import { randomFrom } from './policies.js'
import { Clock, freshKey, type StoreUnderTest } from './store-under-test.js'

const SEED = Number(process.env.SLUICE_SEED ?? Math.floor(Math.random() * 2 ** 32))
const STEPS = byEffort({ usual: 700, full: 40_000 })

/** Ladders of all forms; short, so that random walks reach their ends. */
const LADDERS: Record<
  string,
  { spec: BanSpec; growth: readonly number[] | { first: number; times: number; max: number } }
> = {
  'listed rungs': {
    spec: { after: 3, withinMs: 10_000, ladderMs: [5000, 20_000, 60_000], forgetAfterMs: 90_000 },
    growth: [5000, 20_000, 60_000],
  },
  'one rung, at once': {
    spec: { after: 1, withinMs: 1, ladderMs: [1], forgetAfterMs: 1 },
    growth: [1],
  },
  'rungs by a factor': {
    spec: { after: 5, withinMs: 30_000, ladderMs: [1000, 3000, 9000, 27_000, 50_000], forgetAfterMs: 60_000 },
    growth: { first: 1000, times: 3, max: 50_000 },
  },
}

/** Bans follow the ladder of the oracle at every step, with clocks that step. */
export function bansContract(under: StoreUnderTest): void {
  describe(`bans on ${under.name}`, () => {
    const clock = new Clock()
    let store: ManagedStore
    beforeAll(async () => {
      store = await under.make(clock.read)
    })
    afterAll(() => store.close())

    /** A limiter whose limit is exhausted for as long as a test lasts, so that it refuses each decision. */
    async function taken(name: string, { spec, growth }: (typeof LADDERS)[string], on = store): Promise<Limiter> {
      return createLimiter({
        name,
        store: on,
        limits: [concurrency({ limit: 1, ttl: '365d' })],
        ban: { after: spec.after, within: spec.withinMs, for: growth, forgetAfter: spec.forgetAfterMs },
      })
    }

    for (const stepsBack of [false, true]) {
      for (const [name, ladder] of Object.entries(LADDERS)) {
        test(`${name}: bans equal those of the oracle at every step, by a clock that ${stepsBack ? 'also steps back' : 'goes forward'}`, async () => {
          const random = randomFrom(SEED)
          let limiter = await taken(`${name.replaceAll(/\W+/g, '-')}-${stepsBack}`, ladder)
          const keys = [freshKey(), freshKey()]
          const oracles = new Map(keys.map((key) => [key, new BanOracle(ladder.spec)]))
          for (const key of keys) expect((await limiter.consume(key)).allowed).toBe(true)
          const start = clock.now
          const { withinMs, ladderMs, forgetAfterMs } = ladder.spec
          const strides = [1, withinMs / 9, withinMs, ladderMs[0] as number, ladderMs.at(-1) as number, forgetAfterMs]
          const steps = Math.ceil((STEPS * (under.effort ?? 1)) / (2 * Object.keys(LADDERS).length))
          for (let step = 0; step < steps; step++) {
            const stride = strides[random(strides.length)] as number
            if (random(3) === 0) clock.now += random(2) === 0 ? Math.floor(stride) : random(Math.ceil(stride) + 2)
            if (stepsBack && random(20) === 0) clock.now = Math.max(start, clock.now - random(Math.ceil(stride) + 2))
            const key = keys[random(2)] as string
            const oracle = oracles.get(key) as BanOracle
            const context = `seed ${SEED}, step ${step}, at ${clock.now}`
            const what = random(40)
            if (what === 0) {
              await limiter.unblock(key)
              oracle.unblock()
            } else if (what === 1) {
              // Another process, or this one after a restart.
              limiter = await taken(limiter.name, ladder)
            } else if (what < 6) {
              const weight = 1 + random(4)
              const held = oracle.holds(clock.now) !== undefined
              const expected = oracle.strike(clock.now, weight)
              const ban = await limiter.strike(key, { weight, reason: 'a "reason" \n of é' })
              expect(ban && { rung: ban.rung, strikes: ban.strikes, until: ban.until }, context).toEqual(expected)
              if (ban && !held) expect(ban.reason).toBe('a "reason" \n of é')
            } else {
              const isPeek = what < 10
              const verdict = await (isPeek ? limiter.peek(key) : limiter.consume(key))
              const ban = isPeek ? oracle.holds(clock.now) : oracle.strike(clock.now, 1)
              const { reason, retryAfterMs } = verdict
              expect(reason, context).toBe(ban ? 'banned' : 'limited')
              if (ban) {
                const { rung, strikes, until } = verdict.ban ?? {}
                expect({ rung, strikes, until }, context).toEqual(ban)
                expect(retryAfterMs, context).toBe(ban.until - clock.now)
              }
            }
          }
        })
      }
    }

    test('a block by hand is not reported as a ban, whatever its reason', async () => {
      const ban = { after: 1, within: '1m', for: ['1m'] } as const
      const limiter = createLimiter({ name: 'by-hand', store, limit: 2, window: '1h', ban })
      for (const reason of ['\0', '\x001 2 three', '\x00\x001 2 ', '1 2 three']) {
        const key = freshKey()
        await limiter.block(key, { for: '1h', reason })
        const verdict = await limiter.consume(key)
        expect([verdict.reason, verdict.block?.reason, verdict.ban]).toEqual(['blocked', reason, undefined])
        // Strikes do not count during the block, and do not shorten it.
        expect(await limiter.strike(key, { weight: 9 })).toBeUndefined()
        expect((await limiter.peek(key)).retryAfterMs).toBe(3_600_000)
      }
    })

    test('a store-wide ban holds in every policy that counts the kind, and ends in all of them', async () => {
      const ban = { after: 2, within: '1m', for: ['1m'], scope: 'store' } as const
      const [one, other] = ['one', 'other'].map((name) =>
        createLimiter({ name, store, limit: 1, window: '1h', ban }),
      ) as [Limiter, Limiter]
      const plain = createLimiter({ name: 'plain', store, limit: 100, window: '1h' })
      const key = freshKey()
      expect((await plain.consume(key)).allowed).toBe(true)
      const verdicts = [
        await one.consume(key),
        await one.consume(key),
        await other.consume(key),
        await other.consume(key),
      ]
      expect(verdicts.map(({ reason }) => reason)).toEqual([undefined, 'limited', undefined, 'banned'])
      expect((await one.consume(key)).ban).toEqual(verdicts[3]?.ban)
      expect((await plain.consume(key)).reason).toBe('banned')
      await one.unblock(key)
      expect((await plain.consume(key)).allowed).toBe(true)
      expect((await other.consume(key)).reason).toBe('limited')
    })

    test('the one that ends last of a block and a store-wide ban is reported', async () => {
      const ban = { after: 2, within: '1h', for: ['1m', '1h'], scope: 'store' } as const
      const [limiter, other] = [freshKey(), freshKey()].map((name) =>
        createLimiter({ name, store, limit: 5, window: '1h', ban }),
      ) as [Limiter, Limiter]
      const outcomeOf = async (key: string, by = limiter) => {
        const { reason, retryAfterMs } = await by.consume(key)
        return [reason, retryAfterMs]
      }

      // A block leaves the store-wide ban unchanged.
      const banned = freshKey()
      await limiter.strike(banned, { weight: 2 })
      await limiter.block(banned, { for: '1s' })
      expect(await outcomeOf(banned)).toEqual(['banned', 60_000])
      await limiter.block(banned, { for: '2m' })
      expect(await outcomeOf(banned)).toEqual(['blocked', 120_000])
      expect(await outcomeOf(banned, other)).toEqual(['banned', 60_000])
      clock.now += 60_000
      expect(await outcomeOf(banned)).toEqual(['blocked', 60_000])
      expect((await other.consume(banned)).allowed).toBe(true)

      // While either holds, strikes of its policy do not count.
      expect(await limiter.strike(banned, { weight: 2 })).toBeUndefined()
      clock.now += 60_000
      expect((await limiter.consume(banned)).allowed).toBe(true)
      expect(await limiter.strike(banned)).toBeUndefined()
      expect(await limiter.strike(banned)).toMatchObject({ rung: 2, strikes: 2 })
      expect(await outcomeOf(banned)).toEqual(['banned', 3_600_000])

      // The same holds for a store-wide block and a ban of one policy.
      const own = createLimiter({ name: freshKey(), store, limit: 5, window: '1h', ban: { ...ban, scope: 'policy' } })
      const key = freshKey()
      await store.blocks?.add({ key }, { for: '30s' })
      expect(await own.strike(key, { weight: 2 })).toBeUndefined()
      expect(await outcomeOf(key, own)).toEqual(['blocked', 30_000])
      clock.now += 30_000
      expect(await own.strike(key, { weight: 2 })).toMatchObject({ rung: 1 })
      await store.blocks?.add({ key }, { for: '30s' })
      expect(await outcomeOf(key, own)).toEqual(['banned', 60_000])

      // A block replaces a ban of its own scope, even when it ends sooner.
      await own.block(key, { for: '10s' })
      expect(await outcomeOf(key, own)).toEqual(['blocked', 30_000])
      await store.blocks?.remove({ key })
      expect(await outcomeOf(key, own)).toEqual(['blocked', 10_000])
    })

    test('refusals of concurrent decisions count as strikes one after the other', async () => {
      const limiter = createLimiter({
        name: 'at-once',
        store,
        limit: 2,
        window: '1h',
        ban: { after: 3, within: '1m', for: ['1m', '1h'] },
      })
      const key = freshKey()
      const verdicts = await Promise.all(Array.from({ length: 8 }, () => limiter.consume(key)))
      expect(verdicts.map(({ reason = 'admitted' }) => reason)).toEqual([
        'admitted',
        'admitted',
        'limited',
        'limited',
        ...Array.from({ length: 4 }, () => 'banned'),
      ])
      expect(new Set(verdicts.flatMap(({ ban }) => (ban ? [JSON.stringify(ban)] : []))).size).toBe(1)
    })
  })
}
