import { keyed, type Store, type Verdict } from '@sluice/core'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Oracle, type Receipt } from '../support/oracle/oracle.js'
import { createLimiter } from './create-limiter.js'
import { limitOf } from './limit-of.js'
import { Clock, freshKey, type StoreUnderTest } from './store-under-test.js'
import { ALGORITHMS, always, anySpec, fieldsOf, play, specAndTrace, traceFor } from './traces.js'

const UNITS = ['tokens', 'cents', 'Queries-2']
const anyUnit = fc.constantFrom('requests', 'requests', ...UNITS)
/** Amounts of some units; one that is not there is not named. */
const namedUnits = fc.dictionary(fc.constantFrom('requests', 'concurrent-requests', ...UNITS), fc.nat({ max: 9 }))

/** A cost of so many units each, or of the named ones that limits count. */
function costIn(
  units: readonly string[],
  cost: number,
  named: Record<string, number> | null | undefined,
): Record<string, number> {
  const all = named ?? Object.fromEntries(units.map((unit) => [unit, cost]))
  return Object.fromEntries(Object.entries(all).filter(([unit]) => units.includes(unit)))
}

/** Every verdict equals the oracle's, on traces of any shape. */
export function agreementContract(under: StoreUnderTest): void {
  describe(`oracles and ${under.name} agree`, () => {
    const clock = new Clock()
    let store: Store
    let uncached: Store
    beforeAll(async () => {
      store = await under.make(clock.read)
      uncached = await under.make(clock.read, { denyCache: false })
    })
    afterAll(() => Promise.all([store.close(), uncached.close()]))

    for (const algorithm of ALGORITHMS) {
      test(`the store and the oracle agree on every decision of one ${algorithm.title}`, () =>
        always(under, specAndTrace(algorithm), async ({ spec, trace }) => {
          const limiter = createLimiter({ store, limits: [limitOf(spec)] })
          const oracle = new Oracle([spec])
          const key = freshKey()
          await play(clock, trace, async (cost) => {
            const verdict = await limiter.consume(key, { cost })
            const { receipt: _, ...expected } = oracle.consume(clock.now, cost, [key])
            expect(fieldsOf(verdict)).toEqual(expected)
            return verdict
          })
        }))
    }

    for (const algorithm of ALGORITHMS) {
      test(`the store and the oracle agree on equal concurrent decisions of one ${algorithm.title}`, () => {
        const input = fc.record({
          case: specAndTrace(algorithm),
          crowds: fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 24, maxLength: 24 }),
        })
        return always(under, input, async ({ case: { spec, trace }, crowds }) => {
          const limiter = createLimiter({ store: uncached, limits: [limitOf(spec)] })
          const oracle = new Oracle([spec])
          const key = freshKey()
          await play(clock, trace, async (cost, step) => {
            const pending = Array.from({ length: crowds[step] as number }, () => limiter.consume(key, { cost }))
            const verdicts = await Promise.all(pending)
            const expected = verdicts.map(() => {
              const { receipt: _, ...one } = oracle.consume(clock.now, cost, [key])
              return one
            })
            expect(verdicts.map(fieldsOf)).toEqual(expected)
            return verdicts.at(-1) as Verdict
          })
        })
      })
    }

    for (const onDeny of ['none', 'charge'] as const) {
      test(`the store and the oracle agree on several limits over several keys, ${onDeny === 'none' ? 'all or none' : 'refusals charged'}`, () => {
        const input = fc
          .array(fc.record({ spec: anySpec, shared: fc.boolean(), unit: anyUnit }), { minLength: 2, maxLength: 8 })
          .chain((limits) =>
            fc.record({
              limits: fc.constant(limits),
              trace: traceFor(limits.map(({ spec }) => spec)),
              users: fc.array(fc.constantFrom('ann', 'bob'), { minLength: 24, maxLength: 24 }),
              named: fc.array(fc.option(namedUnits), { minLength: 24, maxLength: 24 }),
            }),
          )
        return always(under, input, async ({ limits, trace, users, named }) => {
          const units = limits.map(({ spec, unit }) =>
            spec.algorithm === 'concurrency' ? 'concurrent-requests' : unit,
          )
          const run = freshKey()
          // Limits with one key function share one log.
          const everyone = keyed<string>('run', () => run)
          const limiter = createLimiter<string>({
            // A refusal from the deny cache reports other limits as they were, up to a second earlier.
            store: uncached,
            limits: limits.map(({ spec, shared, unit }) =>
              limitOf<string>(spec, shared ? everyone : undefined, undefined, unit),
            ),
            onDeny,
          })
          const oracle = new Oracle(
            limits.map(({ spec }) => spec),
            onDeny,
            units,
          )
          await play(clock, trace, async (cost, step) => {
            const user = `${run}/${users[step]}`
            const given = costIn(units, cost, named[step])
            const verdict = await limiter.consume(user, { cost: given })
            const keys = limits.map(({ shared }) => (shared ? run : user))
            const { receipt: _, ...expected } = oracle.consume(clock.now, given, keys)
            expect(fieldsOf(verdict)).toEqual(expected)
            return verdict
          })
        })
      })
    }

    test('the store and the oracle agree on permits that are freed and renewed', () => {
      const concurrency = ALGORITHMS.find(({ title }) => title === 'concurrency') as (typeof ALGORITHMS)[number]
      const input = fc.record({
        case: specAndTrace(concurrency),
        freed: fc.array(fc.option(fc.nat(), { freq: 2 }), { minLength: 24, maxLength: 24 }),
      })
      return always(under, input, async ({ case: { spec, trace }, freed }) => {
        const limiter = createLimiter({ store, limits: [limitOf(spec)] })
        const oracle = new Oracle([spec])
        const key = freshKey()
        const held: { verdict: Verdict; receipt: Receipt }[] = []
        await play(clock, trace, async (cost, step) => {
          const free = freed[step]
          const one = typeof free === 'number' ? held[free % held.length] : undefined
          if (one && (free as number) % 3 === 0) {
            await limiter.renew(one.verdict)
            oracle.renew(clock.now, one.receipt)
          } else if (one) {
            if ((free as number) % 3 === 1) await limiter.release(one.verdict)
            else await limiter.refund(key, one.verdict)
            oracle.release(one.receipt)
          }
          const verdict = await limiter.consume(key, { cost })
          const { receipt, ...expected } = oracle.consume(clock.now, cost, [key])
          expect(fieldsOf(verdict)).toEqual(expected)
          if (verdict.allowed) held.push({ verdict, receipt })
          return verdict
        })
      })
    })
  })
}
