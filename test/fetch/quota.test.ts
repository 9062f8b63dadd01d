import { type Quota, readQuota } from '@sluice/fetch/quota'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { byEffort } from '../support/effort.js'

const DATE = 'Tue, 05 Jan 2021 10:59:30 GMT'
const AT = Date.parse(DATE) / 1000
const MAX_MS = 366 * 86_400_000

interface Sample {
  readonly service: string
  /** Where the sample, or its form, comes from. */
  readonly source: string
  readonly status?: number
  readonly headers: Record<string, string>
  readonly expected: Partial<Omit<Quota, 'limits'>> & { limits?: Partial<Quota['limits'][number]>[] }
}

const SAMPLES: readonly Sample[] = [
  {
    service: 'IETF draft 6',
    source: 'https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-ratelimit-headers-06',
    headers: {
      'RateLimit-Limit': '100',
      'RateLimit-Remaining': '50',
      'RateLimit-Reset': '50',
      'RateLimit-Policy': '100;w=60',
    },
    expected: {
      limits: [{ name: 'default', limit: 100, remaining: 50, resetAfterMs: 50_000, windowMs: 60_000 }],
      holdMs: 0,
    },
  },
  {
    service: 'IETF draft 3, with windows in the limit',
    source: 'https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-ratelimit-headers-03',
    headers: { 'RateLimit-Limit': '10, 10;w=1, 50;w=60', 'RateLimit-Remaining': '9', 'RateLimit-Reset': '1' },
    expected: { limits: [{ limit: 10, remaining: 9, resetAfterMs: 1000, windowMs: 1000 }] },
  },
  {
    service: 'IETF draft 7',
    source: 'https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-ratelimit-headers-07',
    headers: {
      RateLimit: 'limit=100, remaining=50, reset=50',
      'RateLimit-Policy': '100;w=60, 5000;w=3600;comment="a, b"',
    },
    expected: { limits: [{ limit: 100, remaining: 50, resetAfterMs: 50_000, windowMs: 60_000 }] },
  },
  {
    service: 'IETF draft 8 and later, two policies',
    source: 'https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-ratelimit-headers-10',
    status: 429,
    headers: {
      RateLimit: '"permin";r=0;t=5, "bytes; a \\"day\\"";r=7;t=3600',
      'RateLimit-Policy': '"permin";q=50;w=60,"bytes; a \\"day\\"";q=1000;w=86400;qu="content-bytes"',
    },
    expected: {
      isRefusal: true,
      holdMs: 5000,
      limits: [
        { name: 'permin', unit: 'requests', limit: 50, remaining: 0, resetAfterMs: 5000, windowMs: 60_000 },
        { name: 'bytes; a "day"', unit: 'content-bytes', limit: 1000, remaining: 7, resetAfterMs: 3_600_000 },
      ],
    },
  },
  {
    service: 'GitHub',
    source: 'https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api',
    headers: {
      Date: DATE,
      'x-ratelimit-limit': '5000',
      'x-ratelimit-remaining': '4999',
      'x-ratelimit-used': '1',
      'x-ratelimit-reset': String(AT + 3600),
      'x-ratelimit-resource': 'core',
    },
    expected: { isRefusal: false, limits: [{ name: 'core', limit: 5000, remaining: 4999, resetAfterMs: 3_600_000 }] },
  },
  {
    service: 'GitHub, primary limit',
    source: 'https://docs.github.com/rest/using-the-rest-api/troubleshooting-the-rest-api',
    status: 403,
    headers: {
      Date: DATE,
      'x-ratelimit-limit': '60',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': String(AT + 90),
    },
    expected: { isRefusal: true, retryAfterMs: undefined, holdMs: 90_000 },
  },
  {
    service: 'GitHub, secondary limit',
    source: 'https://docs.github.com/rest/using-the-rest-api/troubleshooting-the-rest-api',
    status: 403,
    headers: {
      'retry-after': '60',
      'x-ratelimit-limit': '5000',
      'x-ratelimit-remaining': '4711',
      'x-ratelimit-reset': '1',
    },
    expected: { isRefusal: true, retryAfterMs: 60_000, holdMs: 60_000 },
  },
  {
    service: 'a 403 that is no limit',
    source: 'https://docs.github.com/rest/using-the-rest-api/troubleshooting-the-rest-api',
    status: 403,
    headers: { 'x-ratelimit-limit': '5000', 'x-ratelimit-remaining': '4711', 'x-ratelimit-reset': '1' },
    expected: { isRefusal: false, holdMs: 0 },
  },
  {
    service: 'GitLab',
    source: 'https://docs.gitlab.com/administration/settings/user_and_ip_rate_limits/#response-headers',
    status: 429,
    headers: {
      Date: DATE,
      'RateLimit-Limit': '60',
      'RateLimit-Name': 'throttle_authenticated_web',
      'RateLimit-Observed': '67',
      'RateLimit-Remaining': '0',
      'RateLimit-Reset': '1609844400',
      'RateLimit-ResetTime': 'Tue, 05 Jan 2021 11:00:00 GMT',
      'Retry-After': '30',
    },
    expected: {
      isRefusal: true,
      holdMs: 30_000,
      limits: [{ name: 'throttle_authenticated_web', limit: 60, remaining: 0, resetAfterMs: 30_000 }],
    },
  },
  {
    service: 'OpenAI',
    source: 'https://community.openai.com/t/how-to-get-rate-limit-reset-time-for-response-api/1268905',
    headers: {
      'x-ratelimit-limit-requests': '5000',
      'x-ratelimit-limit-tokens': '160000',
      'x-ratelimit-limit-tokens_usage_based': '160000',
      'x-ratelimit-remaining-requests': '4999',
      'x-ratelimit-remaining-tokens': '159976',
      'x-ratelimit-remaining-tokens_usage_based': '159976',
      'x-ratelimit-reset-requests': '12ms',
      'x-ratelimit-reset-tokens': '6m0s',
      'x-ratelimit-reset-tokens_usage_based': '9ms',
    },
    expected: {
      limits: [
        { name: 'requests', unit: 'requests', limit: 5000, remaining: 4999, resetAfterMs: 12, isBucket: true },
        { name: 'tokens', unit: 'tokens', limit: 160_000, remaining: 159_976, resetAfterMs: 360_000 },
        { name: 'tokens_usage_based', unit: 'tokens', resetAfterMs: 9 },
      ],
    },
  },
  {
    service: 'OpenAI, nothing left: one unit comes back after a part of the reset',
    source: 'https://platform.openai.com/docs/guides/rate-limits#rate-limits-in-headers',
    status: 429,
    headers: {
      'x-ratelimit-limit-requests': '60',
      'x-ratelimit-remaining-requests': '0',
      'x-ratelimit-reset-requests': '1m0s',
    },
    expected: { isRefusal: true, holdMs: 1000 },
  },
  {
    service: 'Groq, as OpenAI',
    source: 'https://console.groq.com/docs/rate-limits#rate-limit-headers',
    headers: {
      'x-ratelimit-limit-requests': '14400',
      'x-ratelimit-remaining-requests': '14370',
      'x-ratelimit-reset-requests': '2m59.56s',
    },
    expected: { limits: [{ limit: 14_400, remaining: 14_370, resetAfterMs: 179_560 }] },
  },
  {
    service: 'Azure OpenAI, which does not know',
    source:
      'https://learn.microsoft.com/en-us/answers/questions/5625878/azure-openai-responses-api-x-ratelimit-headers-val',
    headers: {
      'x-ratelimit-limit-tokens': '-1',
      'x-ratelimit-remaining-tokens': '-1',
      'x-ratelimit-reset-tokens': '0',
    },
    expected: { limits: [] },
  },
  {
    service: 'Anthropic',
    source: 'https://platform.claude.com/docs/en/api/rate-limits#response-headers',
    status: 429,
    headers: {
      Date: DATE,
      'anthropic-ratelimit-input-tokens-limit': '40000',
      'anthropic-ratelimit-input-tokens-remaining': '0',
      'anthropic-ratelimit-input-tokens-reset': '2021-01-05T11:00:30Z',
      'anthropic-ratelimit-requests-limit': '50',
      'anthropic-ratelimit-requests-remaining': '49',
      'anthropic-ratelimit-requests-reset': '2021-01-05T10:59:32Z',
      'retry-after': '12',
    },
    expected: {
      isRefusal: true,
      holdMs: 12_000,
      limits: [
        { name: 'input-tokens', unit: 'tokens', limit: 40_000, remaining: 0, resetAfterMs: 60_000 },
        { name: 'requests', unit: 'requests', limit: 50, remaining: 49, resetAfterMs: 2000 },
      ],
    },
  },
  {
    service: 'Discord',
    source: 'https://docs.discord.com/developers/topics/rate-limits',
    status: 429,
    headers: {
      'X-RateLimit-Limit': '10',
      'X-RateLimit-Remaining': '0',
      'X-RateLimit-Reset': '1470173023.123',
      'X-RateLimit-Reset-After': '64.57',
      'X-RateLimit-Bucket': 'abcd1234',
      'X-RateLimit-Scope': 'user',
      'Retry-After': '65',
    },
    expected: { isRefusal: true, holdMs: 65_000, limits: [{ name: 'abcd1234', limit: 10, resetAfterMs: 64_570 }] },
  },
  {
    service: 'Stripe',
    source: 'https://docs.stripe.com/rate-limits',
    status: 429,
    headers: { 'Stripe-Rate-Limited-Reason': 'endpoint-rate' },
    expected: { isRefusal: true, retryAfterMs: undefined, holdMs: 0, limits: [] },
  },
  {
    service: 'retry-after-ms beside Retry-After',
    source: 'https://github.com/openai/openai-node/blob/master/src/client.ts',
    status: 429,
    headers: { 'retry-after-ms': '1234.5', 'Retry-After': '2' },
    expected: { retryAfterMs: 1235, holdMs: 1235 },
  },
  {
    service: 'Retry-After as a date, by the Date of the response',
    source: 'https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3',
    status: 503,
    headers: { Date: DATE, 'Retry-After': 'Tue, 05 Jan 2021 11:01:30 GMT' },
    expected: { isRefusal: true, holdMs: 120_000 },
  },
  {
    service: 'a 503 alone',
    source: 'https://www.rfc-editor.org/rfc/rfc9110#section-15.6.4',
    status: 503,
    headers: {},
    expected: { isRefusal: false, holdMs: 0 },
  },
  {
    service: 'the year 9999',
    source: 'bad input',
    status: 429,
    headers: { Date: DATE, 'Retry-After': 'Fri, 31 Dec 9999 23:59:59 GMT' },
    expected: { holdMs: MAX_MS },
  },
  {
    service: 'numbers that lie',
    source: 'bad input',
    headers: {
      'x-ratelimit-limit': '10',
      'x-ratelimit-remaining': '99999999999999999999',
      'x-ratelimit-reset': 'soon',
    },
    expected: { limits: [{ limit: 10, remaining: 10, resetAfterMs: undefined }] },
  },
  {
    service: 'dates before the response',
    source: 'bad input',
    status: 429,
    headers: { Date: DATE, 'Retry-After': 'Mon, 01 Jan 2001 00:00:00 GMT' },
    expected: { isRefusal: true, retryAfterMs: 0, holdMs: 0 },
  },
]

