import type { Limit, Limiter, Store, Verdict } from '@sluice/core'
import { gcra, tokenBucket } from '@sluice/core'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type LimitsOf, versionsOn } from './carried.js'
import { Clock, freshKey, type StoreUnderTest } from './store-under-test.js'
import { always } from './traces.js'

const WINDOW_MS = 10_000
const AMOUNTS = [20, 100, 8, 2]
const CAPACITY = 120

const BUCKETS: Readonly<Record<string, LimitsOf>> = {
  'a token bucket': (limit) => [tokenBucket({ refill: limit, every: WINDOW_MS, capacity: CAPACITY })],
  'a token bucket by intervals': (limit) => [
    tokenBucket({ refill: limit, every: WINDOW_MS, capacity: CAPACITY, style: 'interval' }),
  ],
  GCRA: (limit) => [gcra({ limit, window: WINDOW_MS })],
}

/** A charge, with the number by which it drained the bucket. */
interface Charge {
  readonly at: number
  readonly limit: number
  units: number
}

/**
 * The debt of a bucket that remembers each charge, in unit·ms: between two charges it drains at the limit of the later one, and
 * after the last one at `limit`.
 */
function debtOf(charges: readonly Charge[], now: number, limit: number, stepMs: number): number {
  let [debt, last] = [0, now]
  for (const charge of [...charges, { at: now, limit, units: 0 }]) {
    const elapsed = (Math.floor(charge.at / stepMs) - Math.floor(last / stepMs)) * stepMs
    debt = Math.max(0, debt - Math.max(0, elapsed) * charge.limit) + charge.units * WINDOW_MS
    last = charge.at
  }
  return debt
}

const steps = fc.array(
  fc.record({
    gapMs: fc.oneof(fc.constant(0), fc.nat({ max: 300 }), fc.nat({ max: 1.2 * WINDOW_MS })),
    version: fc.nat({ max: AMOUNTS.length - 1 }),
    isChange: fc.boolean(),
    cost: fc.oneof(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 40 })),
    /** Which charge is refunded, and the units that are left of it. Undefined stands for a charge. */
    which: fc.option(fc.nat(), { freq: 2, nil: undefined }),
    left: fc.nat(),
  }),
  { minLength: 4, maxLength: 30 },
)

