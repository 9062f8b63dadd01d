// Runs alone: stores of earlier files would go on.
import { createLimiter, gcra, type Limiter, memoryStore, slidingLog, type Verdict } from '@sluice/core'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CARRIED, carried, versionsOn } from '../../contract/carried.js'
import { Clock } from '../../contract/store-under-test.js'

/** The kinds whose versions see exactly what was charged and when: for these an oracle needs nothing else. */
const EXACT: Readonly<Record<string, (entries: readonly { at: number; cost: number }[], now: number) => number>> = {
  'an exact log': (entries, now) => sum(entries.filter(({ at }) => at > now - 10_000)),
  'a fixed window': (entries, now) => sum(entries.filter(({ at }) => windowOf(at) === windowOf(now))),
  'requests in flight': (entries, now) => sum(entries.filter(({ at }) => at > now - 10_000)),
  'a strict window': (entries, now) => sum(entries.filter(({ at }) => segmentOf(at) >= segmentOf(now) - 5)),
}

const windowOf = (at: number) => Math.floor(at / 10_000)
const segmentOf = (at: number) => Math.floor(at / 2000)

function sum(entries: readonly { cost: number }[]): number {
  return entries.reduce((units, { cost }) => units + cost, 0)
}

const AMOUNTS = [5, 2, 30]

const steps = fc.array(
  fc.record({
    gapMs: fc.integer({ min: 0, max: 4000 }),
    version: fc.nat({ max: AMOUNTS.length - 1 }),
    cost: fc.integer({ min: 1, max: 6 }),
  }),
  { minLength: 5, maxLength: 60 },
)

describe('limits of several versions of a policy', () => {
  test.each(Object.entries(EXACT))(
    'charges under every version count against the limit that decides: %s',
    async (name, usedOf) => {
      await fc.assert(
        fc.asyncProperty(steps, async (walk) => {
          const clock = new Clock()
          const store = memoryStore({ clock: clock.read })
          const versions = versionsOn(store, CARRIED[name] as NonNullable<(typeof CARRIED)[string]>, AMOUNTS)
          const entries: { at: number; cost: number }[] = []
          for (const { gapMs, version, cost } of walk) {
            clock.now += gapMs
            const limit = AMOUNTS[version] as number
            const used = usedOf(entries, clock.now)
            const verdict = await versions[version]?.consume('ann', { cost })
            expect(verdict).toMatchObject({
              allowed: used + cost <= limit,
              remaining: Math.max(0, limit - used - (used + cost <= limit ? cost : 0)),
            })
            if (verdict?.allowed) entries.push({ at: clock.now, cost })
          }
          await store.close()
        }),
        { numRuns: 60 },
      )
    },
  )
})

const BUCKETS = ['GCRA', 'GCRA with a burst', 'a token bucket at intervals', 'a leaky bucket'] as const

describe('buckets of several versions of a policy', () => {
  test.each(BUCKETS)(
    '%s: in any mixture of versions no window admits more than the largest alone could',
    async (name) => {
      await fc.assert(
        fc.asyncProperty(steps, async (walk) => {
          const clock = new Clock()
          const store = memoryStore({ clock: clock.read })
          const versions = versionsOn(store, CARRIED[name] as NonNullable<(typeof CARRIED)[string]>, AMOUNTS)
          const entries: { at: number; cost: number }[] = []
          for (const { gapMs, version, cost } of walk) {
            clock.now += gapMs
            if ((await versions[version]?.consume('ann', { cost }))?.allowed) entries.push({ at: clock.now, cost })
          }
          // A bucket's own bound: its capacity, and what refills meanwhile.
          const isByIntervals = name === 'a token bucket at intervals'
          for (const [i, { at: from }] of entries.entries()) {
            for (let j = i; j < entries.length; j++) {
              const until = (entries[j] as { at: number }).at
              const refilled = isByIntervals ? windowOf(until) - windowOf(from) : (until - from) / 10_000
              expect(sum(entries.slice(i, j + 1))).toBeLessThanOrEqual(30 + 30 * refilled)
            }
          }
          await store.close()
        }),
        { numRuns: 60 },
      )
    },
  )

  test.each(BUCKETS)('%s: after a limit was lowered no client is refused for longer than two windows', async (name) => {
    const limitsOf = CARRIED[name] as NonNullable<(typeof CARRIED)[string]>
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 0, max: 400 }), async (low, used) => {
        const clock = new Clock()
        const store = memoryStore({ clock: clock.read })
        const [before, after] = versionsOn(store, limitsOf, [400, low]) as [Limiter, Limiter]
        for (let n = 0; n < used; n++) await before.consume('ann')
        const { allowed, retryAfterMs = 0 } = await after.consume('ann')
        expect(retryAfterMs).toBeLessThanOrEqual(20_000)
        expect((await after.peek('ann')).resetAfterMs).toBeLessThanOrEqual(20_000)
        if (!allowed) {
          clock.now += retryAfterMs - 1
          expect((await after.peek('ann')).allowed).toBe(false)
          clock.now += 1
          expect((await after.consume('ann')).allowed).toBe(true)
        }
        await store.close()
      }),
      { numRuns: 40 },
    )
  })
})

test('a refund under a smaller limit refunds no more than its charge', async () => {
  for (const limitsOf of Object.values(CARRIED)) {
    const clock = new Clock()
    const store = memoryStore({ clock: clock.read })
    const [small, large] = versionsOn(store, limitsOf, [3, 300])
    const first = (await small?.consume('ann')) as Verdict
    let admitted = 0
    while ((await large?.consume('ann'))?.allowed) admitted++
    await small?.refund('ann', first)
    let more = 0
    while ((await large?.consume('ann'))?.allowed) more++
    expect(admitted).toBeGreaterThan(0)
    expect(more).toBeLessThanOrEqual(1)
    await store.close()
  }
})

test('a thousand amounts of one limit share a table, and take no more memory than one amount', async () => {
  const store = memoryStore()
  const limiters = Array.from({ length: 1000 }, (_, i) =>
    createLimiter({ name: 'many', store, limits: [...carried([gcra({ limit: i + 1, window: '1h' })])] }),
  )
  for (const [i, limiter] of limiters.entries()) await limiter.consume(`client-${i}`)
  expect(store.stats?.()?.keys).toBe(1000)
  expect(store.stats?.()?.bytes).toBeLessThan(1000 * 250)
  await store.close()
})

test('evictions end even if the limit that made the table is 0', async () => {
  for (const limit of [slidingLog, gcra]) {
    const store = memoryStore({ maxKeys: 10 })
    const [none, some] = versionsOn(store, (amount) => [limit({ limit: amount, window: '1h' })], [0, 50])
    await none?.consume('first')
    for (let i = 0; i < 50; i++) await some?.consume(`client-${i}`)
    expect(store.stats?.()?.keys).toBeLessThanOrEqual(11)
    await store.close()
  }
})
