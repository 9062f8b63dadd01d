import { readFileSync } from 'node:fs'
import {
  calendarDay,
  calendarMonth,
  createLimiter,
  fixedWindow,
  type Limit,
  type LimiterOptions,
  memoryStore,
  perDay,
  perMonth,
  type Verdict,
} from '@sluice/core'
import { describe, expect, test } from 'vitest'
import { decisionOf } from '../../support/inside.js'
import { differencesFrom } from '../../support/oracle/periods.js'
import { distantStore } from '../../support/outages.js'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

const slices: readonly [zone: string, of: string, seconds: number[]][] = JSON.parse(
  readFileSync(new URL('../../support/oracle/periods.json', import.meta.url), 'utf8'),
)

/** A limiter on a memory store, and a function that decides at an instant, given as text or in ms. */
function limiterOf(
  limits: Limit<string> | readonly Limit<string>[],
  options: Partial<LimiterOptions<string>> = {},
  of = { now: 0 },
) {
  const store = memoryStore({ clock: () => of.now })
  const limiter = createLimiter<string>({ name: 'api', store, limits: [limits].flat(), ...options } as never)
  const at = (instant: string | number, key = 'ann'): Promise<Verdict> => {
    of.now = typeof instant === 'string' ? Date.parse(instant) : instant
    return limiter.consume(key)
  }
  return { limiter, at }
}

/** The instant at which a refused request may come again, as text. */
async function retryAt(verdict: Promise<Verdict>): Promise<string> {
  const known = await verdict
  const { now } = decisionOf(known).result
  return new Date(now + (known.retryAfterMs as number)).toISOString()
}

describe('periods', () => {
  test.each(slices)('%s, %s: each instant is in the period of zoneinfo', async (zone, of, seconds) => {
    const starts = seconds.map((second) => second * 1000)
    const last = starts.at(-1) as number
    const instants = new Set<number>()
    for (const start of starts) {
      for (const at of [start, start + 1, start + HOUR_MS / 2, start + HOUR_MS, start + DAY_MS]) instants.add(at)
      for (const at of [start - 1, start - HOUR_MS / 2]) if (at >= (starts[0] as number)) instants.add(at)
    }
    const inside = [...instants].filter((at) => at < last).sort((a, b) => a - b)
    expect(inside.length).toBeGreaterThan(8)
    expect(await differencesFrom(zone, of, starts, inside)).toEqual([])
  })

  test('a month lasts to the ms, and the same cost is admitted exactly after the wait', async () => {
    const { at } = limiterOf(calendarMonth(1))
    await at('2026-02-03T10:00:00.250Z')
    expect(await retryAt(at('2026-02-28T23:59:59.999Z'))).toBe('2026-03-01T00:00:00.000Z')
    expect(await at('2026-03-01T00:00:00.000Z')).toMatchObject({ allowed: true, resetAfterMs: 31 * DAY_MS })
    expect(await at('2026-03-31T23:59:59.999Z')).toMatchObject({ allowed: false, retryAfterMs: 1 })
  })

  test('a billing day is the last day of months that are shorter, also in a leap year', async () => {
    const ends: string[] = []
    const { at } = limiterOf(calendarMonth(1, { startsOn: 31 }))
    for (let next = '2027-12-31T00:00:00.000Z'; ends.length < 5; ) {
      await at(next)
      next = await retryAt(at(next))
      ends.push(next.slice(0, 10))
    }
    expect(ends).toEqual(['2028-01-31', '2028-02-29', '2028-03-31', '2028-04-30', '2028-05-31'])
  })

  test('a week starts on Monday, or on the given day', async () => {
    const endOf = async (startsOn?: 'sunday' | 'thursday') => {
      const { at } = limiterOf(fixedWindow({ limit: 1, window: 'week', ...(startsOn && { startsOn }) }))
      await at('2026-11-26T12:00:00Z')
      return (await retryAt(at('2026-11-26T12:00:00Z'))).slice(0, 10)
    }
    expect(await endOf()).toBe('2026-11-30')
    expect(await endOf('sunday')).toBe('2026-11-29')
    expect(await endOf('thursday')).toBe('2026-12-03')
  })

  test('the length that a verdict shows is that of the running period', async () => {
    const { at } = limiterOf(fixedWindow({ limit: 9, window: 'day', timeZone: 'Europe/Berlin' }))
    const lengths = []
    for (const day of ['2026-03-28', '2026-03-29', '2026-10-25']) {
      const { limits } = await at(`${day}T12:00:00Z`)
      lengths.push((limits[0]?.windowMs as number) / HOUR_MS)
    }
    expect(lengths).toEqual([24, 23, 25])
  })

  test('limits of a policy are named by their periods, which their lengths do not change', async () => {
    const { at } = limiterOf([calendarMonth(9), fixedWindow({ limit: 5, window: 'week' }), perDay(3)])
    const namesAt = async (instant: string) => (await at(instant)).limits.map(({ name }) => name)
    const names = ['api-month', 'api-week', 'api-1d']
    expect(await namesAt('2026-02-10T00:00:00Z')).toEqual(names)
    expect(await namesAt('2026-03-10T00:00:00Z')).toEqual(names)
  })

  test('a clock that steps back into the last period refunds nothing, and gives no period twice', async () => {
    const { at } = limiterOf(fixedWindow({ limit: 1, window: 'day' }))
    await at('2026-05-02T00:00:01Z')
    expect(await at('2026-05-01T23:59:00Z')).toMatchObject({ allowed: false })
    expect(await retryAt(at('2026-05-01T23:59:00Z'))).toBe('2026-05-03T00:00:00.000Z')
    expect(await at('2026-05-03T00:00:00Z')).toMatchObject({ allowed: true })
  })

  test('a state from an impossible future ends with the present period', async () => {
    const { at } = limiterOf(fixedWindow({ limit: 1, window: 'day' }))
    await at('2031-05-02T00:00:01Z')
    expect(await retryAt(at('2026-05-01T12:00:00Z'))).toBe('2026-05-02T00:00:00.000Z')
    expect(await at('2026-05-02T00:00:00Z')).toMatchObject({ allowed: true })
  })
})

