import { memoryStore, redisStore, type Store, type Verdict } from '@sluice/core'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { CARRIED, versionsOn } from '../../contract/carried.js'
import { Clock, freshKey } from '../../contract/store-under-test.js'
import { fieldsOf } from '../../contract/traces.js'
import { byEffort } from '../../support/effort.js'
import { insist } from '../../support/outages.js'
import { redisForTests } from '../../support/redis-for-tests.js'

const RUNS = Number(process.env.SLUICE_RUNS ?? byEffort({ usual: 12, full: 600 }))
const AMOUNTS = [12, 4, 40, 300, 0]

const { client } = await redisForTests()

const step = fc.record({
  gapMs: fc.oneof(
    { weight: 4, arbitrary: fc.constant(0) },
    { weight: 3, arbitrary: fc.integer({ min: 0, max: 1500 }) },
    { weight: 1, arbitrary: fc.integer({ min: -2000, max: 15_000 }) },
    { weight: 1, arbitrary: fc.constantFrom(-90_000, 60_000) },
  ),
  version: fc.nat({ max: AMOUNTS.length - 1 }),
  cost: fc.oneof(fc.integer({ min: 0, max: 4 }), fc.integer({ min: 5, max: 40 })),
  what: fc.constantFrom('consume', 'consume', 'consume', 'peek', 'refund', 'part', 'more', 'release', 'together'),
  which: fc.nat(),
})

for (const [name, limitsOf] of Object.entries(CARRIED)) {
  test(`memory and Redis agree while versions of ${name} with different amounts share a state`, async () => {
    const clock = new Clock()
    const stores: Store[] = [
      memoryStore({ clock: clock.read }),
      insist(redisStore(client, { clock: clock.read, timeout: 5000, denyCache: false })),
    ]
    const [inMemory, inRedis] = stores.map((store) => versionsOn(store, limitsOf, AMOUNTS))
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 50 }), async (steps) => {
        clock.now += 3_600_000
        const key = freshKey()
        const admitted: { version: number; verdicts: readonly [Verdict, Verdict] }[] = []
        for (const { gapMs, version, cost, what, which } of steps) {
          clock.now += gapMs
          const pair = admitted[which % admitted.length]
          const results = await Promise.all(
            [inMemory, inRedis].map(async (versions, i) => {
              const limiter = versions?.[version]
              const charged = versions?.[pair?.version ?? 0]
              const verdict = pair?.verdicts[i]
              if (what === 'together') return Promise.all([1, 2, 3].map(() => limiter?.consume(key, { cost })))
              if (what === 'peek') return limiter?.peek(key, { cost })
              if (what === 'consume' || !verdict || !charged) return limiter?.consume(key, { cost })
              if (what === 'refund') return charged.refund(key, verdict)
              const isCounted = charged.limits.some(({ unit }) => unit === 'requests')
              if (what === 'more') return isCounted && verdict.settle({ requests: verdict.cost + cost })
              if (what === 'part') return verdict.settle(which % (verdict.cost + 1))
              return charged.release(verdict)
            }),
          )
          const verdicts = results.map((each) => [each].flat() as Verdict[])
          expect(verdicts[1]?.map(shown)).toEqual(verdicts[0]?.map(shown))
          verdicts[0]?.forEach((each, n) => {
            if (isVerdict(each) && each.allowed)
              admitted.push({ version, verdicts: [each, verdicts[1]?.[n] as Verdict] })
          })
        }
      }),
      { numRuns: RUNS },
    )
    for (const store of stores) await store.close()
  })
}

function shown(result: unknown): unknown {
  return isVerdict(result) ? fieldsOf(result) : result
}

function isVerdict(result: unknown): result is Verdict {
  return typeof result === 'object' && result !== null && 'allowed' in result
}
