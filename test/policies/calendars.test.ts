import { memoryStore } from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import { policies, problemsIn } from '@sluice/policies'
import { describe, expect, test } from 'vitest'
import { contextOf } from '../support/context.js'

interface Client {
  readonly user: string
}

const NOW = Date.parse('2026-06-10T12:00:00Z')

/** The ends of the windows of the limits that a document has for a user, as texts. */
async function endsFor(document: object, user: string): Promise<string[]> {
  const loaded = await policies.from({
    object: { version: 1, ...document },
    keys: { user: (request: Client) => request.user },
    tiers: { plan: ({ user }: Client) => (user.startsWith('vip') ? 'paid' : 'free') },
  })
  const guard = createGuard<Client>({ policies: loaded, store: memoryStore({ clock: () => NOW }) })
  const { verdict } = await guard(contextOf({ request: { user } as never, ip: '192.0.2.1' }) as never)
  return (verdict?.limits ?? []).map(({ resetAfterMs }) => new Date(NOW + resetAfterMs).toISOString())
}

const month = { algorithm: 'fixedWindow', limit: 5, window: 'month' }

describe('windows of the calendar in documents', () => {
  test('tiers have calendars of their own', async () => {
    const tiers = {
      free: [month],
      paid: [
        { ...month, timeZone: 'Asia/Tokyo', startsOn: 15 },
        { ...month, window: 'week', startsOn: 'friday' },
      ],
    }
    const document = { policies: { api: { key: 'user', tier: 'plan', tiers } } }
    expect(await endsFor(document, 'ann')).toEqual(['2026-07-01T00:00:00.000Z'])
    expect(await endsFor(document, 'vip-1')).toEqual(['2026-06-14T15:00:00.000Z', '2026-06-12T00:00:00.000Z'])
  })

  test('an override changes the time zone, the first day or the window for its clients alone', async () => {
    const to = (user: string, change: object) => ({ policy: 'api', key: { user }, limits: [change] })
    const document = {
      policies: { api: { key: 'user', limits: [{ ...month, timeZone: 'Asia/Tokyo' }] } },
      overrides: [
        to('zone', { timeZone: 'Europe/Berlin' }),
        to('day', { startsOn: 20 }),
        to('week', { window: 'week', startsOn: 'sunday' }),
        to('more', { limit: 9 }),
      ],
    }
    expect(await endsFor(document, 'ann')).toEqual(['2026-06-30T15:00:00.000Z'])
    expect(await endsFor(document, 'zone')).toEqual(['2026-06-30T22:00:00.000Z'])
    expect(await endsFor(document, 'day')).toEqual(['2026-06-19T15:00:00.000Z'])
    expect(await endsFor(document, 'week')).toEqual(['2026-06-13T15:00:00.000Z'])
    expect(await endsFor(document, 'more')).toEqual(['2026-06-30T15:00:00.000Z'])
  })

  test.each([
    ['an unknown time zone', { timeZone: 'Mars/Olympus' }, 'timeZone', 'expected the IANA name of a time zone'],
    ['a billing day of 0', { startsOn: 0 }, 'startsOn', 'expected a day of the week such as monday, or a billing day'],
    ['a weekday for a month', { startsOn: 'monday' }, 'startsOn', 'expected a billing day, 1 to 31, got "monday"'],
    ['a day for a week', { window: 'week', startsOn: 1 }, 'startsOn', 'expected a day of the week such as "monday"'],
    ['a window without a calendar', { window: '30d' }, 'timeZone', 'expected none without a window of the calendar'],
    ['an algorithm without calendars', { algorithm: 'slidingLog' }, 'window', 'needs algorithm: fixedWindow'],
  ])('an override to %s is rejected with its place', (_, change, field, message) => {
    const document = {
      version: 1,
      policies: { api: { limits: [{ ...month, timeZone: 'UTC' }] } },
      overrides: [{ policy: 'api', key: { user: 'ann' }, limits: [change] }],
    }
    expect(problemsIn(JSON.stringify(document), 'a.json', 'any')).toMatchObject([
      { path: `overrides[0].limits[0].${field}`, message: expect.stringContaining(message) },
    ])
  })
})
