// Takes long: begins first.
import { createLimiter, type Limiter, redisStore, type Store, type Verdict } from '@sluice/core'
import { BANS } from '@sluice/core/store'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { limitOf } from '../../contract/limit-of.js'
import { Clock, freshKey, MIDNIGHT } from '../../contract/store-under-test.js'
import { ALGORITHMS, always } from '../../contract/traces.js'
import { capacityOf, roomOf } from '../../support/oracle/oracle.js'
import type { Charge, LimitSpec } from '../../support/oracle/spec.js'
import { redisForTests } from '../../support/redis-for-tests.js'

const { client } = await redisForTests()

const PROCESSES = 3
const redis = { name: 'redis', make: () => redisStore(client), close: async () => {} }

/** Events of one instant: requests, at once or one after the other, and refunds. */
interface Step {
  readonly gap: number
  /** The delay until the requests reach the store. */
  readonly late: number
  readonly requests: readonly { readonly process: number; readonly cost: number; readonly times: number }[]
  readonly together: boolean
  /** The verdicts that are refunded, and the share that stays charged. */
  readonly refunds: readonly { readonly which: number; readonly share: number }[]
}

interface Run {
  /** Decided together, all or none. */
  readonly specs: readonly LimitSpec[]
  readonly ttl: number
  readonly size: number
  readonly start: number
  readonly steps: readonly Step[]
}

/** Limits with more units to lease than those of other tests. */
function roomy(specs: fc.Arbitrary<LimitSpec>): fc.Arbitrary<LimitSpec> {
  return specs
    .filter(({ window, limit }) => window >= 7 && limit > 0)
    .map((spec) => ({
      ...spec,
      limit: spec.limit * 9,
      ...('capacity' in spec && { capacity: capacityOf(spec) * 9 }),
    }))
}

/** Limits and a lease for them; many requests within its ttl and some beyond it, at the critical instants. */
function runsOf(policies: fc.Arbitrary<readonly LimitSpec[]>): fc.Arbitrary<Run> {
  const upTo = (max: number) => fc.integer({ min: 0, max })
  const ask = fc.record({
    process: upTo(PROCESSES - 1),
    times: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 12 }), fc.constantFrom(20, 40)),
    cost: fc.oneof({ weight: 5, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.integer({ min: 1, max: 5 }) }),
  })
  const refund = fc.record({ which: upTo(40), share: fc.double({ min: 0, max: 1, noNaN: true }) })
  return policies
    .chain((specs) => {
      const most = Math.min(...specs.map(({ window }) => window))
      const ttls = fc.oneof(fc.integer({ min: 1, max: most }), fc.integer({ min: 1, max: Math.ceil(most / 3) }))
      return fc.record({ specs: fc.constant(specs), ttl: ttls })
    })
    .filter(({ specs, ttl }) => specs.every((spec) => isPossible(spec, ttl)))
    .chain(({ specs, ttl }) => {
      const ends = specs.flatMap(({ window }) => [window - ttl, window - ttl + 1, window - 1])
      const gap = fc.oneof(
        { weight: 9, arbitrary: fc.constant(0) },
        { weight: 3, arbitrary: upTo(3) },
        { weight: 4, arbitrary: fc.constantFrom(ttl, ttl - 1, ...ends) },
        { weight: 2, arbitrary: upTo(ttl) },
        { weight: 1, arbitrary: upTo(2 * Math.max(...specs.map(({ window }) => window))) },
      )
      const step = fc.record({
        gap,
        late: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: gap }),
        requests: fc.array(ask, { maxLength: 6 }),
        together: fc.boolean(),
        refunds: fc.array(refund, { maxLength: 2 }),
      })
      return fc.record({
        specs: fc.constant(specs),
        ttl: fc.constant(ttl),
        size: fc.integer({ min: 1, max: 30 }),
        start: upTo(2 * Math.max(...specs.map(({ window }) => window))).map((ms) => MIDNIGHT + ms),
        steps: fc.array(step, { minLength: 4, maxLength: 30 }),
      })
    })
}

/** Whether the lease leaves room in the limit; otherwise the limit is rejected. */
function isPossible(spec: LimitSpec, ttl: number): boolean {
  const isGreedy = 'capacity' in spec && !('style' in spec && spec.style === 'interval')
  return !isGreedy || capacityOf(spec) - Math.ceil((ttl * spec.limit) / spec.window) >= 1
}