describe('a billing day of the request', () => {
  const days = new Map<string, unknown>()
  const limit = () => calendarMonth<string>(1, { startsOn: (user) => days.get(user) as number })

  test('each request has the period of its own day', async () => {
    const { at } = limiterOf(limit())
    days.set('ann', 5).set('bob', 20)
    for (const user of ['ann', 'bob']) await at('2026-06-10T00:00:00Z', user)
    expect(await retryAt(at('2026-06-10T00:00:00Z', 'ann'))).toBe('2026-07-05T00:00:00.000Z')
    expect(await retryAt(at('2026-06-10T00:00:00Z', 'bob'))).toBe('2026-06-20T00:00:00.000Z')
  })

  test('a day that changes within a period keeps its count and its end, and counts from then on', async () => {
    const { at } = limiterOf(limit())
    days.set('ann', 1)
    await at('2026-06-10T00:00:00Z')
    days.set('ann', 11)
    expect(await retryAt(at('2026-06-11T00:00:00Z'))).toBe('2026-07-01T00:00:00.000Z')
    await at('2026-07-01T00:00:00Z')
    expect(await retryAt(at('2026-07-01T00:00:00Z'))).toBe('2026-07-11T00:00:00.000Z')
  })

  test('may be a promise', async () => {
    const { at } = limiterOf(calendarMonth<string>(1, { startsOn: async () => 7 }))
    await at('2026-06-10T00:00:00Z')
    expect(await retryAt(at('2026-06-10T00:00:00Z'))).toBe('2026-07-07T00:00:00.000Z')
  })

  test.each([0, 32, 1.5, '5', null, undefined, 'monday', Number.NaN])(
    'is an error of the request where it is %j',
    async (day) => {
      const { at } = limiterOf(limit())
      days.set('ann', day)
      await expect(at('2026-06-10T00:00:00Z')).rejects.toMatchObject({
        code: 'INVALID_POLICY',
        message: expect.stringMatching(/^policy "api": startsOn: expected a billing day, 1 to 31, got /),
      })
    },
  )
})

test('a text is no billing day, even after the number', async () => {
  const days: unknown[] = [5, '5', [5]]
  const { at } = limiterOf(calendarMonth<string>(9, { startsOn: () => days.shift() as number }))
  await at('2026-06-10T00:00:00Z')
  await expect(at('2026-06-10T00:00:00Z')).rejects.toThrow('startsOn: expected a billing day, 1 to 31, got "5"')
  await expect(at('2026-06-10T00:00:00Z')).rejects.toThrow('startsOn: expected a billing day, 1 to 31, got an array')
})

