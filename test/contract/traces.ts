import type { Limiter, Verdict } from '@sluice/core'
import fc from 'fast-check'
import { byEffort } from '../support/effort.js'
import { capacityOf } from '../support/oracle/oracle.js'
import type { LimitSpec } from '../support/oracle/spec.js'
import { type Clock, MIDNIGHT, type StoreUnderTest } from './store-under-test.js'

/** Random runs per property; more for a longer look: `SLUICE_RUNS=5000`. */
const RUNS = Number(process.env.SLUICE_RUNS ?? byEffort({ quick: 10, usual: 15, full: 1000 }))
/** Set it to the seed that a failure printed to reproduce it. */
const SEED = process.env.SLUICE_SEED === undefined ? {} : { seed: Number(process.env.SLUICE_SEED) }

/** Runs a property; a failure prints its seed and the smallest counterexample. */
export function always<T>(
  under: StoreUnderTest,
  inputs: fc.Arbitrary<T>,
  holds: (input: T) => Promise<void>,
): Promise<void> {
  const numRuns = Math.max(5, Math.round(RUNS * (under.effort ?? 1)))
  return fc.assert(fc.asyncProperty(inputs, holds), { numRuns, ...SEED })
}

const limits = fc.oneof(
  { weight: 1, arbitrary: fc.constant(0) },
  { weight: 12, arbitrary: fc.integer({ min: 1, max: 6 }) },
  { weight: 3, arbitrary: fc.integer({ min: 7, max: 40 }) },
)
const capacities = fc.integer({ min: 1, max: 9 })
const windows = fc.oneof(
  fc.constantFrom(1, 2, 3, 7, 10, 60, 100, 999, 1000, 1001, 60_000, 3_600_000),
  fc.integer({ min: 1, max: 5000 }),
)

const windowOf = (edge: 'weighted' | 'strict' | 'dropped', rounding: 'down' | 'up' = 'down') =>
  fc
    .record({
      limit: limits,
      segments: fc.constantFrom(1, 2, 3, 6, 10, 60),
      length: fc.constantFrom(1, 2, 5, 7, 100, 1000, 60_000),
    })
    .map(
      ({ limit, segments, length }): LimitSpec => ({
        algorithm: 'slidingWindow',
        limit,
        window: segments * length,
        segments,
        edge,
        rounding,
      }),
    )
const rate = { limit: limits, window: windows }
const bucket = { ...rate, capacity: capacities }
const is = <T extends string>(name: T) => fc.constant<T>(name)

/** The facts about an algorithm that properties need beside its numbers. */
export interface AlgorithmUnderTest {
  readonly title: string
  readonly specs: fc.Arbitrary<LimitSpec>
  /** Windows or refills start at multiples on the clock, so the time of day matters. */
  readonly byClock?: true
  /** A charge determines when the window of later ones ends. */
  readonly opens?: true
}

export const ALGORITHMS: readonly AlgorithmUnderTest[] = [
  { title: 'exact log', specs: fc.record({ algorithm: is('slidingLog'), ...rate }) },
  {
    title: 'fixed window by the clock',
    specs: fc.record({ algorithm: is('fixedWindow'), ...rate, anchor: is('clock') }),
    byClock: true,
  },
  {
    title: 'fixed window from the first request',
    specs: fc.record({ algorithm: is('fixedWindow'), ...rate, anchor: is('first-request') }),
    opens: true,
  },
  { title: 'sliding window, edge weighted and rounded down', specs: windowOf('weighted'), byClock: true },
  { title: 'sliding window, edge weighted and rounded up', specs: windowOf('weighted', 'up'), byClock: true },
  { title: 'sliding window, edge strict', specs: windowOf('strict'), byClock: true },
  { title: 'sliding window, edge dropped', specs: windowOf('dropped'), byClock: true },
  { title: 'gcra', specs: fc.record({ algorithm: is('gcra'), ...bucket }) },
  {
    title: 'token bucket, greedy',
    specs: fc.record({ algorithm: is('tokenBucket'), ...bucket, style: is('greedy') }),
  },
  {
    title: 'token bucket, by interval',
    specs: fc.record({ algorithm: is('tokenBucket'), ...bucket, style: is('interval') }),
    byClock: true,
  },
  {
    title: 'leaky bucket as a meter',
    specs: fc.record({ algorithm: is('leakyBucket'), ...bucket, queue: fc.constant(false) }),
  },
  {
    title: 'leaky bucket as a queue',
    specs: fc.record({ algorithm: is('leakyBucket'), ...bucket, queue: fc.constant(true) }),
  },
  { title: 'concurrency', specs: fc.record({ algorithm: is('concurrency'), ...rate }) },
]

