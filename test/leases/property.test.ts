import { createLimiter, type Limiter, redisStore, type Store, type Verdict } from '@sluice/core'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, expect, test } from 'vitest'
import { limitOf } from '../contract/limit-of.js'
import { Clock, freshKey, MIDNIGHT } from '../contract/store-under-test.js'
import { ALGORITHMS, always } from '../contract/traces.js'
import { capacityOf, roomOf } from '../oracle/oracle.js'
import type { Charge, LimitSpec } from '../oracle/spec.js'
import { startRedis } from '../support/redis-server.js'

const server = await startRedis()
const client = new Redis(server.url)
afterAll(async () => {
  client.disconnect()
  await server.stop()
})

const PROCESSES = 3

/** What happens at one instant: some ask, at once or one after the other, and some give back. */
interface Step {
  readonly gap: number
  /** How much later it is when the store hears of it. */
  readonly late: number
  readonly asks: readonly { readonly process: number; readonly cost: number; readonly times: number }[]
  readonly together: boolean
  /** Which of the verdicts so far are given back, and of how much. */
  readonly refunds: readonly { readonly which: number; readonly share: number }[]
}

interface Run {
  readonly spec: LimitSpec
  readonly ttl: number
  readonly size: number
  readonly start: number
  readonly steps: readonly Step[]
}

/** Limits that can have a lease, and one for them; many asks within its life, some beyond it. */
function runsOf(specs: fc.Arbitrary<LimitSpec>): fc.Arbitrary<Run> {
  const roomy = specs
    .filter(({ window, limit }) => window >= 7 && limit > 0)
    .map(
      (spec): LimitSpec => ({
        ...spec,
        limit: spec.limit * 9,
        ...('capacity' in spec && { capacity: capacityOf(spec) * 9 }),
      }),
    )
  return roomy.chain((spec) => {
    const upTo = (max: number) => fc.integer({ min: 0, max })
    const ttls = fc.oneof(
      fc.integer({ min: 1, max: spec.window }),
      fc.integer({ min: 1, max: Math.ceil(spec.window / 3) }),
    )
    return ttls.chain((ttl) => {
      const gap = fc.oneof(
        { weight: 9, arbitrary: fc.constant(0) },
        { weight: 3, arbitrary: upTo(3) },
        {
          weight: 4,
          arbitrary: fc.constantFrom(ttl, ttl - 1, spec.window - ttl, spec.window - ttl + 1, spec.window - 1),
        },
        { weight: 2, arbitrary: upTo(ttl) },
        { weight: 1, arbitrary: upTo(2 * spec.window) },
      )
      const ask = fc.record({
        process: upTo(PROCESSES - 1),
        times: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 12 }), fc.constantFrom(20, 40)),
        cost: fc.oneof(
          { weight: 5, arbitrary: fc.constant(1) },
          { weight: 1, arbitrary: fc.integer({ min: 1, max: 5 }) },
        ),
      })
      const step = fc.record({
        gap,
        late: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: gap }),
        asks: fc.array(ask, { maxLength: 6 }),
        together: fc.boolean(),
        refunds: fc.array(fc.record({ which: upTo(40), share: fc.double({ min: 0, max: 1, noNaN: true }) }), {
          maxLength: 2,
        }),
      })
      return fc.record({
        spec: fc.constant(spec),
        ttl: fc.constant(ttl),
        size: fc.integer({ min: 1, max: 30 }),
        start: upTo(2 * spec.window).map((ms) => MIDNIGHT + ms),
        steps: fc.array(step, { minLength: 4, maxLength: 30 }),
      })
    })
  })
}

/** A limit that its lease would leave nothing of is refused when it is made. */
function isPossible({ spec, ttl }: Run): boolean {
  const greedy = 'capacity' in spec && !('style' in spec && spec.style === 'interval')
  return !greedy || capacityOf(spec) - Math.ceil((ttl * spec.limit) / spec.window) >= 1
}