/** Admissions with their instants, without those that were refunded. */
class Admissions {
  readonly #charges: Charge[] = []
  readonly #verdicts: { readonly verdict: Verdict; readonly charge: Charge }[] = []
  readonly #specs: readonly LimitSpec[]

  constructor(specs: readonly LimitSpec[]) {
    this.#specs = specs
  }

  /** Fails unless every limit, without its lease, had room at the instant of the admission. */
  admit(at: number, cost: number, verdict: Verdict): void {
    for (const spec of this.#specs) {
      const room = roomOf(spec)(this.#charges, at)
      expect(room, `room at ${at - MIDNIGHT} for ${cost} in ${spec.algorithm}`).toBeGreaterThanOrEqual(cost)
    }
    const charge = { at, cost }
    this.#charges.push(charge)
    this.#verdicts.push({ verdict, charge })
  }

  async refund(which: number, share: number): Promise<void> {
    const [chosen] = this.#verdicts.splice(which, 1)
    if (!chosen) return
    const { verdict, charge } = chosen
    const stays = Math.floor(charge.cost * share)
    if (!(await verdict.settle(stays))) return
    const at = this.#charges.indexOf(charge)
    this.#charges.splice(at, 1, ...(stays > 0 ? [{ ...charge, cost: stays }] : []))
  }
}

/** Plays a run on one clock, with one store for each process. */
async function play({ specs, size, ttl, start, steps }: Run): Promise<void> {
  const clock = new Clock()
  clock.now = start
  const watched = { wasImmediate: false }
  // Requests together are sent to Redis in one batch.
  const options = { clock: clock.read, timeout: 5000, batch: 1000 }
  const stores = Array.from({ length: PROCESSES }, () => redisStore(client, options))
  const limits = specs.map((spec) => limitOf<string>(spec, undefined, { size, ttl }))
  const limiters = stores.map((store) => createLimiter({ name: 'leased', store: watch(store, watched), limits }))
  const admissions = new Admissions(specs)
  const key = freshKey()
  // When refunds empty its window, a key opens the next one with its next request.
  const hasRefunds = specs.every((spec) => !(spec.algorithm === 'fixedWindow' && spec.anchor === 'first-request'))
  try {
    for (const { gap, late, requests, together, refunds } of steps) {
      clock.now += gap
      for (const { which, share } of hasRefunds ? refunds : []) await admissions.refund(which, share)
      const sent = []
      for (const { process, cost } of requests.flatMap((ask) => new Array<typeof ask>(ask.times).fill(ask))) {
        const decided = (limiters[process] as Limiter).consume(key, { cost })
        // A leased unit is admitted at once, others when the request reaches Redis.
        const spentAt = watched.wasImmediate ? clock.now : undefined
        const pending = decided.then((verdict) => ({ verdict, cost, at: spentAt ?? clock.now }))
        sent.push(pending)
        if (!together) await pending
      }
      if (together && sent.length > 0) clock.now += late
      const results = await Promise.all(sent)
      for (const { verdict, cost, at } of results.sort((a, b) => a.at - b.at)) {
        if (verdict.allowed) admissions.admit(at, cost, verdict)
      }
    }
  } finally {
    for (const store of stores) await store.close()
  }
}

const leasable = ALGORITHMS.filter(({ title }) => title !== 'concurrency' && title !== 'leaky bucket as a queue')
const anyLimit = roomy(fc.oneof(...leasable.map(({ specs }) => specs)))
const policies = [
  ...leasable.map(({ title, specs }) => ({ title, of: roomy(specs).map((spec) => [spec]) })),
  { title: 'several limits together', of: fc.array(anyLimit, { minLength: 2, maxLength: 3 }) },
]

for (const { title, of } of policies) {
  test(`${title}: every unit that ${PROCESSES} processes spend of leases has room in the limit without leases`, () =>
    always(redis, runsOf(of), play))
}

/** The same store, with a record of whether its last result was immediate. */
function watch(store: Store, watched: { wasImmediate: boolean }): Store {
  return {
    decide(ask) {
      const result = store.decide(ask)
      watched.wasImmediate = !(result instanceof Promise)
      return result
    },
    reset: (plan, identities) => store.reset(plan, identities),
    [BANS]: store[BANS],
    close: () => store.close(),
  }
}
