import { fixedWindow, memoryStore, type Store } from '@sluice/core'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createLimiter } from '../../contract/create-limiter.js'
import { byEffort } from '../../support/effort.js'
import { withOtherTimeZones } from '../../support/other-time-zones.js'

const RUNS = Number(process.env.SLUICE_RUNS ?? byEffort({ usual: 200, full: 20_000 }))
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const LIMIT = 3

const ZONES = [
  'UTC',
  'Europe/Berlin',
  'America/Sao_Paulo',
  'America/St_Johns',
  'Asia/Tehran',
  'Pacific/Apia',
  'Asia/Pyongyang',
]
/** Nights in which clocks change, ends of months and of February, and a date that did not happen. */
const NIGHTS = [
  '2010-11-07',
  '2011-12-30',
  '2012-02-29',
  '2015-03-22',
  '2015-08-15',
  '2018-02-18',
  '2018-05-05',
  '2018-11-04',
]

const WINDOWS = { day: DAY_MS, week: 7 * DAY_MS, month: 31 * DAY_MS, year: 366 * DAY_MS }

/** A process as the attacker reaches it: its clock, its data, and the calendar that it has by configuration. */
const anyProcess = fc.record({
  clockApartMs: fc.oneof(fc.constant(0), fc.integer({ min: -40 * DAY_MS, max: 40 * DAY_MS })),
  dataApartMs: fc.oneof(fc.constant(0), fc.constantFrom(-DAY_MS, -HOUR_MS, HOUR_MS / 2, HOUR_MS, DAY_MS)),
  timeZone: fc.constantFrom(...ZONES),
})
const move = fc.record({
  who: fc.nat({ max: 2 }),
  jumpMs: fc.oneof(
    { weight: 5, arbitrary: fc.integer({ min: 0, max: 2 * HOUR_MS }) },
    { weight: 2, arbitrary: fc.integer({ min: 0, max: 3 * DAY_MS }) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 70 * DAY_MS }) },
  ),
  /** Whether it comes at the promised instant, or a ms early. */
  promised: fc.constantFrom(undefined, undefined, 0, -1),
  day: fc.integer({ min: 1, max: 31 }),
  cost: fc.integer({ min: 1, max: LIMIT }),
})

test('no attacker gets more than the limit before the end that a period was opened with, and each promise holds', async () => {
  const input = fc.record({
    window: fc.constantFrom('day', 'week', 'month', 'year'),
    processes: fc.tuple(anyProcess, anyProcess, anyProcess),
    night: fc.constantFrom(...NIGHTS),
    moves: fc.array(move, { minLength: 10, maxLength: 80 }),
  })
  await fc.assert(
    fc.asyncProperty(input, async ({ window, processes, night, moves }) => {
      let now = Date.parse(`${night}T00:00Z`) - 3 * HOUR_MS
      let day = 1
      const store = memoryStore({ clock: () => now })
      const limiters = processes.map(({ clockApartMs, dataApartMs, timeZone }) => {
        const seen: Store = { ...withOtherTimeZones(store, dataApartMs), clock: () => now + clockApartMs }
        const startsOn = window === 'month' ? { startsOn: () => day } : {}
        return createLimiter({
          store: seen,
          limits: [fixedWindow<string>({ limit: LIMIT, window, timeZone, ...startsOn })],
        })
      })
      const longestMs = WINDOWS[window] + DAY_MS
      let [endsAt, units, promisedAt] = [0, 0, 0]
      for (const { who, jumpMs, promised, day: wanted, cost } of moves) {
        const comesAsPromised = promised !== undefined && promisedAt > now
        now = comesAsPromised ? promisedAt + promised : now + jumpMs
        day = wanted
        const limiter = limiters[who] as (typeof limiters)[number]
        const { allowed, retryAfterMs, resetAfterMs, remaining } = await limiter.consume('mallory', { cost })
        if (comesAsPromised) expect(allowed).toBe(promised === 0 || cost <= LIMIT - units)
        if (now >= endsAt) {
          ;[units, endsAt] = [0, now + resetAfterMs]
          expect(allowed).toBe(true)
          expect(resetAfterMs).toBeLessThanOrEqual(longestMs)
        }
        expect(now + resetAfterMs, 'a period keeps its end').toBe(endsAt)
        expect(allowed).toBe(units + cost <= LIMIT)
        if (allowed) units += cost
        else promisedAt = now + (retryAfterMs as number)
        expect(remaining).toBe(LIMIT - units)
        if (!allowed) expect(promisedAt).toBe(endsAt)
      }
    }),
    { numRuns: RUNS },
  )
}, 3_600_000)

test('a client who changes its billing day gets at most one more quota for each change', async () => {
  const input = fc.array(
    fc.record({
      jumpMs: fc.integer({ min: 0, max: 6 * DAY_MS }),
      day: fc.integer({ min: 1, max: 31 }),
      changes: fc.boolean(),
    }),
    {
      minLength: 40,
      maxLength: 120,
    },
  )
  await fc.assert(
    fc.asyncProperty(input, async (steps) => {
      const start = Date.UTC(2023, 10, 20)
      let now = start
      let [day, changes, admitted] = [1, 0, 0]
      const store = memoryStore({ clock: () => now })
      const limiter = createLimiter({
        store,
        limits: [fixedWindow<string>({ limit: 1, window: 'month', startsOn: () => day })],
      })
      for (const step of steps) {
        now += step.jumpMs
        if (step.changes && step.day !== day) [day, changes] = [step.day, changes + 1]
        if ((await limiter.consume('mallory')).allowed) admitted++
      }
      // Billing dates of one day lie 28 days apart at least.
      const months = Math.ceil((now - start) / (28 * DAY_MS)) + 1
      expect(admitted).toBeLessThanOrEqual(months + changes)
    }),
    { numRuns: RUNS },
  )
}, 3_600_000)