test.each(SAMPLES)('the quota of $service is read from its headers', ({ status = 200, headers, expected }) => {
  expect(readQuota({ status, headers: new Headers(headers) })).toMatchObject(expected)
  expect(readQuota({ status, headers })).toMatchObject(expected)
})

test('numbers are whole, bounded and never negative, whatever the headers say', () => {
  const name = fc.constantFrom(
    ...SAMPLES.flatMap(({ headers }) => Object.keys(headers)),
    'x-ratelimit-limit-__proto__',
    'anthropic-ratelimit-constructor-remaining',
  )
  const value = fc.oneof(
    fc.string(),
    fc.constantFrom(...SAMPLES.flatMap(({ headers }) => Object.values(headers))),
    fc.double().map(String),
    fc.bigInt().map(String),
    fc.date({ noInvalidDate: true }).map((date) => date.toUTCString()),
    fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
    fc.stringMatching(/^[\d.hmsµn;,="rtqw -]{0,60}$/),
  )
  const inRange = (value: number | undefined, most: number) =>
    value === undefined || (Number.isSafeInteger(value) && value >= 0 && value <= most)
  fc.assert(
    fc.property(fc.integer({ min: 100, max: 599 }), fc.array(fc.tuple(name, value)), (status, headers) => {
      const quota = readQuota({ status, headers: Object.fromEntries(headers) })
      expect(inRange(quota.holdMs, MAX_MS) && inRange(quota.retryAfterMs, MAX_MS)).toBe(true)
      for (const { limit, remaining, resetAfterMs, windowMs } of quota.limits) {
        expect([limit, remaining].every((units) => inRange(units, Number.MAX_SAFE_INTEGER))).toBe(true)
        expect(inRange(resetAfterMs, MAX_MS) && inRange(windowMs, MAX_MS)).toBe(true)
        expect(remaining === undefined || limit === undefined || remaining <= limit).toBe(true)
      }
    }),
    { numRuns: byEffort({ usual: 500, full: 20_000 }) },
  )
})

test.each<[string, unknown]>([
  ['with names and values in turns', ['Retry-After', '60', 'X-RateLimit-Remaining', '0']],
  [
    'in pairs',
    [
      ['Retry-After', '60'],
      ['x-ratelimit-remaining', '0'],
    ],
  ],
  ['of a Map', new Map([['Retry-After', '60']])],
])('raw headers %s are read', (_, headers) => {
  expect(readQuota({ status: 429, headers: headers as never }).retryAfterMs).toBe(60_000)
})

test('nothing in the place of headers makes readQuota throw', () => {
  const bare = Object.create(null)
  const cyclic: unknown[] = []
  cyclic.push(cyclic)
  const throwing = {
    forEach() {
      throw new Error('of the headers')
    },
  }
  const others = [null, undefined, ['a'], { a: bare }, new Map([[1, 2]]), { a: Symbol('a') }, cyclic, throwing, 'a', 1]
  const anything = fc.anything({ withNullPrototype: true, withMap: true, withSet: true, withTypedArray: true })
  fc.assert(
    fc.property(fc.oneof(fc.constantFrom(...others), anything), (headers) => {
      expect(readQuota({ status: 200, headers: headers as never }).isRefusal).toBe(false)
    }),
  )
})
