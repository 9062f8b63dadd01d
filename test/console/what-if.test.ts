import {
  concurrency,
  fixedWindow,
  gcra,
  keyed,
  type Limit,
  type Limiter,
  leakyBucket,
  memoryStore,
  slidingLog,
  slidingWindow,
  tokenBucket,
  type Verdict,
} from '@sluice/core'
import { USED_BOUNDS } from '@sluice/core/internal'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { mostRefused } from '../../packages/console/src/figures/what-if.js'
import { RESIZED } from '../../packages/core/src/metrics/use-counts.js'
import { byEffort } from '../support/effort.js'
import { Counts, decisionOf, makeLimiter, neededOf, REFUND } from '../support/inside.js'

interface Visit {
  readonly afterMs: number
  readonly user: string
  readonly team: string
}

const visits = fc.array(
  fc.record({
    afterMs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 400 }), fc.integer({ min: 400, max: 12_000 })),
    user: fc.constantFrom('ann', 'bob', 'eve'),
    team: fc.constantFrom('red', 'blue'),
  }),
  { minLength: 20, maxLength: 300 },
)

const byUser = keyed('person', ({ user }: Visit) => user)
const byTeam = keyed('team', ({ team }: Visit) => team)

/** A limit of so many units, in which all else stays: buckets refill as before. */
type LimitOf = (units: number, present: number) => Limit<Visit>
const common = { name: 'one', window: '4s', key: byUser } as const
const LIMITS: Readonly<Record<string, LimitOf>> = {
  'fixedWindow by the clock': (limit) => fixedWindow({ ...common, limit }),
  'fixedWindow from the first request': (limit) => fixedWindow({ ...common, limit, anchor: 'first-request' }),
  slidingWindow: (limit) => slidingWindow({ ...common, limit }),
  'slidingWindow in segments': (limit) => slidingWindow({ ...common, limit, segments: 4 }),
  slidingLog: (limit) => slidingLog({ ...common, limit }),
  gcra: (burst, limit) => gcra({ ...common, limit, burst }),
  tokenBucket: (capacity, refill) => tokenBucket({ name: 'one', capacity, refill, every: '4s', key: byUser }),
  leakyBucket: (capacity, limit) => leakyBucket({ ...common, limit, capacity }),
}
const BESIDE: Readonly<Record<string, (limit: Limit<Visit>) => object>> = {
  alone: (limit) => ({ limits: [limit] }),
  'beside another limit': (limit) => ({
    limits: [limit, slidingLog({ name: 'two', limit: 9, window: '15s', key: byTeam })],
  }),
  'with a ban': (limit) => ({ limits: [limit], ban: { by: 'person', after: 3, within: '10s', for: ['5s', '9s'] } }),
  'if refusals count': (limit) => ({ limits: [limit], onDeny: 'charge' }),
}

/** Decisions of a real limiter with a clock that is turned: the refusals by the limit `one`, and its figures. */
async function decided(all: readonly Visit[], options: object, cost = 1) {
  const counts = new Counts()
  let now = 1_800_000_000_000
  const store = memoryStore({ clock: () => now })
  const { limiter } = makeLimiter<Visit>({ name: 'what-if', store, ...options } as never)
  let refused = 0
  for (const visit of all) {
    now += visit.afterMs
    const verdict = await limiter.consume(visit, { cost })
    counts.decided(verdict)
    if (verdict.limits.some(({ name, allowed }) => name === 'one' && !allowed)) refused++
  }
  await store.close()
  const row = counts.policies.flatMap((policy) => policy.uses()).find(({ limit }) => limit === 'one')
  if (!row) throw new Error('the limit is not counted')
  const { policy, limit, decisions, capacity, refusedElsewhere } = row
  const used = { policy, limit, decisions, capacity: capacity || null, refusedElsewhere, bounds: USED_BOUNDS }
  return { refused, used: { ...used, counts: neededOf(row).counts, p50: null, p90: null, p99: null } }
}

describe.each(Object.entries(LIMITS))('%s', (name, limitOf) => {
  test.each(Object.keys(BESIDE))('a lower limit refuses no more requests than its bound: %s', async (beside) => {
    const optionsOf = BESIDE[beside] as (limit: Limit<Visit>) => object
    const isBounded =
      name !== 'fixedWindow from the first request' || beside === 'alone' || beside === 'if refusals count'
    await fc.assert(
      fc.asyncProperty(visits, fc.integer({ min: 2, max: 12 }), fc.nat(), async (all, present, seed) => {
        const lower = 1 + (seed % (present - 1))
        const { used } = await decided(all, optionsOf(limitOf(present, present)))
        const { refused } = await decided(all, optionsOf(limitOf(lower, present)))
        const most = mostRefused(used, lower)
        if (isBounded) expect(most).toBeGreaterThanOrEqual(refused)
        else expect(most).toBeUndefined()
      }),
      { numRuns: byEffort({ quick: 10, usual: 50, full: 1000 }) },
    )
  })
})

describe('nothing bounds what a lower limit would have refused', () => {
  const ann: Visit = { afterMs: 0, user: 'ann', team: 'red' }
  const usedAfter = async (options: object, use: (limiter: Limiter<Visit>) => Promise<Verdict>) => {
    const counts = new Counts()
    const { limiter } = makeLimiter<Visit>({ name: 'what-if', store: memoryStore(), ...options } as never)
    const verdict = await use(limiter)
    counts.decided(verdict)
    return {
      counts,
      decision: decisionOf(verdict),
      capacities: () => counts.policies[0]?.uses().map((row) => row.capacity),
    }
  }
  const once = (limiter: Limiter<Visit>) => limiter.consume(ann)
  const log = (limit: number) => slidingLog({ ...common, limit })

  test('if a request costs more than 1', async () => {
    const of = (cost: number | { readonly requests: number }) =>
      usedAfter({ limits: [log(5)] }, (limiter) => limiter.consume(ann, { cost } as { cost: number }))
    for (const cost of [1, { requests: 1 }]) expect((await of(cost)).capacities()).toEqual([5])
    for (const cost of [2, { requests: 2 }]) expect((await of(cost)).capacities()).toEqual([0])
  })

  test('if units come back', async () => {
    const { counts, decision, capacities } = await usedAfter({ limits: [log(5)] }, once)
    counts.changedCharge({ ...decision.request, op: REFUND })
    expect(capacities()).toEqual([0])
  })

  test('if requests wait for their turn, or hold permits', async () => {
    const { counts, capacities } = await usedAfter({ limits: [log(5)] }, once)
    counts.waits('what-if')
    expect(capacities()).toEqual([0])
    expect((await usedAfter({ limits: [concurrency({ limit: 5, key: byUser })] }, once)).capacities()).toEqual([0])
  })

  test('if the limit was another one before', async () => {
    const { counts, capacities } = await usedAfter({ limits: [log(5)] }, once)
    counts.decided(await makeLimiter<Visit>({ name: 'what-if', limits: [log(6)] } as never).limiter.consume(ann))
    counts.decided(await makeLimiter<Visit>({ name: 'what-if', limits: [log(5)] } as never).limiter.consume(ann))
    expect(capacities()).toEqual([RESIZED])
  })

  test('for a limit that is not lower, or none at all', async () => {
    const { used } = await decided([ann], { limits: [log(5)] })
    expect([0, 0.5, 1, 4, 5, 6, Number.NaN].map((units) => mostRefused(used, units))).toEqual([
      undefined,
      undefined,
      0,
      0,
      undefined,
      undefined,
      undefined,
    ])
  })
})
