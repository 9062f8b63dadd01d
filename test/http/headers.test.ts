import { EventEmitter } from 'node:events'
import {
  concurrency,
  type Duration,
  fixedWindow,
  gcra,
  type HeadersOption,
  type HttpContext,
  type LimiterOptions,
  leakyBucket,
  memoryStore,
  perDay,
  perMinute,
  slidingLog,
  tokenBucket,
} from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'

/** The headers of successive requests, by a guard that knows no framework. */
function headersOf(
  options: Omit<LimiterOptions<unknown>, 'store'> & {
    headers?: HeadersOption
    cost?: number
    maxRetryAfter?: Duration
  },
  present: Record<string, string> = {},
) {
  const time = { now: 0 }
  const guard = createGuard<unknown>({ key: () => 'k', store: memoryStore({ clock: () => time.now }), ...options })
  const next = (): Record<string, string> => {
    const outcome = guard(context(present))
    if (outcome instanceof Promise) throw new Error('a memory store decides synchronously')
    return Object.fromEntries(outcome.headers)
  }
  return { time, next }
}

function context(present: Record<string, string>): HttpContext<unknown> {
  const fields = new Headers(present)
  return {
    request: {},
    response: new EventEmitter(),
    ip: '192.0.2.1',
    method: 'GET',
    path: '/',
    target: '/',
    route: undefined,
    header: () => undefined,
    signedCookie: () => undefined,
    getResponseHeader: (name) => fields.get(name) ?? undefined,
  }
}

describe('draft 11', () => {
  test.each([
    ['whole seconds', slidingLog({ limit: 5, window: '10s' }), '"p";q=5;w=10', '"p";r=4;t=10'],
    [
      'a window of 1.5 s: rounded up, so that no client expects too much',
      slidingLog({ limit: 5, window: 1500 }),
      '"p";q=5;w=2',
      '"p";r=4;t=2',
    ],
    ['below a second: no w', slidingLog({ limit: 5, window: 500 }), '"p";q=5', '"p";r=4;t=1'],
    [
      'a bucket larger than its limit: its capacity, and the time of its next unit',
      tokenBucket({ refill: 2, every: '1s', capacity: 10 }),
      '"p";q=10;w=5',
      '"p";r=9;t=1',
    ],
    [
      'a bucket that takes a fraction of a second to refill',
      gcra({ limit: 3, window: '1s', burst: 10 }),
      '"p";q=10;w=4',
      '"p";r=9;t=1',
    ],
    ['a bucket smaller than its limit', gcra({ limit: 60, window: '1m', burst: 5 }), '"p";q=60;w=60', '"p";r=4;t=1'],
    [
      'permits: a unit of their own, and no time',
      concurrency({ limit: 3 }),
      '"p";q=3;qu="concurrent-requests"',
      '"p";r=2',
    ],
    [
      'the largest integer a structured field holds',
      fixedWindow({ limit: 2 ** 53 - 1, window: 1 }),
      '"p";q=999999999999999',
      '"p";r=999999999999999;t=1',
    ],
  ])('draft-11 headers for %s', (_what, limit, policy, state) => {
    const { next } = headersOf({ name: 'p', limits: [limit] })
    expect(next()).toEqual({ 'RateLimit-Policy': policy, RateLimit: state })
  })

  test('on a refusal, t of the violated limit is Retry-After, and t of the others is their reset', () => {
    const { time, next } = headersOf({ name: 'p', limits: [gcra({ limit: 60, window: '1m', burst: 2 }), perDay(9)] })
    next()
    next()
    time.now += 10
    expect(next()).toEqual({
      'RateLimit-Policy': '"p-1m";q=60;w=60, "p-1d";q=9;w=86400',
      RateLimit: '"p-1m";r=0;t=1, "p-1d";r=7;t=86400',
      'Retry-After': '1',
      'Cache-Control': 'no-store',
      'Content-Type': 'application/problem+json; charset=utf-8',
      'Content-Length': expect.any(String),
    })
  })

  test('with several violated limits the longest wait is reported', () => {
    const { next } = headersOf({ name: 'p', limits: [slidingLog({ limit: 1, window: '3s' }), perMinute(1)] })
    next()
    expect(next()).toMatchObject({ RateLimit: '"p-3s";r=0;t=3, "p-1m";r=0;t=60', 'Retry-After': '60' })
  })

  test('Retry-After is at least a second and never fractional', () => {
    const { next } = headersOf({ limits: [leakyBucket({ leak: 4, every: '1s', capacity: 1 })] })
    next()
    expect(next()).toMatchObject({ 'Retry-After': '1', RateLimit: '"default";r=0;t=1' })
  })

  test('a wait of a year is reported in whole seconds, without overflow', () => {
    const { next } = headersOf({ limit: 1, window: '365d' })
    next()
    expect(next()).toMatchObject({ 'Retry-After': '31536000' })
  })

  test('a cost that does not fit reports the remaining units, not 0', () => {
    const { next } = headersOf({ name: 'p', limit: 5, window: '10s', cost: 3 })
    next()
    expect(next()).toMatchObject({ RateLimit: '"p";r=2;t=10', 'Retry-After': '10' })
  })

  test('a cost of 0 charges nothing and reports the quota', () => {
    const { next } = headersOf({ name: 'p', limit: 5, window: '10s', cost: 0 })
    next()
    expect(next()).toEqual({ 'RateLimit-Policy': '"p";q=5;w=10', RateLimit: '"p";r=5;t=0' })
  })

  test('items of another limiter stay in front', () => {
    const { next } = headersOf(
      { name: 'p', limit: 5, window: '10s' },
      { RateLimit: '"o";r=1;t=1', 'RateLimit-Policy': '"o";q=1;w=1' },
    )
    expect(next()).toEqual({
      'RateLimit-Policy': '"o";q=1;w=1, "p";q=5;w=10',
      RateLimit: '"o";r=1;t=1, "p";r=4;t=10',
    })
  })
})