/** Any limit of any algorithm. */
export const anySpec: fc.Arbitrary<LimitSpec> = fc.oneof(...ALGORITHMS.map(({ specs }) => specs))

/** One request of a trace. */
export interface Step {
  /** Milliseconds since the previous request, or the instant that the last verdict promised, or the ms before it. */
  readonly gap: number | { readonly to: 'retry' | 'reset'; readonly early: 0 | 1 }
  readonly cost: number
}

export interface Trace {
  readonly start: number
  readonly steps: readonly Step[]
}

/** Bursts, steps, promised instants and idle gaps, around the lengths that matter to `specs`. */
export function traceFor(
  specs: readonly LimitSpec[],
  { promises = true, costs = true, length = 24 }: { promises?: boolean; costs?: boolean; length?: number } = {},
): fc.Arbitrary<Trace> {
  const longest = Math.max(...specs.map(({ window }) => window))
  const shortest = Math.min(...specs.map(({ window }) => window))
  const unit = Math.min(...specs.map(({ limit, window }) => Math.ceil(window / Math.max(1, limit))))
  const capacity = Math.max(...specs.map(capacityOf))
  const upTo = (max: number) => fc.integer({ min: 0, max })
  const gap: fc.Arbitrary<Step['gap']> = fc.oneof(
    { weight: 5, arbitrary: fc.constant(0) },
    { weight: 2, arbitrary: fc.integer({ min: 1, max: 3 }) },
    { weight: 4, arbitrary: upTo(2 * unit) },
    { weight: 2, arbitrary: upTo(shortest) },
    { weight: 1, arbitrary: upTo(longest) },
    { weight: 1, arbitrary: upTo(3 * longest) },
    {
      weight: promises ? 4 : 0,
      arbitrary: fc.record({ to: fc.constantFrom('retry', 'retry', 'reset'), early: fc.constantFrom(0, 1) }),
    },
  )
  const cost = fc.oneof(
    { weight: 6, arbitrary: fc.constant(1) },
    { weight: costs ? 3 : 0, arbitrary: upTo(capacity + 1) },
    { weight: costs ? 1 : 0, arbitrary: fc.constant(capacity) },
  )
  return fc.record({
    start: upTo(2 * longest).map((ms) => MIDNIGHT + ms),
    steps: fc.array(fc.record({ gap, cost }), { minLength: 1, maxLength: length }),
  })
}

/** A spec and a trace for it. */
export function specAndTrace(
  { specs }: AlgorithmUnderTest,
  options?: Parameters<typeof traceFor>[1],
): fc.Arbitrary<{ spec: LimitSpec; trace: Trace }> {
  return specs.chain((spec) => fc.record({ spec: fc.constant(spec), trace: traceFor([spec], options) }))
}

/** A request at one instant, and its verdict. */
export interface Moment {
  readonly at: number
  readonly cost: number
  readonly verdict: Verdict
}

/** Plays a trace; `ask` makes the request after the clock is set. */
export async function play(
  clock: Clock,
  { start, steps }: Trace,
  ask: (cost: number, step: number) => Promise<Verdict>,
): Promise<Moment[]> {
  const moments: Moment[] = []
  clock.now = start
  for (const [i, { gap, cost }] of steps.entries()) {
    clock.now += typeof gap === 'number' ? gap : promised(gap, moments.at(-1)?.verdict)
    moments.push({ at: clock.now, cost, verdict: await ask(cost, i) })
  }
  return moments
}

function promised({ to, early }: Exclude<Step['gap'], number>, last: Verdict | undefined): number {
  const ms = to === 'retry' ? last?.retryAfterMs : last?.resetAfterMs
  return Math.max(0, (ms ?? 0) - early)
}

/** Repeats the same requests at the same instants, on another key or limiter. */
export async function replay(
  clock: Clock,
  limiter: Limiter,
  key: string,
  moments: readonly { at: number; cost: number }[],
): Promise<Verdict[]> {
  const verdicts = []
  for (const { at, cost } of moments) {
    clock.now = at
    verdicts.push(await limiter.consume(key, { cost }))
  }
  return verdicts
}

/** All fields of a verdict, without names. */
export function fieldsOf(verdict: Verdict) {
  const { allowed, reason, remaining, retryAfterMs, resetAfterMs, delayMs, limits } = verdict
  return {
    allowed,
    reason,
    remaining,
    retryAfterMs,
    resetAfterMs,
    delayMs,
    limits: limits.map(({ allowed, remaining, retryAfterMs, resetAfterMs }) => ({
      allowed,
      remaining,
      retryAfterMs,
      resetAfterMs,
    })),
  }
}
