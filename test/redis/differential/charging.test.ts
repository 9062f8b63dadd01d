import {
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
  type Verdict,
} from '@sluice/core'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Clock, freshKey } from '../../contract/store-under-test.js'
import { fieldsOf } from '../../contract/traces.js'
import { byEffort } from '../../support/effort.js'
import { settleBytes } from '../../support/inside.js'
import { insist } from '../../support/outages.js'
import { redisForTests } from '../../support/redis-for-tests.js'

const RUNS = Number(process.env.SLUICE_RUNS ?? byEffort({ usual: 15, full: 1500 }))

const { client } = await redisForTests()

/** The client of a request, after the prefix that makes the keys of a run unique. */
const WHO = /(ann|bob)(\/pro)?$/

/** Many limits with a reserve, two that count bytes, in two tiers that share one limit. */
function limiterOn(store: Store) {
  const key = keyed('all', (name: string) => name.replace(WHO, 'all'))
  const all = gcra<string>({ name: 'all', limit: 30, window: '30s', key, reserve: { 1: 0.2, 2: 5 } })
  return createLimiter<string>({
    name: 'mixed',
    store,
    tiers: {
      free: [
        perSecond(4, { reserve: 1 }),
        perMinute(20),
        perMinute(15, { name: 'log', reserve: { 2: 0.3 } }),
        fixedWindow({ limit: 60, window: '5s', unit: 'content-bytes', reserve: 10 }),
        concurrency({ limit: 6, ttl: '4s', reserve: 2 }),
        all,
      ],
      pro: [
        all,
        slidingWindow({ limit: 12, window: '10s', segments: 5, edge: 'strict', reserve: { 2: 3 } }),
        slidingWindow({ limit: 200, window: '10s', unit: 'content-bytes' }),
      ],
    },
    tier: (key) => (key.endsWith('pro') ? 'pro' : 'free'),
  })
}

const step = fc.record({
  gapMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 700 }), fc.integer({ min: -2000, max: 9000 })),
  key: fc.constantFrom('ann', 'bob', 'ann/pro', 'bob/pro'),
  cost: fc.integer({ min: 0, max: 5 }),
  bytes: fc.integer({ min: 0, max: 60 }),
  priority: fc.integer({ min: 0, max: 2 }),
  what: fc.constantFrom(
    'consume',
    'consume',
    'consume',
    'peek',
    'settle',
    'settleBytes',
    'refund',
    'release',
    'together',
  ),
  which: fc.nat(),
})

test('memory and Redis agree on reserves, bytes, tiers and settlements, in any order', async () => {
  const clock = new Clock()
  const stores: Store[] = [
    memoryStore({ clock: clock.read }),
    // Refusals from the deny cache may be of an earlier moment: see deny-cache.test.ts.
    insist(redisStore(client, { clock: clock.read, timeout: 5000, denyCache: false })),
  ]
  const limiters = stores.map(limiterOn) as [Limiter, Limiter]
  let run = 0
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60 }), async (steps) => {
      run++
      clock.now += 3_600_000
      const admitted: { key: string; verdicts: Verdict[] }[] = []
      const start = freshKey()
      for (const { gapMs, key, cost, bytes, priority, what, which } of steps) {
        clock.now += gapMs
        const name = `${start}${key}`
        const options = { cost, bytes, priority }
        const pair = admitted[which % admitted.length]
        const results = await Promise.all(
          limiters.map(async (limiter, i) => {
            const verdict = pair?.verdicts[i] as Verdict
            if (what === 'together') {
              return Promise.all([1, 2, 0].map((more) => limiter.consume(name, { ...options, priority: more })))
            }
            if (what === 'consume' || !pair) return limiter.consume(name, options)
            if (what === 'peek') return limiter.peek(name, options)
            if (what === 'refund') return limiter.refund(pair.key, verdict)
            if (what === 'release') return limiter.release(verdict)
            if (what === 'settle') return verdict.settle(which % (verdict.cost + 1))
            return settleBytes(verdict, which % 61)
          }),
        )
        const fields = results.map((result) => [result].flat().map((one) => (isVerdict(one) ? fieldsOf(one) : one)))
        expect(fields[1]).toEqual(fields[0])
        const verdicts = results.map((result) => [result].flat())
        if (isVerdict(verdicts[0]?.[0])) {
          for (const [n, one] of (verdicts[0] as Verdict[]).entries()) {
            if (one.allowed) admitted.push({ key: name, verdicts: [one, verdicts[1]?.[n] as Verdict] })
          }
        }
      }
    }),
    { numRuns: RUNS },
  )
  expect(run).toBeGreaterThanOrEqual(RUNS)
  for (const store of stores) await store.close()
})

function isVerdict(result: unknown): result is Verdict {
  return typeof result === 'object' && result !== null && 'allowed' in result
}
