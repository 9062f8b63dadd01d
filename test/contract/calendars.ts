import { calendarMonth, fixedWindow, type Limit, type Limiter, type Store, type Verdict } from '@sluice/core'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { withOtherTimeZones } from '../support/other-time-zones.js'
import { createLimiter } from './create-limiter.js'
import { Clock, freshKey, type StoreUnderTest } from './store-under-test.js'
import { always } from './traces.js'

const HOUR_MS = 3_600_000

/** Steps in time: within a period, over some of its bounds, and back. */
export const jumps = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 0, max: 3 * HOUR_MS }) },
  { weight: 2, arbitrary: fc.integer({ min: 0, max: 20 * HOUR_MS }) },
  { weight: 1, arbitrary: fc.integer({ min: 20 * HOUR_MS, max: 400 * HOUR_MS }) },
)

/** Windows of the calendar in every store; test/unit/policy/calendars.test.ts has their options. */
export function calendarContract(under: StoreUnderTest): void {
  describe(`windows of the calendar in ${under.name}`, () => {
    const clock = new Clock()
    let store: Store
    beforeAll(async () => {
      store = await under.make(clock.read)
    })
    afterAll(() => store.close())

    test('a month ends where its time zone says, and the next one is new', async () => {
      const limiter = createLimiter({ store, limits: [calendarMonth<string>(2, { timeZone: 'Africa/Cairo' })] })
      const key = freshKey()
      clock.now = Date.parse('2024-04-30T20:59:00Z')
      await limiter.consume(key, { cost: 2 })
      expect(await limiter.consume(key)).toMatchObject({ allowed: false, retryAfterMs: 60_000 })
      clock.now += 59_999
      expect(await limiter.consume(key)).toMatchObject({ allowed: false, retryAfterMs: 1 })
      clock.now += 1
      expect(await limiter.consume(key)).toMatchObject({ allowed: true, remaining: 1, resetAfterMs: 31 * 24 * HOUR_MS })
    })

    test('a billing day that changes within a period keeps its end', async () => {
      let day = 1
      const limiter = createLimiter({ store, limits: [calendarMonth<string>(1, { startsOn: () => day })] })
      const key = freshKey()
      clock.now = Date.parse('2026-06-10T00:00:00Z')
      await limiter.consume(key)
      day = 11
      expect(await limiter.consume(key)).toMatchObject({ retryAfterMs: 21 * 24 * HOUR_MS })
      clock.now = Date.parse('2026-07-01T00:00:00Z')
      expect(await limiter.consume(key)).toMatchObject({ allowed: true, resetAfterMs: 10 * 24 * HOUR_MS })
    })

    test('units beyond a charge count in the window of the settlement, however much later it comes', async () => {
      const settlements = [
        { window: 'day', at: '2026-03-19T12:00:00Z', ends: '2026-03-19T23:00:00Z' },
        { window: 'week', at: '2026-05-19T12:00:00Z', ends: '2026-05-19T22:00:00Z', startsOn: 'wednesday' },
        { window: 'month', at: '2026-10-20T12:00:00Z', ends: '2026-11-04T23:00:00Z', startsOn: () => 5 },
      ] as const
      for (const { window, at, ends, ...days } of settlements) {
        const limits = [fixedWindow<string>({ unit: 'tokens', limit: 100, window, timeZone: 'Europe/Berlin', ...days })]
        const name = `kept-${window}`
        const make = () => createLimiter({ name, store, limits, charges: { keep: '366d' } })
        const [web, worker] = [make(), make()]
        const settle = [
          (verdict: Verdict) => worker.settle(verdict.id as string, { tokens: 110 }),
          (verdict: Verdict) => verdict.settle({ tokens: 110 }),
        ]
        for (const settled of settle) {
          const key = freshKey()
          clock.now = Date.parse('2026-03-10T12:00:00Z')
          const verdict = await web.consume(key, { cost: { tokens: 10 } })
          clock.now = Date.parse(at)
          await settled(verdict)
          const { retryAfterMs = 0 } = await web.consume(key, { cost: { tokens: 1 } })
          expect(new Date(clock.now + retryAfterMs).toISOString(), window).toBe(new Date(ends).toISOString())
        }
      }
    })

    test('a state from an impossible future ends with the present period', async () => {
      const limiter = createLimiter({ store, limits: [fixedWindow<string>({ limit: 2, window: 'day' })] })
      const key = freshKey()
      clock.now = Date.parse('2031-05-02T00:00:01Z')
      await limiter.consume(key, { cost: 2 })
      clock.now = Date.parse('2026-05-01T12:00:00Z')
      expect(await limiter.consume(key)).toMatchObject({ allowed: false, retryAfterMs: 12 * HOUR_MS })
      clock.now += 12 * HOUR_MS
      expect(await limiter.consume(key)).toMatchObject({ allowed: true, remaining: 1 })
    })

    test('a clock far from the bounds that a process sends has windows all the same', async () => {
      const apart: Store = { ...withOtherTimeZones(store, 0), clock: () => clock.now - 30 * 24 * HOUR_MS }
      const limiter = createLimiter({ store: apart, limits: [fixedWindow<string>({ limit: 3, window: 'day' })] })
      const key = freshKey()
      clock.now = Date.parse('2026-06-10T05:00:00Z')
      let admitted = 0
      for (let hour = 0; hour < 96; hour++, clock.now += HOUR_MS) {
        const { allowed, retryAfterMs = 0 } = await limiter.consume(key)
        if (allowed) admitted++
        expect(retryAfterMs).toBeLessThanOrEqual(48 * HOUR_MS)
      }
      // The hours touch five dates.
      expect(admitted).toBeGreaterThanOrEqual(6)
      expect(admitted).toBeLessThanOrEqual(15)
    })

    test('processes whose time zone data differ share one state, and never admit more than the limit twice in a period', () => {
      const input = fc.record({
        shiftMs: fc.integer({ min: -11 * HOUR_MS, max: 11 * HOUR_MS }),
        steps: fc.array(fc.record({ jump: jumps, other: fc.boolean(), cost: fc.integer({ min: 1, max: 3 }) }), {
          minLength: 30,
          maxLength: 60,
        }),
      })
      const limit = 3
      const limits: readonly Limit<string>[] = [fixedWindow({ limit, window: 'day' })]
      return always(under, input, async ({ shiftMs, steps }) => {
        const processes = [store, withOtherTimeZones(store, shiftMs)].map((its) =>
          createLimiter({ store: its, limits }),
        )
        const key = freshKey()
        const admitted = new Map<string, number>()
        let endsAt = 0
        for (const { jump, other, cost } of steps) {
          clock.now += jump
          const [own, others] = processes as [Limiter, Limiter]
          const { allowed, resetAfterMs } = await (other ? others : own).consume(key, { cost })
          // Whoever has opened the period, its end is the same for both until it is over.
          if (clock.now < endsAt) expect(clock.now + resetAfterMs).toBe(endsAt)
          if (allowed) endsAt = clock.now + resetAfterMs
          for (const [of, from] of Object.entries({ own: 0, others: shiftMs })) {
            const period = `${of} ${Math.floor((clock.now - from) / (24 * HOUR_MS))}`
            const units = (admitted.get(period) ?? 0) + (allowed ? cost : 0)
            expect(units, period).toBeLessThanOrEqual(2 * limit)
            admitted.set(period, units)
          }
        }
      })
    })
  })
}
