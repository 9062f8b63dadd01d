// Deep: takes minutes.
import { fixedWindow, type Limit, memoryStore, type Store, type Weekday } from '@sluice/core'
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

const WEEKDAYS: readonly Weekday[] = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday']
type Window = keyof typeof WINDOWS
const WINDOWS = { day: DAY_MS, week: 7 * DAY_MS, month: 31 * DAY_MS, year: 366 * DAY_MS }

/** A limit whose first day is that of the request, where its window has one. */
function limitOf(window: Window, timeZone: string, day: () => number): Limit<string> {
  const options = { limit: LIMIT, window, timeZone }
  if (window === 'week') return fixedWindow({ ...options, startsOn: () => WEEKDAYS[day() % 7] as Weekday })
  return fixedWindow({ ...options, ...(window === 'month' && { startsOn: day }) })
}

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
    { weight: 1, arbitrary: fc.integer({ min: -HOUR_MS, max: 0 }) },
  ),
  /** Whether it comes at the promised instant, or a ms early. */
  promised: fc.constantFrom(undefined, undefined, 0, -1),
  day: fc.integer({ min: 1, max: 31 }),
  cost: fc.integer({ min: 1, max: LIMIT }),
})

test('no attacker gets more than the limit before the end that a period was opened with, and each promise holds', async () => {
  const input = fc.record({
    window: fc.constantFrom<Window>('day', 'week', 'month', 'year'),
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
        return createLimiter({ store: seen, limits: [limitOf(window, timeZone, () => day)] })
      })
      const longestMs = WINDOWS[window] + DAY_MS
      let [endsAt, units, promisedAt, latest] = [0, 0, 0, 0]
      for (const { who, jumpMs, promised, day: wanted, cost } of moves) {
        const comesAsPromised = promised !== undefined && promisedAt > now
        // States in memory outlive their end by an hour, for clocks that step back.
        now = comesAsPromised ? promisedAt + promised : Math.max(now + jumpMs, latest - HOUR_MS + 1)
        latest = Math.max(latest, now)
        day = wanted
        const limiter = limiters[who] as (typeof limiters)[number]
        const { allowed, retryAfterMs, resetAfterMs, remaining } = await limiter.consume('mallory', { cost })
        if (comesAsPromised) expect(allowed).toBe(promised === 0 || cost <= LIMIT - units)
        if (now >= endsAt) {
          ;[units, endsAt, promisedAt] = [0, now + resetAfterMs, 0]
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

test('processes of two sets of time zone data never admit more than the limit twice in a period of either', async () => {
  const dense = fc.record({
    who: fc.nat({ max: 1 }),
    jumpMs: fc.oneof(
      { weight: 3, arbitrary: fc.integer({ min: 0, max: HOUR_MS }) },
      { weight: 2, arbitrary: fc.integer({ min: 0, max: DAY_MS }) },
      { weight: 1, arbitrary: fc.integer({ min: 0, max: 40 * DAY_MS }) },
    ),
    /** Whether it comes when the period of one of the processes ends, or a ms early. */
    ends: fc.constantFrom(undefined, undefined, 0, -1),
  })
  const input = fc.record({
    window: fc.constantFrom<Window>('day', 'week', 'month', 'year'),
    timeZone: fc.constantFrom(...ZONES),
    day: fc.integer({ min: 1, max: 31 }),
    // Clocks are up to a day apart, and data by less than the shortest day, of 23 hours.
    clocksApartMs: fc.tuple(fc.integer({ min: -DAY_MS, max: DAY_MS }), fc.integer({ min: -DAY_MS, max: DAY_MS })),
    dataApartMs: fc.oneof(
      fc.constantFrom(-22 * HOUR_MS, -HOUR_MS, HOUR_MS / 2, HOUR_MS, 22 * HOUR_MS),
      fc.integer({ min: -22 * HOUR_MS, max: 22 * HOUR_MS }),
    ),
    night: fc.constantFrom(...NIGHTS),
    moves: fc.array(dense, { minLength: 20, maxLength: 80 }),
  })
  await fc.assert(
    fc.asyncProperty(input, async ({ window, timeZone, day, clocksApartMs, dataApartMs, night, moves }) => {
      let now = Date.parse(`${night}T00:00Z`) - 3 * HOUR_MS
      const [store, fresh] = [memoryStore({ clock: () => now }), memoryStore({ clock: () => now })]
      const limits = [limitOf(window, timeZone, () => day)]
      const processes = clocksApartMs.map((apartMs, i) => {
        const on = (of: Store): Store => ({
          ...withOtherTimeZones(of, i * dataApartMs),
          clock: () => now + apartMs,
        })
        const model = createLimiter({ name: `model-${i}`, store: on(fresh), limits })
        let clients = 0
        // Of a new client, the end of its period by the data of this process.
        const end = async () => now + (await model.consume(`client-${clients++}`)).resetAfterMs
        return { limiter: createLimiter({ store: on(store), limits }), end, admitted: new Map<number, number>() }
      })
      for (const { who, jumpMs, ends } of moves) {
        const { limiter, end } = processes[who] as (typeof processes)[number]
        now = ends === undefined ? now + jumpMs : (await end()) + ends
        const { allowed } = await limiter.consume('mallory', { cost: LIMIT })
        for (const { end, admitted } of processes) {
          const period = await end()
          const units = (admitted.get(period) ?? 0) + (allowed ? LIMIT : 0)
          expect(units, `${window} until ${new Date(period).toISOString()}`).toBeLessThanOrEqual(2 * LIMIT)
          admitted.set(period, units)
        }
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
