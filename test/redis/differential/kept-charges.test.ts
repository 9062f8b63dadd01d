import {
  type ChargeOutcome,
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  keyed,
  type Limiter,
  memoryStore,
  perMinute,
  perSecond,
  redisStore,
  type Store,
  slidingWindow,
  tokenBucket,
  type Verdict,
} from '@sluice/core'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Clock, freshKey } from '../../contract/store-under-test.js'
import { fieldsOf } from '../../contract/traces.js'
import { byEffort } from '../../support/effort.js'
import { insist } from '../../support/outages.js'
import { redisForTests } from '../../support/redis-for-tests.js'

const RUNS = Number(process.env.SLUICE_RUNS ?? byEffort({ usual: 12, full: 1500 }))

const { client } = await redisForTests()

const WHO = /(ann|bob)$/

/** Limits of each kind of cell, on two identities, several in one key. */
function limiterOn(store: Store, keep: number) {
  const key = keyed('all', (name: string) => name.replace(WHO, 'all'))
  return createLimiter<string>({
    name: 'kept',
    store,
    limits: [
      perSecond(4),
      perMinute(20),
      gcra({ limit: 12, window: '9s' }),
      slidingWindow({ limit: 14, window: '10s', segments: 5, edge: 'strict', estimate: 'cap' }),
      tokenBucket({ unit: 'tokens', capacity: 30, refill: 30, every: '30s', estimate: 'cap' }),
      fixedWindow({ unit: 'tokens', limit: 80, window: '20s', key }),
      concurrency({ limit: 5, ttl: '4s' }),
      gcra({ limit: 30, window: '30s', key }),
    ],
    charges: { keep },
  })
}

const step = fc.record({
  gapMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 700 }), fc.integer({ min: -2000, max: 9000 })),
  key: fc.constantFrom('ann', 'bob'),
  requests: fc.integer({ min: 0, max: 4 }),
  tokens: fc.integer({ min: 0, max: 40 }),
  by: fc.nat(1),
  what: fc.constantFrom(
    'consume',
    'consume',
    'consume',
    'settle',
    'settleTokens',
    'settleNothing',
    'refund',
    'refundVerdict',
    'settleVerdict',
    'release',
    'renew',
    'reset',
    'together',
  ),
  which: fc.nat(),
})

interface Admitted {
  readonly key: string
  readonly verdicts: readonly Verdict[]
}

test('memory and Redis agree on charges that are changed by their ids, in any order', async () => {
  const clock = new Clock()
  const stores: Store[] = [
    memoryStore({ clock: clock.read }),
    insist(redisStore(client, { clock: clock.read, timeout: 5000, denyCache: false })),
  ]
  // Two limiters on each store, as in two processes: short and long lives of ids are those of the one that charges.
  const limiters = stores.map((store) => [limiterOn(store, 20_000), limiterOn(store, 5000)] as const)
  const outcomes = new Map<unknown, number>()
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 8, maxLength: 60 }), async (steps) => {
      clock.now += 3_600_000
      const admitted: Admitted[] = []
      const start = freshKey()
      for (const { gapMs, key, requests, tokens, by, what, which } of steps) {
        clock.now += gapMs
        const name = start + key
        const pair = admitted[which % Math.max(1, admitted.length)]
        const results = await Promise.all(
          limiters.map(async (both, i) => {
            const limiter = both[by] as Limiter
            const ask = () => limiter.consume(name, { cost: { requests, tokens } })
            if (what === 'together') return Promise.all([ask(), ask(), ask()])
            if (what === 'reset') return limiter.reset(name)
            const verdict = pair?.verdicts[i]
            if (what === 'consume' || !pair || verdict?.id === undefined) return ask()
            return change(limiter, what, pair.key, verdict, which)
          }),
        )
        const fields = results.map((result) => [result].flat().map((one) => (isVerdict(one) ? fieldsOf(one) : one)))
        expect(fields[1]).toEqual(fields[0])
        const [first, second] = results.map((result) => [result].flat().filter(isVerdict)) as [Verdict[], Verdict[]]
        for (const [n, one] of first.entries()) {
          if (one.allowed) admitted.push({ key: name, verdicts: [one, second[n] as Verdict] })
        }
        for (const outcome of [results[0]].flat()) outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
      }
    }),
    { numRuns: RUNS },
  )
  for (const outcome of ['done', 'done before', 'unknown', true, false])
    expect(outcomes.get(outcome)).toBeGreaterThan(0)
  for (const store of stores) await store.close()
})

function change(
  limiter: Limiter,
  what: string,
  key: string,
  verdict: Verdict,
  which: number,
): Promise<ChargeOutcome | boolean> {
  const id = verdict.id as string
  switch (what) {
    case 'settle':
      return limiter.settle(id, which % (verdict.cost + 1))
    case 'settleTokens':
      return limiter.settle(id, { tokens: which % 61 })
    case 'settleNothing':
      return limiter.settle(id, {})
    case 'settleVerdict':
      return verdict.settle({ tokens: which % 61 })
    case 'refundVerdict':
      return limiter.refund(key, verdict)
    case 'release':
      return limiter.release(id)
    case 'renew':
      return limiter.renew(id)
    default:
      return limiter.refund(id)
  }
}

function isVerdict(result: unknown): result is Verdict {
  return typeof result === 'object' && result !== null && 'allowed' in result
}
