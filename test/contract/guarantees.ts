import { fixedWindow, gcra, perDay, perHour, perMinute, perSecond, type Store, slidingWindow } from '@sluice/core'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { byEffort } from '../support/effort.js'
import type { LimitSpec } from '../support/oracle/spec.js'
import { createLimiter } from './create-limiter.js'
import { limitOf } from './limit-of.js'
import { refusalsInWindows } from './refusals-in-windows.js'
import { spreadTimes } from './spread.js'
import { Clock, freshKey, MIDNIGHT, type StoreUnderTest } from './store-under-test.js'
import { ALGORITHMS, always } from './traces.js'

/** Guarantees for arrivals of any length and shape. */
export function guaranteesContract(under: StoreUnderTest): void {
  const clock = new Clock()
  let store: Store
  beforeAll(async () => {
    store = await under.make(clock.read)
  })
  afterAll(() => store.close())

  describe(`guarantees on ${under.name}`, () => {
    const count = Math.round(byEffort({ usual: 10_000, full: 100_000 }) * (under.effort ?? 1))
    for (const [shape, gaps] of Object.entries(SHAPES)) {
      test(`no window holds more than 1/s + 20/min + 200/h + 800/day allow: ${count} ${shape}`, {
        timeout: 300_000,
      }, async () => {
        const limits = [perSecond(1), perMinute(20), perHour(200), perDay(800)]
        const limiter = createLimiter({ store, limits })
        const key = freshKey()
        const next = gaps(lcg(count))
        const admitted: number[] = []
        clock.now = MIDNIGHT
        for (let i = 0; i < count; i++) {
          clock.now += next()
          if ((await limiter.consume(key)).allowed) admitted.push(clock.now)
        }
        expect(admitted.length).toBeGreaterThan(Math.min(800, count / 100))
        for (const { limit, window } of limits) expectNoFullerWindow(admitted, limit as number, window as number)
      })
    }

    test('a strict edge never lets any window hold more than its limit', () => {
      const input = fc
        .record({
          limit: fc.integer({ min: 1, max: 12 }),
          segments: fc.constantFrom(1, 2, 3, 6, 60),
          length: fc.constantFrom(1, 7, 100, 1000),
        })
        .chain((rate) =>
          fc.record({
            rate: fc.constant(rate),
            gaps: fc.array(fc.nat({ max: Math.ceil((2 * rate.segments * rate.length) / rate.limit) }), {
              minLength: 20,
              maxLength: 80,
            }),
          }),
        )
      return always(under, input, async ({ rate: { limit, segments, length }, gaps }) => {
        const window = segments * length
        const limiter = createLimiter({ store, limits: [slidingWindow({ limit, window, segments, edge: 'strict' })] })
        const key = freshKey()
        const admitted: number[] = []
        clock.now = MIDNIGHT
        for (const gap of gaps) {
          clock.now += gap
          if ((await limiter.consume(key)).allowed) admitted.push(clock.now)
        }
        expectNoFullerWindow(admitted, limit, window)
      })
    })

    for (const { title, specs } of ALGORITHMS) {
      test(`a refund of a lapsed charge adds no room and causes no error: ${title}`, async () => {
        const hour = 3_600_000
        const [sample] = fc.sample(specs, { seed: 1, numRuns: 1 }) as [LimitSpec]
        const limiter = createLimiter({ store, limits: [limitOf({ ...sample, limit: 3, window: hour })] })
        // From the instant at which a state ends to long after its key should have expired.
        for (const lateMs of [0, 1, 5000, hour / 2, hour, 2 * hour, 20 * hour]) {
          const key = freshKey()
          clock.now = MIDNIGHT
          const first = await limiter.consume(key)
          clock.now += hour / 2
          const second = await limiter.consume(key)
          clock.now += 2 * hour + lateMs
          await limiter.refund(key, first)
          expect(await limiter.peek(key)).toMatchObject({ remaining: first.limits[0]?.capacity, resetAfterMs: 0 })
          await limiter.refund(key, second)
          expect(await limiter.consume(key)).toMatchObject({ remaining: first.remaining })
        }
      })
    }

    for (const { title, specs } of ALGORITHMS) {
      test(`a charge from before a reset is not refunded from charges made after it: ${title}`, async () => {
        const [sample] = fc.sample(specs, { seed: 1, numRuns: 1 }) as [LimitSpec]
        const limiter = createLimiter({ store, limits: [limitOf({ ...sample, limit: 4, window: 3_600_000 })] })
        const [key, other] = [freshKey(), freshKey()]
        clock.now = MIDNIGHT
        const [before, elsewhere] = [await limiter.consume(key, { cost: 2 }), await limiter.consume(other, { cost: 2 })]
        await limiter.reset(key)
        const since = await limiter.consume(key, { cost: 2 })
        await limiter.refund(key, before)
        expect((await limiter.peek(key)).remaining).toBe(since.remaining)
        expect([await limiter.refund(key, since), await limiter.refund(other, elsewhere)]).toEqual([true, true])
        for (const each of [key, other]) expect((await limiter.peek(each)).resetAfterMs).toBe(0)
      })
    }

    test('no two refunds of a bucket return the same units', async () => {
      const limiter = createLimiter({ store, limits: [gcra({ limit: 10, window: '10s' })] })
      const key = freshKey()
      clock.now = MIDNIGHT
      const one = await limiter.consume(key, { cost: 5 })
      const other = await limiter.consume(key, { cost: 5 })
      clock.now += 1000
      const before = await limiter.peek(key)
      await limiter.refund(key, one)
      const after = await limiter.peek(key)
      expect(after.remaining - before.remaining).toBe(4)
      clock.now += 6000
      expect(await limiter.consume(key, { cost: 4 })).toMatchObject({ remaining: 6 })
      await limiter.refund(key, other)
      // As if neither had been charged.
      expect(await limiter.peek(key)).toMatchObject({ remaining: 6 })
    })

    test('a charged refusal at a full bucket adds no debt, so a later refund returns its full cost', async () => {
      const limiter = createLimiter({ store, limits: [gcra({ limit: 10, window: '10s' })], onDeny: 'charge' })
      const key = freshKey()
      clock.now = MIDNIGHT
      const admitted = await limiter.consume(key, { cost: 10 })
      expect(await limiter.consume(key, { cost: 10 })).toMatchObject({ allowed: false })
      await limiter.refund(key, admitted)
      expect(await limiter.peek(key)).toMatchObject({ remaining: 10 })
    })

    refusalsInWindows(under, clock, () => store)
    spreadTimes(clock, () => store)

    test.each([
      ['10 GB', 10_000_000_000, 'clock'],
      ['10 GB', 10_000_000_000, 'first-request'],
      ['the largest number', Number.MAX_SAFE_INTEGER, 'clock'],
    ] as const)('a fixed window of a month counts to the unit: %s (%s, by %s)', async (_what, limit, anchor) => {
      const limiter = createLimiter({ store, limits: [fixedWindow({ limit, window: '30d', anchor })] })
      const key = freshKey()
      clock.now = MIDNIGHT
      const first = await limiter.consume(key, { cost: limit - 1 })
      expect([first.allowed, first.remaining]).toEqual([true, 1])
      const refused = await limiter.consume(key, { cost: 2 })
      expect([refused.allowed, refused.remaining, refused.retryAfterMs]).toEqual([false, 1, first.resetAfterMs])
      expect((await limiter.consume(key)).remaining).toBe(0)
      await limiter.refund(key, first)
      expect((await limiter.peek(key)).remaining).toBe(limit - 1)
      clock.now += first.resetAfterMs
      expect((await limiter.consume(key, { cost: limit })).allowed).toBe(true)
    })

    test('a block refuses until its exact end, charges nothing, and is not extended by requests', async () => {
      const limiter = createLimiter({ name: 'blocking', store, limits: [perMinute(5)] })
      const again = createLimiter({ name: 'blocking', store, limits: [perHour(9)] })
      const other = createLimiter({ name: 'elsewhere', store, limits: [perMinute(5)] })
      const key = freshKey()
      clock.now = MIDNIGHT
      await limiter.block(key, { for: '10m', reason: 'scraping, "again"\n' })
      for (const ms of [0, 1, 300_000, 599_999]) {
        clock.now = MIDNIGHT + ms
        const refusal = await limiter.consume(key)
        expect(refusal).toMatchObject({
          allowed: false,
          reason: 'blocked',
          remaining: 0,
          retryAfterMs: 600_000 - ms,
          limits: [],
        })
        expect(refusal.block).toEqual({ reason: 'scraping, "again"\n', remainingMs: 600_000 - ms })
        expect(await again.peek(key), 'every limiter of this name').toMatchObject({ reason: 'blocked' })
        expect((await other.peek(key)).allowed, 'no limiter of another name').toBe(true)
      }
      clock.now = MIDNIGHT + 600_000
      expect(await limiter.consume(key)).toMatchObject({ allowed: true, remaining: 4 })
    })

    test('a block is replaced by the next one, outlives a reset, and ends when it is lifted', async () => {
      const limiter = createLimiter({ name: 'blocking', store, limits: [perMinute(5)] })
      const key = freshKey()
      clock.now = MIDNIGHT
      await limiter.block(key, { for: '1h' })
      await limiter.block(key, { for: '1m', reason: 'second' })
      expect(await limiter.peek(key)).toMatchObject({ retryAfterMs: 60_000, block: { reason: 'second' } })
      await limiter.reset(key)
      expect((await limiter.peek(key)).reason).toBe('blocked')
      await limiter.unblock(key)
      expect((await limiter.consume(key)).allowed).toBe(true)
      // Lifting an absent block is no error.
      await limiter.unblock(key)
    })

    test('concurrent requests of any cost are admitted up to exactly the limit', async () => {
      clock.now = MIDNIGHT
      const limiter = createLimiter({ store, limits: [perMinute(100), perHour(90)] })
      const key = freshKey()
      const verdicts = await Promise.all(
        Array.from({ length: 200 }, (_, i) => limiter.consume(key, { cost: 1 + (i % 3) })),
      )
      const units = verdicts.filter(({ allowed }) => allowed).reduce((sum, { cost }) => sum + cost, 0)
      expect(units).toBe(90)
    })
  })
}

type Random = () => number

/** Arrivals as gaps in ms. */
const SHAPES: Readonly<Record<string, (random: Random) => () => number>> = {
  'steady arrivals': () => () => 1000,
  'random arrivals': (random) => () => Math.floor(random() * 4000),
  'bursts and silences': (random) => () =>
    random() < 0.98 ? Math.floor(random() * 30) : Math.floor(random() * 600_000),
}

/** Repeatable numbers from 0 to 1. */
function lcg(seed: number): Random {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/** The unit `limit` places earlier must be at least a window old: then no window, wherever it starts, holds more. */
function expectNoFullerWindow(admitted: readonly number[], limit: number, window: number): void {
  const tooClose = admitted.findIndex((at, i) => i >= limit && at - (admitted[i - limit] as number) < window)
  expect(tooClose, `${limit} per ${window} ms is broken by admission`).toBe(-1)
}
