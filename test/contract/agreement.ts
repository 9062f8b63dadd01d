import { createLimiter, keyed, type Store, type Verdict } from '@sluice/core'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Oracle, type Receipt } from '../support/oracle/oracle.js'
import { limitOf } from './limit-of.js'
import { Clock, freshKey, type StoreUnderTest } from './store-under-test.js'
import { ALGORITHMS, always, anySpec, play, said, specAndTrace, traceFor } from './traces.js'

/** Every verdict is what the oracle says, on traces of any shape. */
export function agreementContract(under: StoreUnderTest): void {
  describe(`oracles and ${under.name} agree`, () => {
    const clock = new Clock()
    let store: Store
    let asking: Store
    beforeAll(async () => {
      store = await under.make(clock.read)
      asking = await under.make(clock.read, { denyCache: false })
    })
    afterAll(() => Promise.all([store.close(), asking.close()]))

    for (const algorithm of ALGORITHMS) {
      test(`on every decision of one ${algorithm.title}`, () =>
        always(under, specAndTrace(algorithm), async ({ spec, trace }) => {
          const limiter = createLimiter({ store, limits: [limitOf(spec)] })
          const oracle = new Oracle([spec])
          const key = freshKey()
          await play(clock, trace, async (cost) => {
            const verdict = await limiter.consume(key, { cost })
            const { receipt: _, ...expected } = oracle.consume(clock.now, cost, [key])
            expect(said(verdict)).toEqual(expected)
            return verdict
          })
        }))
    }

    for (const algorithm of ALGORITHMS) {
      test(`on equal decisions of one ${algorithm.title}, asked at once`, () => {
        const input = fc.record({
          case: specAndTrace(algorithm),
          crowds: fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 24, maxLength: 24 }),
        })
        return always(under, input, async ({ case: { spec, trace }, crowds }) => {
          const limiter = createLimiter({ store: asking, limits: [limitOf(spec)] })
          const oracle = new Oracle([spec])
          const key = freshKey()
          await play(clock, trace, async (cost, step) => {
            const asked = Array.from({ length: crowds[step] as number }, () => limiter.consume(key, { cost }))
            const verdicts = await Promise.all(asked)
            const expected = verdicts.map(() => {
              const { receipt: _, ...one } = oracle.consume(clock.now, cost, [key])
              return one
            })
            expect(verdicts.map(said)).toEqual(expected)
            return verdicts.at(-1) as Verdict
          })
        })
      })
    }

    for (const onDeny of ['none', 'charge'] as const) {
      test(`on several limits over several keys, ${onDeny === 'none' ? 'all or none' : 'refusals charged'}`, () => {
        const input = fc
          .array(fc.record({ spec: anySpec, shared: fc.boolean() }), { minLength: 2, maxLength: 4 })
          .chain((limits) =>
            fc.record({
              limits: fc.constant(limits),
              trace: traceFor(limits.map(({ spec }) => spec)),
              users: fc.array(fc.constantFrom('ann', 'bob'), { minLength: 24, maxLength: 24 }),
            }),
          )
        return always(under, input, async ({ limits, trace, users }) => {
          const run = freshKey()
          // One function for all that share, so that their logs are one log.
          const everyone = keyed<string>('run', () => run)
          const limiter = createLimiter<string>({
            // What others do to a limit with room, a refusal that is told again tells up to a second late.
            store: asking,
            limits: limits.map(({ spec, shared }) => limitOf<string>(spec, shared ? everyone : undefined)),
            onDeny,
          })
          const oracle = new Oracle(
            limits.map(({ spec }) => spec),
            onDeny,
          )
          await play(clock, trace, async (cost, step) => {
            const user = `${run}/${users[step]}`
            const verdict = await limiter.consume(user, { cost })
            const keys = limits.map(({ shared }) => (shared ? run : user))
            const { receipt: _, ...expected } = oracle.consume(clock.now, cost, keys)
            expect(said(verdict)).toEqual(expected)
            return verdict
          })
        })
      })
    }

    test('on permits that are freed and renewed', () => {
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
          expect(said(verdict)).toEqual(expected)
          if (verdict.allowed) held.push({ verdict, receipt })
          return verdict
        })
      })
    })
  })
}
