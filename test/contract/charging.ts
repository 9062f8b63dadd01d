import { gcra, type Limit, type Limiter, type Store, type Verdict } from '@sluice/core'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { capacityOf, Oracle } from '../support/oracle/oracle.js'
import type { LimitSpec } from '../support/oracle/spec.js'
import { CARRIED, type LimitsOf, versionsOn } from './carried.js'
import { createLimiter } from './create-limiter.js'
import { limitOf } from './limit-of.js'
import { Clock, freshKey, MIDNIGHT, type StoreUnderTest } from './store-under-test.js'
import { ALGORITHMS, always, fieldsOf, play, replay, specAndTrace } from './traces.js'

/** Settlement below the charge, and reserves for higher priorities, compared with equivalent decisions. */
export function chargingContract(under: StoreUnderTest): void {
  const clock = new Clock()
  let store: Store
  let uncached: Store
  beforeAll(async () => {
    store = await under.make(clock.read)
    uncached = await under.make(clock.read, { denyCache: false })
  })
  afterAll(() => Promise.all([store.close(), uncached.close()]))
  const limiterOf = (...limits: Limit<string>[]) => createLimiter<string>({ store, limits })

  for (const algorithm of ALGORITHMS) {
    const cases = specAndTrace(algorithm)

    // Permits are released, and never settled.
    describe.skipIf(algorithm.title === 'concurrency')(`settling ${algorithm.title} on ${under.name}`, () => {
      test('settlement at once leaves the state that charging the actual cost would have left', () =>
        always(
          under,
          fc.record({ case: cases, extra: fc.nat({ max: 5 }) }),
          async ({ case: { spec, trace }, extra }) => {
            const limiter = limiterOf(limitOf(spec))
            const [settled, control] = [freshKey(), freshKey()]
            await play(clock, trace, async (cost) => {
              const verdict = await limiter.consume(settled, { cost: cost + extra })
              if (verdict.allowed) {
                expect(await verdict.settle(cost)).toBe(extra > 0)
                await limiter.consume(control, { cost })
              }
              expect(fieldsOf(await limiter.peek(settled))).toEqual(fieldsOf(await limiter.peek(control)))
              return verdict
            })
          },
        ))

      test('later settlement refunds the units that time has not restored already, and never more', () =>
        always(under, fc.record({ case: cases, which: fc.nat(), actual: fc.nat(), wait: fc.nat() }), async (input) => {
          const { spec, trace } = input.case
          const limiter = limiterOf(limitOf(spec))
          const [charged, less] = [freshKey(), freshKey()]
          const moments = await play(clock, trace, (cost) => limiter.consume(charged, { cost }))
          const admitted = moments.filter(({ verdict, cost }) => verdict.allowed && cost > 0)
          const at = clock.now + (input.wait % (2 * spec.window))
          const chosen = admitted[input.which % admitted.length]
          if (!chosen) return
          const actual = input.actual % (chosen.cost + 1)
          const asActual = admitted.map((moment) => (moment === chosen ? { at: moment.at, cost: actual } : moment))
          await replay(clock, limiter, less, asActual)

          clock.now = at
          const before = await limiter.peek(charged)
          await chosen.verdict.settle(actual)
          await chosen.verdict.settle(0)
          await limiter.refund(charged, chosen.verdict)
          const after = await limiter.peek(charged)
          expect(after.remaining).toBeGreaterThanOrEqual(before.remaining)
          expect(after.remaining).toBeLessThanOrEqual(
            Math.min(before.remaining + chosen.cost - actual, capacityOf(spec)),
          )
          const isLast = chosen === admitted.at(-1)
          // Without that charge, a later one would have opened another window, so the two cannot be compared.
          if (algorithm.opens && actual === 0 && !isLast) return
          for (const ms of [0, 1, Math.floor(before.resetAfterMs / 2), before.resetAfterMs, before.resetAfterMs + 1]) {
            clock.now = at + ms
            const [remainder, without] = [await limiter.peek(charged), await limiter.peek(less)]
            if (isLast) expect(fieldsOf(remainder), `${ms} ms later`).toEqual(fieldsOf(without))
            else expect(remainder.remaining, `${ms} ms later`).toBeLessThanOrEqual(without.remaining)
          }
        }))
    })

    describe.skipIf(algorithm.title === 'concurrency')(`settling ${algorithm.title} above on ${under.name}`, () => {
      const settled = fc.record({
        case: cases,
        more: fc.array(fc.option(fc.nat({ max: 60 })), { minLength: 24, maxLength: 24 }),
        which: fc.nat(),
      })
      const tokens = (spec: LimitSpec) => limitOf<string>(spec, undefined, undefined, 'tokens')

      test('the difference is charged at that instant, whatever room there is', () =>
        always(under, settled, async ({ case: { spec, trace }, more, which }) => {
          const limiter = createLimiter<string>({ store: uncached, limits: [tokens(spec)] })
          const oracle = new Oracle([spec], 'none', ['tokens'])
          const key = freshKey()
          const held: Verdict[] = []
          await play(clock, trace, async (cost, step) => {
            const units = more[step]
            const [one] = units ? held.splice((which + step) % Math.max(1, held.length), 1) : []
            if (one) {
              expect(await one.settle({ tokens: one.cost + (units as number) })).toBe(spec.limit > 0)
              expect(await one.settle({ tokens: 0 })).toBe(false)
              oracle.debit(clock.now, units as number, [key])
            }
            const verdict = await limiter.consume(key, { cost: { tokens: cost } })
            const { receipt: _, ...expected } = oracle.consume(clock.now, { tokens: cost }, [key])
            expect(fieldsOf(verdict)).toEqual(expected)
            if (verdict.allowed) held.push(verdict)
            return verdict
          })
        }))

      test('a debt refuses one unit for no longer than two windows, and of a bucket for no longer than it takes to drain two', () =>
        always(under, settled, async ({ case: { spec, trace }, more }) => {
          if (capacityOf(spec) === 0) return
          const limiter = createLimiter<string>({ store: uncached, limits: [tokens(spec)] })
          const key = freshKey()
          await play(clock, trace, async (cost, step) => {
            const verdict = await limiter.consume(key, { cost: { tokens: cost } })
            const before = await limiter.peek(key)
            await verdict.settle({ tokens: cost + 1000 * (more[step] ?? 0) })
            const after = await limiter.peek(key)
            expect(after.remaining).toBeLessThanOrEqual(before.remaining)
            const fillings = 'capacity' in spec ? Math.ceil((2 * spec.capacity) / spec.limit) : 2
            expect(after.retryAfterMs).toBeLessThanOrEqual(fillings * spec.window)
            return verdict
          })
        }))

      test('a debt ends at its instant or sooner, whatever is settled and refunded meanwhile', () => {
        const change = fc.record({
          gap: fc.nat(),
          which: fc.nat(),
          actual: fc.oneof(
            fc.constant(0),
            fc.nat(),
            fc.constant('as charged' as const),
            fc.constant('others' as const),
          ),
        })
        const input = fc.record({
          case: cases,
          debt: fc.oneof(fc.integer({ min: 1, max: 60 }), fc.constant(100_000)),
          changes: fc.array(change, { minLength: 1, maxLength: 12 }),
        })
        return always(under, input, async ({ case: { spec, trace }, debt, changes }) => {
          if (capacityOf(spec) === 0) return
          const others = gcra<string>({ name: 'others', limit: 1_000_000, window: '1d' })
          const limiter = createLimiter<string>({ store: uncached, limits: [tokens(spec), others] })
          const key = freshKey()
          const held: Verdict[] = []
          await play(clock, trace, async (tokens) => {
            const verdict = await limiter.consume(key, { cost: { tokens, requests: 1 } })
            if (verdict.allowed) held.push(verdict)
            return verdict
          })
          const one = held.pop()
          if (!one) return
          await one.settle({ tokens: (one.units.tokens?.cost ?? 0) + debt })
          const { retryAfterMs = 0 } = await limiter.peek(key, { cost: { tokens: 1 } })
          const end = clock.now + retryAfterMs
          for (const { gap, which, actual } of changes) {
            clock.now += gap % Math.ceil(spec.window / 3)
            const [chosen] = held.splice(which % Math.max(1, held.length), 1)
            const charged = chosen?.units.tokens?.cost ?? 0
            if (actual === 'others') await chosen?.settle({ requests: 0 })
            else await chosen?.settle({ tokens: actual === 'as charged' ? charged : actual % (charged + 1) })
            const { retryAfterMs = 0 } = await limiter.peek(key, { cost: { tokens: 1 } })
            expect(clock.now + retryAfterMs).toBeLessThanOrEqual(Math.max(clock.now, end))
          }
          clock.now = Math.max(clock.now, end)
          expect((await limiter.consume(key, { cost: { tokens: 1 } })).allowed).toBe(true)
        })
      })
    })

    describe(`a reserve of ${algorithm.title} on ${under.name}`, () => {
      const reserved = cases.chain(({ spec, trace }) =>
        fc.record({
          spec: fc.constant(spec),
          trace: fc.constant(trace),
          high: fc.nat({ max: Math.max(0, capacityOf(spec) - 1) }),
          highest: fc.nat({ max: 3 }),
          priorities: fc.array(fc.nat({ max: 2 }), { minLength: 24, maxLength: 24 }),
        }),
      )

      test('a limit admits a cost where cost and reserve have room, charges the cost alone, and reports the rest', () =>
        always(under, reserved, async ({ spec, trace, high, highest, priorities }) => {
          // Limiters of one name with the same limit share their state.
          const plain = limiterOf(limitOf(spec))
          const reserving = limiterOf({ ...limitOf<string>(spec), reserve: { 1: high, 2: highest } })
          const key = freshKey()
          await play(clock, trace, async (cost, step) => {
            const priority = priorities[step] as number
            const reserved = [high + highest, highest, 0][priority] as number
            const before = await plain.peek(key)
            const expected = await plain.peek(key, { cost: cost === 0 ? 0 : cost + reserved })
            const predicted = await reserving.peek(key, { cost, priority })
            const verdict = await reserving.consume(key, { cost, priority })
            const { allowed, reason, retryAfterMs } = expected
            expect(verdict).toMatchObject({ allowed, reason, retryAfterMs, priority })
            expect(predicted).toMatchObject({ allowed, reason, retryAfterMs, priority })
            const left = (await plain.peek(key)).remaining
            expect(left).toBe(allowed ? before.remaining - cost : before.remaining)
            expect(verdict.remaining).toBe(Math.max(0, left - reserved))
            return verdict
          })
        }))
    })
  }

  const counting = Object.entries(CARRIED).filter(([name]) => name !== 'requests in flight')
  const changed = [
    ...counting.map(([name, limitsOf]) => ({ name, limitsOf, limit: 64 })),
    // Above the largest count of a smaller limit.
    ...counting.filter(([name]) => /window/.test(name)).map(([name, limitsOf]) => ({ name, limitsOf, limit: 3e9 })),
  ]
  test.each(changed)(
    `charging more by a verdict of an earlier, smaller limit gives no room in $name of $limit on ${under.name}`,
    async ({ limitsOf, limit }) => {
      clock.now = MIDNIGHT
      const [small, large] = versionsOn(uncached, limitsOf, [4, limit]) as [Limiter, Limiter]
      const key = freshKey()
      const held: Verdict[] = []
      for (let n = 0; n < 4; n++) held.push(await small.consume(key))
      await large.consume(key, { cost: { requests: (await large.peek(key)).remaining } })
      const left = async () =>
        (await large.peek(key)).limits.filter(({ unit }) => unit === 'requests').map(({ remaining }) => remaining)
      const before = await left()
      expect(before).toContain(0)
      for (const verdict of held) {
        await verdict.settle({ requests: 3 })
        for (const [i, remaining] of (await left()).entries())
          expect(remaining).toBeLessThanOrEqual(before[i] as number)
      }
    },
  )

  test(`a clock that steps back takes nothing from a window by a decision of a smaller limit on ${under.name}`, async () => {
    clock.now = MIDNIGHT
    const limitsOf = CARRIED['a weighted window'] as LimitsOf
    const [small, large] = versionsOn(uncached, limitsOf, [4, 64]) as [Limiter, Limiter]
    const key = freshKey()
    await large.consume(key, { cost: 60 })
    clock.now += 10_000
    await large.consume(key)
    clock.now -= 30_000
    expect((await small.consume(key)).allowed).toBe(false)
    expect((await large.peek(key)).remaining).toBe(3)
  })

  describe(`charging on ${under.name}`, () => {
    const limits = [limitOf<string>({ algorithm: 'gcra', limit: 10, window: 10_000, capacity: 10 })]

    test('settling for more than was charged is an error, and changes nothing', async () => {
      clock.now = MIDNIGHT
      const limiter = createLimiter({ name: 'tokens', store, limits })
      const key = freshKey()
      const verdict = await limiter.consume(key, { cost: 4 })
      for (const actual of [5, -1, 1.5, Number.NaN, undefined]) {
        await expect(verdict.settle(actual as never)).rejects.toMatchObject({
          code: 'INVALID_COST',
          message: expect.stringMatching(
            /^policy "tokens": actual cost: expected a whole number from 0 to the 4 charged/,
          ),
        })
      }
      expect((await limiter.peek(key)).remaining).toBe(6)
      expect(await verdict.settle(1)).toBe(true)
      expect((await limiter.peek(key)).remaining).toBe(9)
    })

    test('only the first of settlement and refund has an effect', async () => {
      clock.now = MIDNIGHT
      const limiter = createLimiter({ store, limits })
      const key = freshKey()
      const one = await limiter.consume(key, { cost: 4 })
      expect(await limiter.settle(one, 3)).toBe(true)
      expect(await one.settle(0)).toBe(false)
      expect(await limiter.refund(key, one)).toBe(false)
      const other = await limiter.consume(key, { cost: 4 })
      expect(await limiter.refund(key, other)).toBe(true)
      expect(await other.settle(2)).toBe(false)
      const unchanged = await limiter.consume(key, { cost: 2 })
      expect(await unchanged.settle(2)).toBe(false)
      expect(await limiter.refund(key, unchanged)).toBe(false)
      expect((await limiter.peek(key)).remaining).toBe(5)
    })

    test('a refusal or a peek has nothing to settle', async () => {
      clock.now = MIDNIGHT
      const limiter = createLimiter({ store, limits })
      const key = freshKey()
      const refused = await limiter.consume(key, { cost: 11 })
      expect([refused.allowed, await refused.settle(11), await limiter.settle(refused, 3)]).toEqual([
        false,
        false,
        false,
      ])
      expect(await (await limiter.peek(key)).settle(0)).toBe(false)
      await expect((await limiter.peek(key)).settle(1)).rejects.toMatchObject({ code: 'INVALID_COST' })
      expect((await limiter.peek(key)).remaining).toBe(10)
    })

    test('limits in bytes are charged bytes, the others cost, and settling the cost leaves the bytes', async () => {
      clock.now = MIDNIGHT
      const bytes = gcra<string>({ name: 'bytes', limit: 10, window: '1h', unit: 'content-bytes' })
      const limiter = createLimiter<string>({ store, limits: [...limits, bytes] })
      const key = freshKey()
      await expect(limiter.consume(key)).rejects.toMatchObject({ code: 'INVALID_COST' })
      const verdict = await limiter.consume(key, { cost: 2, bytes: 7 })
      expect(verdict).toMatchObject({ allowed: true, cost: 2, remaining: 8 })
      expect(verdict.limits.map(({ remaining, unit }) => [remaining, unit])).toEqual([
        [8, 'requests'],
        [3, 'content-bytes'],
      ])
      await verdict.settle(1)
      expect((await limiter.peek(key)).limits.map(({ remaining }) => remaining)).toEqual([9, 3])
      expect((await limiter.consume(key, { cost: 1, bytes: 4 })).allowed).toBe(false)
      expect((await limiter.consume(key, { cost: 0, bytes: 3 })).allowed).toBe(true)
      expect((await limiter.peek(key)).limits.map(({ remaining }) => remaining)).toEqual([9, 0])
    })
  })
}
