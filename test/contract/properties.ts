import type { Limiter, Store, Verdict } from '@sluice/core'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { capacityOf } from '../support/oracle/oracle.js'
import type { LimitSpec } from '../support/oracle/spec.js'
import { createLimiter } from './create-limiter.js'
import { limitOf } from './limit-of.js'
import { Clock, freshKey, type StoreUnderTest } from './store-under-test.js'
import { ALGORITHMS, always, anySpec, fieldsOf, play, replay, specAndTrace, traceFor } from './traces.js'

/** Properties of every algorithm on any trace. None of them depends on how an algorithm computes. */
export function propertiesContract(under: StoreUnderTest): void {
  const clock = new Clock()
  let store: Store
  beforeAll(async () => {
    store = await under.make(clock.read)
  })
  afterAll(() => store.close())
  const limiterOf = (...specs: LimitSpec[]) =>
    createLimiter({ store, limits: specs.map((spec) => limitOf<string>(spec)) })

  for (const algorithm of ALGORITHMS) {
    describe(`${algorithm.title} on ${under.name}`, () => {
      const cases = specAndTrace(algorithm)

      test('a refusal changes nothing, then or later', () =>
        always(under, cases, async ({ spec, trace }) => {
          const limiter = limiterOf(spec)
          const [hammered, spared] = [freshKey(), freshKey()]
          const moments = await play(clock, trace, (cost) => limiter.consume(hammered, { cost }))
          const admitted = moments.filter(({ verdict }) => verdict.allowed)
          const verdicts = await replay(clock, limiter, spared, admitted)
          expect(verdicts.map(fieldsOf)).toEqual(admitted.map(({ verdict }) => fieldsOf(verdict)))
        }))

      test('a request is refused until the instant that a refusal names, and admitted exactly at it', () =>
        always(under, cases, async ({ spec, trace }) => {
          const limiter = limiterOf(spec)
          const key = freshKey()
          await play(clock, trace, async (cost) => {
            const verdict = await limiter.consume(key, { cost })
            const { allowed, retryAfterMs, reason } = verdict
            if (retryAfterMs === undefined) {
              expect({ allowed, reason }).toEqual({ allowed: false, reason: 'impossible' })
              expect(cost).toBeGreaterThan(capacityOf(spec))
            } else if (!allowed) {
              await expectTurn(clock, retryAfterMs, () => limiter.peek(key, { cost }))
            } else {
              expect(retryAfterMs).toBe(0)
            }
            return verdict
          })
        }))

      test('the full capacity is available exactly at the instant that a verdict names', () =>
        always(under, cases, async ({ spec, trace }) => {
          const limiter = limiterOf(spec)
          const key = freshKey()
          await play(clock, trace, async (cost) => {
            const verdict = await limiter.consume(key, { cost })
            const full = () => limiter.peek(key, { cost: capacityOf(spec) })
            if (capacityOf(spec) > 0) await expectTurn(clock, verdict.resetAfterMs, full)
            return verdict
          })
        }))

      test('the reported remaining cost is admitted and one unit more is refused', () =>
        always(under, cases, async ({ spec, trace }) => {
          const limiter = limiterOf(spec)
          const key = freshKey()
          let remaining = 0
          await play(clock, trace, async (cost) => {
            const verdict = await limiter.consume(key, { cost })
            remaining = verdict.remaining
            expect((await limiter.peek(key, { cost: remaining })).allowed).toBe(true)
            expect((await limiter.peek(key, { cost: remaining + 1 })).allowed).toBe(false)
            return verdict
          })
          expect((await limiter.consume(key, { cost: remaining + 1 })).allowed).toBe(false)
          expect((await limiter.consume(key, { cost: remaining })).allowed).toBe(true)
          expect((await limiter.consume(key)).allowed).toBe(false)
        }))

      test('a peek predicts the next decision and changes nothing', () =>
        always(under, cases, async ({ spec, trace }) => {
          const limiter = limiterOf(spec)
          const [watched, unwatched] = [freshKey(), freshKey()]
          const moments = await play(clock, trace, async (cost) => {
            const peek = await limiter.peek(watched, { cost })
            expect(fieldsOf(await limiter.peek(watched, { cost }))).toEqual(fieldsOf(peek))
            const verdict = await limiter.consume(watched, { cost })
            expect(predicted(peek)).toEqual(predicted(verdict))
            expect(peek.remaining).toBe(verdict.allowed ? verdict.remaining + cost : verdict.remaining)
            return verdict
          })
          const verdicts = await replay(clock, limiter, unwatched, moments)
          expect(verdicts.map(fieldsOf)).toEqual(moments.map(({ verdict }) => fieldsOf(verdict)))
        }))

      test('n units at once are decided like n times one unit', () =>
        always(under, cases, async ({ spec, trace }) => {
          const limiter = limiterOf(spec)
          const [whole, single] = [freshKey(), freshKey()]
          await play(clock, trace, async (cost) => {
            const before = await limiter.peek(whole, { cost: 0 })
            const verdict = await limiter.consume(whole, { cost })
            const units: Verdict[] = []
            // A refused total charges nothing, so its parts are consumed only where the total is admitted.
            const parts = verdict.allowed ? cost : 0
            for (let i = 0; i < parts; i++) units.push(await limiter.consume(single))
            expect(units.filter(({ allowed }) => allowed)).toHaveLength(parts)
            expect(verdict.allowed).toBe(cost <= before.remaining)
            expect(fieldsOf(await limiter.peek(single))).toEqual(fieldsOf(await limiter.peek(whole)))
            return verdict
          })
        }))

      test('a state that is forgotten once it is as good as new changes no later decision', () =>
        always(under, cases.chain(withLater), async ({ spec, trace, later }) => {
          const limiter = limiterOf(spec)
          const [used, fresh, forgotten] = [freshKey(), freshKey(), freshKey()]
          const moments = await play(clock, trace, (cost) => limiter.consume(used, { cost }))
          await replay(clock, limiter, forgotten, moments)
          await limiter.reset(forgotten)
          const rest = { ...later, start: clock.now + (moments.at(-1)?.verdict.resetAfterMs ?? 0) }
          const after = await play(clock, rest, (cost) => limiter.consume(used, { cost }))
          const expected = after.map(({ verdict }) => fieldsOf(verdict))
          expect((await replay(clock, limiter, fresh, after)).map(fieldsOf)).toEqual(expected)
          expect((await replay(clock, limiter, forgotten, after)).map(fieldsOf)).toEqual(expected)
        }))

      test('a key is as good as new at once after a reset', () =>
        always(under, cases.chain(withLater), async ({ spec, trace, later }) => {
          const limiter = limiterOf(spec)
          const [used, fresh] = [freshKey(), freshKey()]
          await play(clock, trace, (cost) => limiter.consume(used, { cost }))
          await limiter.reset(used)
          const after = await play(clock, { ...later, start: clock.now }, (cost) => limiter.consume(used, { cost }))
          const expected = after.map(({ verdict }) => fieldsOf(verdict))
          expect((await replay(clock, limiter, fresh, after)).map(fieldsOf)).toEqual(expected)
        }))

      test('a refund at the same instant restores the state exactly', () =>
        always(under, fc.record({ case: cases, cost: fc.nat({ max: 9 }) }), async ({ case: { spec, trace }, cost }) => {
          const limiter = limiterOf(spec)
          const [used, control] = [freshKey(), freshKey()]
          const moments = await play(clock, trace, async (ask) => {
            const before = fieldsOf(await limiter.peek(used))
            const extra = await limiter.consume(used, { cost })
            expect(await limiter.refund(used, extra)).toBe(extra.allowed && cost > 0)
            expect(await limiter.refund(used, extra)).toBe(false)
            expect(fieldsOf(await limiter.peek(used))).toEqual(before)
            return limiter.consume(used, { cost: ask })
          })
          const verdicts = await replay(clock, limiter, control, moments)
          expect(verdicts.map(fieldsOf)).toEqual(moments.map(({ verdict }) => fieldsOf(verdict)))
        }))

      test('a later refund leaves no more room than if the charge had never been made', () =>
        always(under, fc.record({ case: cases, which: fc.nat(), wait: fc.nat() }), async (input) => {
          const { spec, trace } = input.case
          const limiter = limiterOf(spec)
          const [charged, control] = [freshKey(), freshKey()]
          const moments = await play(clock, trace, (cost) => limiter.consume(charged, { cost }))
          const admitted = moments.filter(({ verdict, cost }) => verdict.allowed && cost > 0)
          if (admitted.length === 0) return
          const refunded = admitted[input.which % admitted.length] as (typeof admitted)[number]
          const others = admitted.filter((moment) => moment !== refunded)
          const at = clock.now + (input.wait % (2 * spec.window))
          await replay(clock, limiter, control, others)

          clock.now = at
          const before = await limiter.peek(charged)
          await limiter.refund(charged, refunded.verdict)
          await limiter.refund(charged, refunded.verdict)
          const after = await limiter.peek(charged)
          expect(after.remaining).toBeGreaterThanOrEqual(before.remaining)
          expect(after.remaining).toBeLessThanOrEqual(Math.min(before.remaining + refunded.cost, capacityOf(spec)))
          expect(after.resetAfterMs).toBeLessThanOrEqual(before.resetAfterMs)
          // Without that charge, a later one would have opened another window, so the two cannot be compared.
          if (algorithm.opens && others.some((moment) => moment.at > refunded.at)) return
          for (const ms of instants(2 * before.resetAfterMs + 2)) {
            clock.now = at + ms
            const without = await limiter.peek(control)
            expect((await limiter.peek(charged)).remaining, `${ms} ms later`).toBeLessThanOrEqual(without.remaining)
          }
        }))

      test('a clock that steps back adds no room and locks no client out for long', () =>
        always(under, fc.record({ case: cases, back: fc.nat(), late: fc.nat() }), async (input) => {
          const { spec, trace } = input.case
          const limiter = limiterOf(spec)
          const key = freshKey()
          const moments = await play(clock, trace, (cost) => limiter.consume(key, { cost }))
          const { at } = moments.at(-1) as (typeof moments)[number]
          clock.now = at + (input.late % (2 * spec.window))
          const before = await limiter.peek(key, { cost: 0 })
          const back = 1 + (input.back % (4 * spec.window))
          clock.now -= back
          const after = await limiter.peek(key, { cost: 0 })
          expect(after.remaining).toBeLessThanOrEqual(before.remaining)
          const full = { cost: capacityOf(spec) }
          if (full.cost === 0) return
          const verdict = await limiter.consume(key, full)
          expect(verdict.retryAfterMs).toBeLessThanOrEqual(longestReset(spec) + spec.window)
          if (!verdict.allowed) await expectTurn(clock, verdict.retryAfterMs as number, () => limiter.peek(key, full))
        }))

      // In windows anchored to the clock, the number admitted depends on when requests arrive.
      if (!algorithm.byClock && !algorithm.opens) {
        const steps = specAndTrace(algorithm, { promises: false, costs: false })
        test('a clock that steps back never admits more than one that goes forward', () =>
          always(under, fc.record({ case: steps, back: fc.nat(), when: fc.nat() }), async (input) => {
            const { spec, trace } = input.case
            const limiter = limiterOf(spec)
            const [stepped, steady] = [freshKey(), freshKey()]
            const moments = await play(clock, trace, (cost) => limiter.consume(steady, { cost }))
            const when = input.when % moments.length
            const back = 1 + (input.back % (3 * spec.window))
            const times = moments.map(({ at }, i) => ({ at: i < when ? at : at - back, cost: 1 }))
            const verdicts = await replay(clock, limiter, stepped, times)
            let [more, fewer] = [0, 0]
            for (const [i, { verdict }] of moments.entries()) {
              if (verdict.allowed) more++
              if (verdicts[i]?.allowed) fewer++
              expect(fewer, `after request ${i + 1}`).toBeLessThanOrEqual(more)
            }
          }))
      }
    })
  }

  describe(`several limits on ${under.name}`, () => {
    const several = fc.array(anySpec, { minLength: 2, maxLength: 4 }).chain((specs) =>
      fc.record({
        specs: fc.constant(specs),
        order: fc.shuffledSubarray([...specs.keys()], { minLength: specs.length }),
        trace: traceFor(specs),
      }),
    )

    test('a refusal by one of several limits charges none', () =>
      always(under, several, async ({ specs, trace }) => {
        const limiter = limiterOf(...specs)
        const key = freshKey()
        await play(clock, trace, async (cost) => {
          const before = await limiter.peek(key)
          const verdict = await limiter.consume(key, { cost })
          const after = await limiter.peek(key)
          if (!verdict.allowed) expect(fieldsOf(after)).toEqual(fieldsOf(before))
          else expect(after.limits.map(left)).toEqual(before.limits.map((limit) => left(limit) - cost))
          return verdict
        })
      }))

    test('the order of several limits changes no verdict', () =>
      always(under, several, async ({ specs, order, trace }) => {
        const written = limiterOf(...specs)
        const shuffled = limiterOf(...order.map((i) => specs[i] as LimitSpec))
        const [one, other] = [freshKey(), freshKey()]
        const moments = await play(clock, trace, (cost) => written.consume(one, { cost }))
        const verdicts = await replay(clock, shuffled, other, moments)
        const expected = moments.map(({ verdict }) => {
          const { limits, ...whole } = fieldsOf(verdict)
          return { ...whole, limits: order.map((i) => limits[i]) }
        })
        expect(verdicts.map(fieldsOf)).toEqual(expected)
      }))

    test('a request is refused until the instant that a refusal names, and admitted exactly at it', () =>
      always(under, several, async ({ specs, trace }) => {
        const limiter = limiterOf(...specs)
        const key = freshKey()
        await play(clock, trace, async (cost) => {
          const verdict = await limiter.consume(key, { cost })
          const { allowed, retryAfterMs } = verdict
          if (!allowed && retryAfterMs !== undefined)
            await expectTurn(clock, retryAfterMs, () => limiter.peek(key, { cost }))
          return verdict
        })
      }))

    test('a refund at the same instant restores every one of several limits', () =>
      always(under, several, async ({ specs, trace }) => {
        const limiter = limiterOf(...specs)
        const key = freshKey()
        await play(clock, trace, async (cost) => {
          const before = fieldsOf(await limiter.peek(key))
          await limiter.refund(key, await limiter.consume(key, { cost }))
          expect(fieldsOf(await limiter.peek(key))).toEqual(before)
          return limiter.consume(key, { cost })
        })
      }))
  })

  describe(`equivalent algorithms on ${under.name}`, () => {
    const same = (title: string, specs: fc.Arbitrary<LimitSpec[]>) =>
      test(title, () =>
        always(
          under,
          specs.chain((specs) => fc.record({ specs: fc.constant(specs), trace: traceFor(specs) })),
          async ({ specs, trace }) => {
            const [first, ...others] = specs.map((spec) => limiterOf(spec)) as [Limiter, ...Limiter[]]
            const key = freshKey()
            const moments = await play(clock, trace, (cost) => first.consume(key, { cost }))
            const expected = moments.map(({ verdict }) => fieldsOf(verdict))
            for (const other of others) {
              expect((await replay(clock, other, freshKey(), moments)).map(fieldsOf)).toEqual(expected)
            }
          },
        ),
      )

    const small = { limit: fc.integer({ min: 1, max: 9 }), window: fc.integer({ min: 1, max: 5000 }) }
    same(
      'a sliding window of one segment with a dropped edge equals a fixed window by the clock',
      fc.record(small).map((rate) => [
        { algorithm: 'fixedWindow', ...rate, anchor: 'clock' },
        { algorithm: 'slidingWindow', ...rate, segments: 1, edge: 'dropped' },
      ]),
    )
    same(
      'gcra, the greedy token bucket and the leaky bucket as a meter decide alike',
      fc.record({ ...small, capacity: fc.integer({ min: 1, max: 9 }) }).map((bucket) => [
        { algorithm: 'gcra', ...bucket },
        { algorithm: 'tokenBucket', ...bucket, style: 'greedy' },
        { algorithm: 'leakyBucket', ...bucket, queue: false },
      ]),
    )
  })
}

