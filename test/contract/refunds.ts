import { createLimiter, type Store, type Verdict } from '@sluice/core'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { capacityOf } from '../support/oracle/oracle.js'
import { type BucketSpec, type Kept, RememberingBucket } from '../support/oracle/refunds.js'
import { limitOf } from './limit-of.js'
import { Clock, freshKey, MIDNIGHT, type StoreUnderTest } from './store-under-test.js'
import { ALGORITHMS, always } from './traces.js'

const BUCKETS = ALGORITHMS.filter(({ title }) => /gcra|bucket/.test(title)).map(({ title, specs }) => ({
  title,
  specs: specs as fc.Arbitrary<BucketSpec>,
}))

/** Refunds of buckets whose charges overlap, compared with a bucket that remembers each charge. */
export function refundsContract(under: StoreUnderTest): void {
  describe(`refunds of buckets on ${under.name}`, () => {
    const clock = new Clock()
    let store: Store
    beforeAll(async () => {
      store = await under.make(clock.read, { denyCache: false })
    })
    afterAll(() => store.close())

    for (const { title, specs } of BUCKETS) {
      for (const onDeny of ['none', 'charge'] as const) {
        const refusals = onDeny === 'charge' ? ', refusals charged' : ''
        test(`a ${title} never has more room than if the refunded units had not been charged${refusals}`, () =>
          always(under, specs.chain(historyOf), async ({ spec, steps }) => {
            const limiter = createLimiter({ store, limits: [limitOf(spec)], onDeny })
            const bucket = new RememberingBucket(spec)
            const key = freshKey()
            const held: { verdict: Verdict; charge: Kept }[] = []
            clock.now = MIDNIGHT
            let latest = clock.now
            for (const { gap, cost, which, given } of steps) {
              // A bucket accepts a clock that is further behind than a window; an empty bucket accepts any clock.
              const isEmpty = (await limiter.peek(key)).resetAfterMs === 0
              clock.now = Math.max(clock.now + gap, isEmpty ? latest : latest - spec.window)
              latest = Math.max(latest, clock.now)
              const { resetAfterMs: paidOffAfterMs } = await limiter.peek(key)
              bucket.goTo(clock.now, paidOffAfterMs === 0)
              const one = which === undefined ? undefined : held.splice(which % Math.max(1, held.length), 1)[0]
              if (one) {
                const back = given < 0 ? one.verdict.cost : 1 + (given % one.verdict.cost)
                await one.verdict.settle(one.verdict.cost - back)
                bucket.refund(one.charge, back)
              } else {
                const verdict = await limiter.consume(key, { cost })
                if (verdict.cost > 0) held.push({ verdict, charge: bucket.charge(cost) })
                else if (onDeny === 'charge' && cost > 0 && cost <= capacityOf(spec)) bucket.fill(paidOffAfterMs)
              }
              const { remaining, resetAfterMs } = await limiter.peek(key)
              expect(remaining).toBeLessThanOrEqual(bucket.room)
              expect(resetAfterMs).toBeGreaterThanOrEqual(bucket.emptyInMs)
            }
          }))
      }

      test(`a ${title} is as good as new when all charges of one instant are refunded at that instant, in any order`, () =>
        always(under, fc.record({ spec: specs, costs: manyCosts, order: fc.nat() }), async ({ spec, costs, order }) => {
          const limiter = createLimiter({ store, limits: [limitOf(spec)] })
          const key = freshKey()
          clock.now = MIDNIGHT + (order % 1000)
          const held: Verdict[] = []
          for (const cost of costs) held.push(await limiter.consume(key, { cost }))
          for (let left = held.length; left > 0; left--) {
            await limiter.refund(key, held.splice((order * left + 7) % left, 1)[0] as Verdict)
          }
          expect(await limiter.peek(key)).toMatchObject({ remaining: capacityOf(spec), resetAfterMs: 0 })
        }))

      test(`a ${title} refunds all that is owed when the newest charges are refunded first`, () => {
        const charges = fc.array(fc.record({ cost: fc.integer({ min: 1, max: 4 }), gap: fc.nat() }), { maxLength: 6 })
        return always(under, fc.record({ spec: specs, charges, wait: fc.nat() }), async ({ spec, charges, wait }) => {
          const limiter = createLimiter({ store, limits: [limitOf(spec)] })
          const bucket = new RememberingBucket(spec)
          const key = freshKey()
          clock.now = MIDNIGHT
          const held: { verdict: Verdict; charge: Kept }[] = []
          for (const { cost, gap } of charges) {
            clock.now += gap % Math.ceil(spec.window / 3)
            bucket.goTo(clock.now, (await limiter.peek(key)).resetAfterMs === 0)
            const verdict = await limiter.consume(key, { cost })
            if (verdict.allowed) held.push({ verdict, charge: bucket.charge(cost) })
          }
          for (const { verdict, charge } of held.reverse()) {
            clock.now += wait % Math.ceil(spec.window / 3)
            bucket.goTo(clock.now, (await limiter.peek(key)).resetAfterMs === 0)
            await limiter.refund(key, verdict)
            bucket.refund(charge, verdict.cost)
            expect(await limiter.peek(key)).toMatchObject({ remaining: bucket.room, resetAfterMs: bucket.emptyInMs })
          }
        })
      })
    }
  })
}

const manyCosts = fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 6 })

/** Charges, full and partial refunds in any order, and now and then a clock that steps back. */
function historyOf(spec: BucketSpec) {
  const upTo = (max: number) => fc.integer({ min: 0, max })
  const unit = Math.ceil(spec.window / Math.max(1, spec.limit))
  const gap = fc.oneof(
    { weight: 6, arbitrary: fc.constant(0) },
    { weight: 6, arbitrary: upTo(2 * unit) },
    { weight: 2, arbitrary: upTo(spec.window) },
    { weight: 1, arbitrary: upTo(spec.window).map((ms) => -ms) },
  )
  const step = fc.record({
    gap,
    cost: fc.oneof(fc.integer({ min: 1, max: 3 }), upTo(capacityOf(spec) + 1)),
    /** Which of the held verdicts is refunded, and how much of it; undefined stands for a charge. */
    which: fc.option(fc.nat(), { freq: 2, nil: undefined }),
    given: fc.oneof(fc.constant(-1), fc.nat()),
  })
  return fc.record({ spec: fc.constant(spec), steps: fc.array(step, { minLength: 3, maxLength: 30 }) })
}