describe('options', () => {
  const wrong: [options: object, message: string][] = [
    [
      { timeZone: 'Mars/Olympus' },
      'timeZone: expected the IANA name of a time zone such as "Europe/Berlin", got "Mars/Olympus"',
    ],
    [{ timeZone: '' }, 'timeZone: expected the IANA name of a time zone such as "Europe/Berlin", got ""'],
    [{ timeZone: 60 }, 'timeZone: expected the IANA name of a time zone such as "Europe/Berlin", got 60'],
    [{ timeZone: null }, 'timeZone: expected the IANA name of a time zone such as "Europe/Berlin", got null'],
    [{ startsOn: 0 }, 'startsOn: expected a billing day, 1 to 31, got 0'],
    [{ startsOn: null }, 'startsOn: expected a billing day, 1 to 31, got null'],
    [{ startsOn: 32 }, 'startsOn: expected a billing day, 1 to 31, got 32'],
    [{ startsOn: '1' }, 'startsOn: expected a billing day, 1 to 31, got "1"'],
    [{ startsOn: 'monday' }, 'startsOn: expected a billing day, 1 to 31, got "monday"'],
    [{ window: 'week', startsOn: 1 }, 'startsOn: expected a day of the week such as "monday", got 1'],
    [{ window: 'week', startsOn: 'Montag' }, 'startsOn: expected a day of the week such as "monday", got "Montag"'],
    [{ window: 'day', startsOn: 1 }, 'startsOn: expected none beside window "day", got 1'],
    [{ window: 'year', startsOn: 1 }, 'startsOn: expected none beside window "year", got 1'],
    [{ anchor: 'first-request' }, 'anchor: expected none beside window "month", got "first-request"'],
    [
      { window: '30d', timeZone: 'UTC' },
      'timeZone: expected none without a window of the calendar, such as "month", got "UTC"',
    ],
    [
      { window: '30d', startsOn: 1 },
      'startsOn: expected none without a window of the calendar, such as "month", got 1',
    ],
    [{ window: 'months' }, 'window: expected whole milliseconds or a duration such as "30s"'],
    [{ window: 'toString' }, 'window: expected whole milliseconds or a duration such as "30s"'],
    [{ spread: '32d' }, 'spread: expected at most the window of 2678400000 ms, got 2764800000'],
    [{ lease: { size: 5, ttl: '32d' } }, 'lease: ttl: expected at most the window of 2678400000 ms, got 2764800000'],
  ]

  test.each(wrong)('%j is rejected', (options, message) => {
    const make = () => fixedWindow({ limit: 1, window: 'month', ...options } as never)
    expect(make).toThrow(expect.objectContaining({ code: 'INVALID_POLICY' }))
    expect(make).toThrow(`fixedWindow: ${message}`)
  })

  test('processes do not count windows of the calendar by themselves', () => {
    expect(() =>
      createLimiter({ name: 'api', limits: [calendarMonth(9)], consistency: { syncEvery: '1s' } } as never),
    ).toThrow('policy "api": consistency: windows of the calendar are counted by Redis alone')
  })

  test('a limit shows its calendar', () => {
    expect(calendarMonth(5, { timeZone: 'Asia/Tokyo' })).toMatchObject({
      algorithm: 'fixedWindow',
      calendar: { window: 'month', timeZone: 'Asia/Tokyo' },
      window: 31 * DAY_MS,
    })
  })

  test('spread delays the return of clients after the end of a period, each to its own instant', async () => {
    const { at } = limiterOf(calendarMonth(1, { spread: '6h' }))
    const instants = new Set<string>()
    for (let n = 0; n < 20; n++) {
      await at('2026-06-10T00:00:00Z', `user-${n}`)
      instants.add(await retryAt(at('2026-06-30T23:00:00Z', `user-${n}`)))
    }
    const sorted = [...instants].sort()
    expect((sorted.at(0) as string) >= '2026-07-01T00:00:00.000Z').toBe(true)
    expect((sorted.at(-1) as string) < '2026-07-01T06:00:00.000Z').toBe(true)
    expect(instants.size).toBeGreaterThan(15)
    expect(await at('2026-07-01T00:00:00Z', 'user-3')).toMatchObject({ allowed: true })
  })
})