describe('an existing Retry-After', () => {
  beforeEach(() => void vi.useFakeTimers({ now: Date.parse('2026-01-01T00:00:00Z'), toFake: ['Date'] }))
  afterEach(() => void vi.useRealTimers())

  test.each([
    ['an equal wait', '10', undefined],
    ['a longer wait', '11', undefined],
    ['a shorter wait', '9', '10'],
    ['a later date', 'Thu, 01 Jan 2026 00:00:11 GMT', undefined],
    ['an earlier date', 'Thu, 01 Jan 2026 00:00:09 GMT', '10'],
    ['an unreadable value', 'soon', '10'],
  ])('Retry-After beside %s on the response', (_what, present, expected) => {
    const refused = headersOf({ limit: 1, window: '10s' }, { 'Retry-After': present })
    expect(refused.next()).not.toHaveProperty('Retry-After')
    expect(refused.next()['Retry-After']).toBe(expected)
  })
})

describe('earlier forms', () => {
  const limits = [perMinute(5, { name: 'burst' }), slidingLog({ limit: 100, window: '1h', name: 'hour' })]

  test('draft 8: t is the time until the quota resets, also on a refusal', () => {
    const { time, next } = headersOf({ headers: 'draft-8', limits: [gcra({ limit: 2, window: '10s', name: 'b' })] })
    next()
    next()
    time.now += 1
    expect(next()).toMatchObject({ 'RateLimit-Policy': '"b";q=2;w=10', RateLimit: '"b";r=0;t=10', 'Retry-After': '5' })
  })

  test('draft 7: one dictionary for the tightest limit, all policies as numbers', () => {
    const { next } = headersOf({ headers: 'draft-7', limits })
    expect(next()).toEqual({
      'RateLimit-Policy': '5;w=60, 100;w=3600',
      RateLimit: 'limit=5, remaining=4, reset=60',
    })
  })

  test('draft 6: three fields for the tightest limit', () => {
    const { next } = headersOf({ headers: 'draft-6', limits })
    expect(next()).toEqual({
      'RateLimit-Policy': '5;w=60, 100;w=3600',
      'RateLimit-Limit': '5',
      'RateLimit-Remaining': '4',
      'RateLimit-Reset': '60',
    })
  })

  test.each([
    ['legacy', 1_767_225_660],
    [{ format: 'legacy', reset: 'epoch-seconds' }, 1_767_225_660],
    [{ format: 'legacy', reset: 'epoch-ms' }, 1_767_225_660_000],
    [{ format: 'legacy', reset: 'delta-seconds' }, 60],
  ] as const)('legacy headers with the form %o', (headers, reset) => {
    vi.useFakeTimers({ now: Date.parse('2026-01-01T00:00:00Z'), toFake: ['Date'] })
    try {
      const { next } = headersOf({ headers, limits })
      expect(next()).toEqual({
        'X-RateLimit-Limit': '5',
        'X-RateLimit-Remaining': '4',
        'X-RateLimit-Reset': String(reset),
      })
    } finally {
      vi.useRealTimers()
    }
  })

  test('legacy headers can have other names, or be left out', () => {
    const names = { limit: 'X-Quota', remaining: 'X-Left', reset: false } as const
    const { next } = headersOf({ headers: { format: 'legacy', names }, limits })
    expect(next()).toEqual({ 'X-Quota': '5', 'X-Left': '4' })
    const both = headersOf({ headers: ['legacy', { format: 'legacy', names }], limits })
    expect(Object.keys(both.next())).toHaveLength(5)
    const tighter = headersOf({ headers: { format: 'legacy', names }, limit: 9, window: '1m' }, { 'x-left': '3' })
    expect(tighter.next()).toEqual({})
    const seconds = headersOf({
      headers: { format: 'legacy', reset: 'delta-seconds', names: { reset: 'X-In' } },
      limits,
    })
    expect(seconds.next()).toMatchObject({ 'X-RateLimit-Limit': '5', 'X-In': '60' })
  })

  test.each([
    ['draft-7', { RateLimit: 'limit=9, remaining=3, reset=1' }, 'RateLimit'],
    ['draft-6', { 'RateLimit-Remaining': '3' }, 'RateLimit-Remaining'],
    ['legacy', { 'X-RateLimit-Remaining': '3' }, 'X-RateLimit-Remaining'],
  ] as const)('%s: a tighter limiter on the route is not overwritten, a wider one is', (headers, present, field) => {
    const tighter = headersOf({ headers, limit: 9, window: '1m' }, present)
    expect(tighter.next()).not.toHaveProperty(field)
    const wider = headersOf({ headers, limit: 3, window: '1m' }, present)
    expect(wider.next()[field]).toMatch(/2/)
  })

  test('headers accepts several forms at once, or none', () => {
    expect(Object.keys(headersOf({ headers: ['draft-11', 'legacy'], limit: 5, window: '1m' }).next())).toEqual([
      'RateLimit-Policy',
      'RateLimit',
      'X-RateLimit-Limit',
      'X-RateLimit-Remaining',
      'X-RateLimit-Reset',
    ])
    expect(headersOf({ headers: false, limit: 5, window: '1m' }).next()).toEqual({})
  })

  test('with headers: false a refusal still has Retry-After', () => {
    const { next } = headersOf({ headers: false, limit: 1, window: '10s' })
    next()
    expect(next()).toMatchObject({ 'Retry-After': '10' })
  })

  test.each([
    ['an unknown form', 'draft-3', /headers: expected "draft-11" or /],
    [
      'two forms that write one field',
      ['draft-11', 'draft-7'],
      /headers: expected forms of which only one writes RateLimit-Policy/,
    ],
    ['an unknown dialect', { format: 'legacy', reset: 'tomorrow' }, /headers\.reset: expected "epoch-seconds" or /],
    ['true', true, /headers: expected /],
    [
      'a name that is no field',
      { format: 'legacy', names: { limit: 'X Quota' } },
      /headers\.names\.limit: expected the name/,
    ],
    [
      'a name that has a meaning',
      { format: 'legacy', names: { reset: 'Retry-After' } },
      /headers\.names\.reset: expected the name/,
    ],
    [
      'a misspelt field',
      { format: 'legacy', names: { remaning: 'X' } },
      /remaning: unknown option: did you mean remaining/,
    ],
    [
      'two fields of one name',
      { format: 'legacy', names: { limit: 'x-left', remaining: 'X-Left' } },
      /forms of which only one writes X-Left/,
    ],
  ])('headers rejects %s when the limiter is made', (_what, headers, message) => {
    expect(() => createGuard({ limit: 1, window: 1, headers: headers as HeadersOption })).toThrow(message)
  })
})