const left = ({ remaining }: { remaining: number }) => remaining

/** The fields in which a peek and the decision after it agree. */
function predicted({ allowed, reason, retryAfterMs, delayMs, limits }: Verdict) {
  return {
    allowed,
    reason,
    retryAfterMs,
    delayMs,
    limits: limits.map(({ allowed, retryAfterMs }) => ({ allowed, retryAfterMs })),
  }
}

/** The first, second, middle and last millisecond of `ms`. */
function instants(ms: number): number[] {
  return [...new Set([0, 1, Math.floor(ms / 2), ms - 1])].filter((at) => at >= 0 && at < ms)
}

/** Expects refusals at the first, middle and last ms before, and admission exactly at it. Restores the clock. */
async function expectTurn(clock: Clock, afterMs: number, ask: () => Promise<Verdict>): Promise<void> {
  const start = clock.now
  for (const ms of instants(afterMs)) {
    clock.now = start + ms
    expect((await ask()).allowed, `${ms} ms on, ${afterMs - ms} ms early`).toBe(false)
  }
  clock.now = start + afterMs
  expect((await ask()).allowed, `at the promised instant, ${afterMs} ms on`).toBe(true)
  clock.now = start
}

function withLater({ spec, trace }: { spec: LimitSpec; trace: Parameters<typeof play>[1] }) {
  return fc.record({ spec: fc.constant(spec), trace: fc.constant(trace), later: traceFor([spec], { length: 8 }) })
}

/** The longest time until a state is as good as new, while the clock goes forward. */
function longestReset(spec: LimitSpec): number {
  const { algorithm, limit, window } = spec
  if (algorithm === 'slidingWindow') return window + window / spec.segments
  return limit === 0 ? 0 : Math.ceil(capacityOf(spec) / limit) * window
}