describe('beside other features', () => {
  test('a refund counts in the period of its charge alone', async () => {
    const of = { now: 0 }
    const { limiter, at } = limiterOf(fixedWindow({ limit: 2, window: 'day' }), {}, of)
    const first = await at('2026-06-10T23:59:00Z')
    const second = await at('2026-06-11T00:01:00Z')
    expect(await limiter.refund('ann', first)).toBe(true)
    expect((await limiter.peek('ann')).remaining).toBe(1)
    await limiter.refund('ann', second)
    expect((await limiter.peek('ann')).remaining).toBe(2)
  })

  test('units that are settled days later count in the period of that time', async () => {
    const { limiter, at } = limiterOf(fixedWindow({ limit: 100, window: 'day', unit: 'tokens' }))
    const of = await limiter.consume('ann', { cost: { tokens: 10 } })
    await at('2026-06-20T12:00:00Z', 'bob')
    await of.settle({ tokens: 40 })
    const { limits } = await limiter.peek('ann')
    expect(limits[0]).toMatchObject({ remaining: 70, resetAfterMs: 12 * HOUR_MS })
  })

  test('charged refusals count until the end of the period, and no longer', async () => {
    const { at } = limiterOf(fixedWindow({ limit: 1, window: 'day' }), { onDeny: 'charge' })
    for (let n = 0; n < 5; n++) await at('2026-06-10T12:00:00Z')
    expect(await at('2026-06-10T23:59:59.999Z')).toMatchObject({ allowed: false, retryAfterMs: 1 })
    expect(await at('2026-06-11T00:00:00Z')).toMatchObject({ allowed: true })
  })

  test('a refusal strikes for a ban', async () => {
    const { at } = limiterOf(fixedWindow({ limit: 1, window: 'day' }), { ban: { after: 2, within: '1h', for: ['2d'] } })
    for (let n = 0; n < 3; n++) await at('2026-06-10T12:00:00Z')
    expect(await at('2026-06-11T00:00:00Z')).toMatchObject({ reason: 'banned', retryAfterMs: 36 * HOUR_MS })
  })

  test('a reset forgets the running period', async () => {
    const { limiter, at } = limiterOf(calendarMonth(1))
    await at('2026-06-10T12:00:00Z')
    await limiter.reset('ann')
    expect(await at('2026-06-10T12:00:00Z')).toMatchObject({ allowed: true })
  })

  test('tiers have calendars of their own', async () => {
    const of = { now: Date.parse('2026-06-10T12:00:00Z') }
    const limiter = createLimiter<string>({
      store: memoryStore({ clock: () => of.now }),
      tiers: { free: [calendarMonth(1)], paid: [calendarMonth(1, { startsOn: 15 })] },
      tier: (user: string) => (user === 'ann' ? 'paid' : 'free'),
      key: (user: string) => user,
    } as never)
    for (const user of ['ann', 'bob']) await limiter.consume(user)
    expect(await retryAt(limiter.consume('ann'))).toBe('2026-06-15T00:00:00.000Z')
    expect(await retryAt(limiter.consume('bob'))).toBe('2026-07-01T00:00:00.000Z')
  })

  test('while the store cannot be reached, a period goes on in this process and ends with the calendar', async () => {
    const of = { now: Date.parse('2026-06-10T12:00:00Z') }
    const store = distantStore(() => of.now)
    const limiter = createLimiter<string>({ store, limits: [fixedWindow({ limit: 4, window: 'day' })] })
    for (let n = 0; n < 3; n++) await limiter.consume('ann')
    store.isAway = true
    expect(await limiter.consume('ann')).toMatchObject({ kind: 'unavailable', allowed: true, remaining: 0 })
    expect(await limiter.consume('ann')).toMatchObject({ allowed: false, retryAfterMs: 12 * HOUR_MS })
    of.now += 12 * HOUR_MS
    expect(await limiter.consume('ann')).toMatchObject({ allowed: true, remaining: 3, resetAfterMs: DAY_MS })
  })

  test('units at a share of the limit that are settled days later count in the period of that time', async () => {
    const of = { now: Date.parse('2026-06-10T12:00:00Z') }
    const store = distantStore(() => of.now)
    store.isAway = true
    const limits = [fixedWindow<string>({ limit: 100, window: 'day', unit: 'tokens' })]
    const limiter = createLimiter<string>({ store, limits, unavailable: { share: 0.5 } })
    const verdict = await limiter.consume('ann', { cost: { tokens: 10 } })
    of.now += 5 * DAY_MS
    await limiter.consume('bob', { cost: { tokens: 1 } })
    await verdict.settle({ tokens: 40 })
    expect((await limiter.peek('ann')).limits[0]).toMatchObject({ remaining: 20, resetAfterMs: 12 * HOUR_MS })
  })

  test('memory of earlier periods is given back', async () => {
    const of = { now: Date.parse('2026-01-01T00:00:00Z') }
    const store = memoryStore({ clock: () => of.now })
    const limiter = createLimiter({ store, limits: [fixedWindow({ limit: 5, window: 'day' })] })
    for (let day = 0; day < 400; day++, of.now += DAY_MS) await limiter.consume('ann')
    expect(store.stats?.()).toMatchObject({ keys: 1 })
  })
})

test('calendarDay ends at midnight of its time zone, and perMonth is an error that names calendarMonth', () => {
  expect(calendarDay(5, { timeZone: 'Asia/Tokyo' })).toMatchObject({ algorithm: 'fixedWindow' })
  expect(() => (perMonth as unknown as (limit: number) => void)(9)).toThrow('perMonth: use calendarMonth(limit)')
})