describe('maxRetryAfter', () => {
  const DAY_MS = 86_400_000
  const month = { limits: [slidingLog({ limit: 1, window: '30d' })], maxRetryAfter: '24d' } as const

  test('a longer wait is shown as the maximum, and the refusal lasts', () => {
    const { time, next } = headersOf({ ...month, headers: 'openai' })
    next()
    expect(next()).toMatchObject({ 'Retry-After': '2073600', 'Retry-After-Ms': '2073600000' })
    time.now = 24 * DAY_MS
    expect(next()).toMatchObject({ 'Retry-After': '518400', 'Retry-After-Ms': '518400000' })
    time.now = 30 * DAY_MS
    expect(next()).not.toHaveProperty('Retry-After')
  })

  test('it holds without quota headers, and lowers no field of others', () => {
    for (const [present, expected] of [
      [{}, '2073600'],
      [{ 'Retry-After': '2592000' }, undefined],
    ] as const) {
      const { next } = headersOf({ ...month, headers: false }, present)
      next()
      expect(next()['Retry-After']).toBe(expected)
    }
  })

  test('another value than a duration is rejected', () => {
    expect(() => headersOf({ ...month, maxRetryAfter: '1 day' as never })).toThrow(
      'maxRetryAfter: expected whole milliseconds or a duration such as "30s"',
    )
  })
})
