import { createLimiter, type Limiter, redisStore, type Store, type Verdict } from '@sluice/core'
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

/** What happens at one instant: some ask, at once or one after the other, and some refund. */
interface Step {
  readonly gap: number
  /** How much later it is when the store hears of it. */
  readonly late: number
  readonly asks: readonly { readonly process: number; readonly cost: number; readonly times: number }[]
  readonly together: boolean
  /** Which of the verdicts so far are refunded, and of how much. */
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

/** Limits with more to lease than those of other tests. */
function roomy(specs: fc.Arbitrary<LimitSpec>): fc.Arbitrary<LimitSpec> {
  return specs
    .filter(({ window, limit }) => window >= 7 && limit > 0)
    .map((spec) => ({
      ...spec,
      limit: spec.limit * 9,
      ...('capacity' in spec && { capacity: capacityOf(spec) * 9 }),
    }))
}

/** Limits and a lease for them; many asks within its life, some beyond it, at the instants that matter most. */
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
        asks: fc.array(ask, { maxLength: 6 }),
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

/** A limit that its lease would leave nothing of is refused when it is made. */
function isPossible(spec: LimitSpec, ttl: number): boolean {
  const isGreedy = 'capacity' in spec && !('style' in spec && spec.style === 'interval')
  return !isGreedy || capacityOf(spec) - Math.ceil((ttl * spec.limit) / spec.window) >= 1
}

/** What was admitted, by when it was; what was refunded is not there any more. */
class Admissions {
  readonly #charges: Charge[] = []
  readonly #verdicts: { readonly verdict: Verdict; readonly charge: Charge }[] = []
  readonly #specs: readonly LimitSpec[]

  constructor(specs: readonly LimitSpec[]) {
    this.#specs = specs
  }

  /** Fails unless every limit, as its user wrote it, had room for it at the instant of its admission. */
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

/** Plays a run with as many stores as there are processes, on one clock. */
async function play({ specs, size, ttl, start, steps }: Run): Promise<void> {
  const clock = new Clock()
  clock.now = start
  const watched = { answeredAtOnce: false }
  // What comes together goes to Redis together, when all have asked.
  const options = { clock: clock.read, timeout: 5000, batch: 1000 }
  const stores = Array.from({ length: PROCESSES }, () => redisStore(client, options))
  const limits = specs.map((spec) => limitOf<string>(spec, undefined, { size, ttl }))
  const limiters = stores.map((store) => createLimiter({ name: 'leased', store: watch(store, watched), limits }))
  const admissions = new Admissions(specs)
  const key = freshKey()
  // With its window empty again, a key's next window starts anew, whatever was admitted in the last.
  const hasRefunds = specs.every((spec) => !(spec.algorithm === 'fixedWindow' && spec.anchor === 'first-request'))
  try {
    for (const { gap, late, asks, together, refunds } of steps) {
      clock.now += gap
      for (const { which, share } of hasRefunds ? refunds : []) await admissions.refund(which, share)
      const sent = []
      for (const { process, cost } of asks.flatMap((ask) => new Array<typeof ask>(ask.times).fill(ask))) {
        const decided = (limiters[process] as Limiter).consume(key, { cost })
        // What is spent here is admitted at once, else when the store hears of it.
        const spentAt = watched.answeredAtOnce ? clock.now : undefined
        const asked = decided.then((verdict) => ({ verdict, cost, at: spentAt ?? clock.now }))
        sent.push(asked)
        if (!together) await asked
      }
      if (together && sent.length > 0) clock.now += late
      const answers = await Promise.all(sent)
      for (const { verdict, cost, at } of answers.sort((a, b) => a.at - b.at)) {
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
  test(`${title}: whatever ${PROCESSES} processes spend of leases had room in the limit as it was written`, () =>
    always(redis, runsOf(of), play))
}

/** The same store, and whether its last answer was there at once. */
function watch(store: Store, watched: { answeredAtOnce: boolean }): Store {
  return {
    decide(ask) {
      const answer = store.decide(ask)
      watched.answeredAtOnce = !(answer instanceof Promise)
      return answer
    },
    reset: (plan, identities) => store.reset(plan, identities),
    block: (policy, identity, forMs, reason) => store.block(policy, identity, forMs, reason),
    unblock: (policy, identity) => store.unblock(policy, identity),
    close: () => store.close(),
  }
}