/** What was admitted, by when it was; what was given back is not there any more. */
class Admissions {
  readonly charges: Charge[] = []
  readonly verdicts: { readonly verdict: Verdict; readonly limiter: Limiter; readonly charge: Charge }[] = []
  readonly #spec: LimitSpec

  constructor(spec: LimitSpec) {
    this.#spec = spec
  }

  /** Fails unless the limit, as its user wrote it, had room for it at the instant of its admission. */
  admit(at: number, cost: number, verdict: Verdict, limiter: Limiter): void {
    expect(roomOf(this.#spec)(this.charges, at), `room at ${at - MIDNIGHT} for ${cost}`).toBeGreaterThanOrEqual(cost)
    const charge = { at, cost }
    this.charges.push(charge)
    this.verdicts.push({ verdict, limiter, charge })
  }

  async giveBack(which: number, share: number): Promise<void> {
    const [chosen] = this.verdicts.splice(which, 1)
    if (!chosen) return
    const { verdict, charge } = chosen
    const stays = Math.floor(charge.cost * share)
    if (!(await verdict.settle(stays))) return
    const at = this.charges.indexOf(charge)
    this.charges.splice(at, 1, ...(stays > 0 ? [{ ...charge, cost: stays }] : []))
  }
}

const leasable = ALGORITHMS.filter(({ title }) => title !== 'concurrency' && title !== 'leaky bucket as a queue')

for (const { title, specs } of leasable) {
  test(`${title}: whatever ${PROCESSES} processes spend of leases had room in the limit as it was written`, async () => {
    let decided = 0
    let asked = 0
    await always(
      { name: 'redis', make: () => redisStore(client), close: async () => {}, effort: 1 },
      runsOf(specs).filter(isPossible),
      async (run) => {
        const clock = new Clock()
        const { spec, size, ttl } = run
        const opens = spec.algorithm === 'fixedWindow' && spec.anchor === 'first-request'
        const watched = { answeredAtOnce: false }
        const stores = Array.from({ length: PROCESSES }, () =>
          redisStore(client, { clock: clock.read, timeoutMs: 5000 }),
        )
        const limits = [limitOf<string>(spec, undefined, { size, ttl })]
        const limiters = stores.map((store) => createLimiter({ name: 'leased', store: watch(store, watched), limits }))
        const admissions = new Admissions(spec)
        const key = freshKey()
        clock.now = run.start
        const before = await calls()
        for (const { gap, late, asks, together, refunds } of run.steps) {
          clock.now += gap
          // With its window empty again, a key's next window starts anew, whatever was admitted in the last.
          for (const { which, share } of opens ? [] : refunds) await admissions.giveBack(which, share)
          const sent = []
          for (const { process, cost } of asks.flatMap((ask) => new Array<typeof ask>(ask.times).fill(ask))) {
            const limiter = limiters[process] as Limiter
            const verdict = limiter.consume(key, { cost })
            // What is spent here is admitted at once, else when the store hears of it.
            const spentAt = watched.answeredAtOnce ? clock.now : undefined
            const ask = verdict.then((verdict) => ({ verdict, cost, limiter, at: spentAt ?? clock.now }))
            if (together) sent.push(ask)
            else {
              const { verdict, at } = await ask
              decided++
              if (verdict.allowed) admissions.admit(at, cost, verdict, limiter)
            }
          }
          clock.now += sent.length > 0 ? late : 0
          const answered = await Promise.all(sent)
          for (const { verdict, cost, limiter, at } of answered.sort((a, b) => a.at - b.at)) {
            decided++
            if (verdict.allowed) admissions.admit(at, cost, verdict, limiter)
          }
        }
        for (const store of stores) await store.close()
        asked += (await calls()) - before
      },
    )
    if (process.env.SLUICE_VERBOSE) console.log(title, 'decided', decided, 'calls', asked)
  })
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

async function calls(): Promise<number> {
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(String(await server.call('INFO', 'commandstats')))?.[1] ?? 0)
}