/** Refunds of charges that were made before a limit was changed. */
export function refundsAfterChangesContract(under: StoreUnderTest): void {
  describe(`refunds after changes of a limit on ${under.name}`, () => {
    const clock = new Clock()
    let store: Store
    beforeAll(async () => {
      store = await under.make(clock.read, { denyCache: false })
    })
    afterAll(() => store.close())

    const of = (limitsOf: LimitsOf, ...amounts: number[]) => versionsOn(store, limitsOf, amounts) as Limiter[]
    const perWindow = (limit: number): Limit[] => [gcra({ limit, window: WINDOW_MS })]

    test('a refund after a limit was lowered does not make the client wait longer', async () => {
      const [before, after] = of(perWindow, 100, 2) as [Limiter, Limiter]
      const key = freshKey()
      const charged: Verdict[] = []
      for (let i = 0; i < 20; i++) charged.push(await before.consume(key, { cost: 5 }))
      clock.now += WINDOW_MS / 2
      // 100 units are gone after two windows, and 99 of them leave room for one.
      const wait = 1.98 * WINDOW_MS - WINDOW_MS / 2
      expect((await after.peek(key)).retryAfterMs).toBe(wait)
      await before.refund(key, charged[19] as Verdict)
      expect((await after.peek(key)).retryAfterMs).toBeLessThanOrEqual(wait)
    })

    test('a settlement below the charge, made after a limit was lowered, does not prolong a refusal', async () => {
      const [before, after] = of(perWindow, 100, 8) as [Limiter, Limiter]
      const key = freshKey()
      const charged: Verdict[] = []
      for (let i = 0; i < 50; i++) charged.push(await before.consume(key, { cost: 2 }))
      clock.now += 0.9 * WINDOW_MS
      const { retryAfterMs = 0 } = await after.peek(key)
      await charged.at(-1)?.settle(1)
      clock.now += retryAfterMs
      expect((await after.peek(key)).allowed).toBe(true)
    })

    test('after a limit was raised and the bucket has drained, refunds of the drained units admit nothing more', async () => {
      const [before, after] = of(perWindow, 20, 2000) as [Limiter, Limiter]
      const key = freshKey()
      const charged: Verdict[] = []
      for (let i = 0; i < 20; i++) charged.push(await before.consume(key))
      clock.now += 100
      await after.consume(key, { cost: 2000 })
      for (const verdict of charged) await before.refund(key, verdict)
      expect((await after.peek(key)).remaining).toBe(0)
    })

    test('after a limit was raised, the bucket drains at the new limit also before a refund of an old charge', async () => {
      const [before, after] = of(BUCKETS['a token bucket'] as LimitsOf, 20, 100) as [Limiter, Limiter]
      const key = freshKey()
      const first = await before.consume(key, { cost: 3 })
      await after.consume(key, { cost: 50 })
      clock.now += WINDOW_MS / 10
      const { remaining } = await after.peek(key)
      await before.refund(key, first)
      expect((await after.peek(key)).remaining).toBeGreaterThanOrEqual(remaining)
    })

    test.each(Object.entries(BUCKETS))(
      '%s never has less room after a refund, whichever limits it was charged by',
      (_, limitsOf) =>
        always(under, steps, async (walk) => {
          const versions = of(limitsOf, ...AMOUNTS)
          const key = freshKey()
          const held: { readonly verdict: Verdict; readonly version: number }[] = []
          clock.now += 10 * WINDOW_MS
          const rooms = () => Promise.all(versions.map((limiter) => limiter.peek(key)))
          for (const { gapMs, version, cost, which, left } of walk) {
            clock.now += gapMs
            const one = which === undefined ? undefined : held.splice(which % Math.max(1, held.length), 1)[0]
            if (!one) {
              const verdict = await (versions[version] as Limiter).consume(key, { cost })
              if (verdict.allowed) held.push({ verdict, version })
              continue
            }
            const before = await rooms()
            await one.verdict.settle(left % one.verdict.cost)
            for (const [v, { remaining, retryAfterMs }] of (await rooms()).entries()) {
              expect(retryAfterMs).toBeLessThanOrEqual(before[v]?.retryAfterMs as number)
              if (before[v]?.allowed) expect(remaining).toBeGreaterThanOrEqual((before[v] as Verdict).remaining)
            }
          }
        }),
    )

    test.each(Object.entries(BUCKETS).slice(0, 2))(
      '%s never has more room than without the charge, if no larger limit was used since',
      (name, limitsOf) =>
        always(under, steps, async (walk) => {
          const stepMs = name === 'a token bucket' ? 1 : WINDOW_MS
          const versions = of(limitsOf, ...AMOUNTS)
          const key = freshKey()
          const held: { readonly verdict: Verdict; readonly charge: Charge }[] = []
          const charges: Charge[] = []
          clock.now += 10 * WINDOW_MS
          let current = 0
          for (const { gapMs, version, isChange, cost, which, left } of walk) {
            clock.now += gapMs
            if (isChange) current = version
            const limit = AMOUNTS[current] as number
            const isLarger = ({ charge }: (typeof held)[number]) => charge.limit < limit
            for (const one of held.filter(isLarger)) held.splice(held.indexOf(one), 1)
            const one = which === undefined ? undefined : held.splice(which % Math.max(1, held.length), 1)[0]
            const limiter = versions[current] as Limiter
            if (one) {
              const units = left % one.verdict.cost
              await one.verdict.settle(units)
              one.charge.units = units
            } else {
              const verdict = await limiter.consume(key, { cost })
              if (!verdict.allowed) continue
              const charge = { at: clock.now, limit, units: cost }
              charges.push(charge)
              held.push({ verdict, charge })
            }
            const debt = debtOf(charges, clock.now, limit, stepMs)
            const room = Math.floor((CAPACITY * WINDOW_MS - debt) / WINDOW_MS)
            expect((await limiter.peek(key)).remaining).toBeLessThanOrEqual(room)
          }
        }),
    )
  })
}
