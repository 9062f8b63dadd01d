import { createHash } from 'node:crypto'
import type { HttpContext, MatchedPolicies } from '@sluice/core'
import { findingsIn, policies, problemsIn } from '@sluice/policies'
import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { warningsDuring } from '../support/process-events.js'

interface Client {
  readonly user?: string
  readonly ip?: string
  readonly apiKey?: string
  readonly authorization?: string
  /** Whether the client can have chosen its address. */
  readonly isProxied?: boolean
}

const KEYS = {
  keys: { user: (request: Client) => request.user },
  tiers: { plan: (request: Client) => (request.user?.startsWith('vip') ? 'gold' : 'free') },
}

const OPEN = { everyone: 'trustProxy: true', remedy: 'name your proxies', app: {} }

function contextOf(client: Client): HttpContext<Client> {
  return {
    request: client,
    method: 'GET',
    path: '/',
    target: '/',
    ip: client.ip,
    proxyTrust: client.isProxied ? OPEN : 'named',
    route: undefined,
    response: { on() {}, removeListener() {} },
    header: (name) => ({ 'x-api-key': client.apiKey, authorization: client.authorization })[name],
    signedCookie: () => undefined,
    getResponseHeader: () => undefined,
  }
}

async function limitsFor(overrides: unknown, policy: object = { limits: [{ limit: 1, window: '1m' }] }) {
  const loaded = await policies.from({ object: { version: 1, policies: { api: policy }, overrides }, ...KEYS })
  return async (client: Client) => {
    const matched = (await loaded.match(contextOf(client))) as MatchedPolicies<Client>
    return matched.options.limits?.map(({ limit }) => limit)
  }
}

const to = (limit: number) => [{ limit }]

describe('overrides', () => {
  test('an override applies to its client only', async () => {
    const limits = await limitsFor([{ policy: 'api', key: { user: '42' }, limits: to(9) }])
    expect(await limits({ user: '42' })).toEqual([9])
    expect(await limits({ user: '421' })).toEqual([1])
    expect(await limits({})).toEqual([1])
  })

  test('an override of credentials matches their hash in any spelling, and lists reject secrets in plain text', async () => {
    const sha256 = `sha256:${createHash('sha256').update('abc').digest('hex')}`
    const policy = { key: 'credentials', limits: [{ limit: 1, window: '1m' }] }
    const limits = await limitsFor([{ policy: 'api', key: { credentials: sha256 }, limits: to(9) }], policy)
    expect(await limits({ authorization: 'bearer  abc' })).toEqual([9])
    expect(await limits({ authorization: 'Bearer abd' })).toEqual([1])
    const listed = limitsFor([], { ...policy, deny: { credentials: ['Bearer a'] } })
    await expect(listed).rejects.toThrow('expected no secrets in lists: give them an override')
  })

  test('an override of a number and of its text is for the same user', async () => {
    const limits = await limitsFor([{ policy: 'api', key: { user: 42 }, limits: to(9) }])
    expect(await limits({ user: '42' })).toEqual([9])
  })

  test('overrides apply in the order: exact key, smallest range, longest prefix, tier', async () => {
    const tiers = { free: [{ limit: 1, window: '1m' }], gold: [{ limit: 2, window: '1m' }] }
    const limits = await limitsFor(
      [
        { policy: 'api', prefix: { user: 'v' }, limits: to(3) },
        { policy: 'api', prefix: { user: 'vip-' }, limits: to(4) },
        { policy: 'api', range: '192.0.2.0/24', limits: to(5) },
        { policy: 'api', range: '192.0.2.64/26', limits: to(6) },
        { policy: 'api', key: { ip: '192.0.2.65' }, limits: to(7) },
        { policy: 'api', key: { user: 'vip-1' }, limits: to(8) },
      ],
      { tier: 'plan', tiers },
    )
    expect(await limits({ user: 'ann' })).toEqual([1])
    expect(await limits({ user: 'wvip' })).toEqual([1])
    expect(await limits({ user: 'v1' })).toEqual([3])
    expect(await limits({ user: 'vip-2' })).toEqual([4])
    expect(await limits({ user: 'vip-2', ip: '192.0.2.1' })).toEqual([5])
    expect(await limits({ user: 'vip-2', ip: '192.0.2.66' })).toEqual([6])
    expect(await limits({ user: 'vip-2', ip: '::ffff:192.0.2.65' })).toEqual([7])
    expect(await limits({ user: 'vip-1', ip: '192.0.2.65' })).toEqual([8])
    expect(await limits({ user: 'vip2' })).toEqual([3])
  })

  test('an override for an address that clients could choose applies only if it admits no more', async () => {
    const policy = { limits: [{ limit: 10, window: '1m', algorithm: 'gcra' }] }
    const changes: [object, boolean][] = [
      [{ limit: 9 }, true],
      [{ limit: 9, window: '1h' }, true],
      [{ limit: 9, burst: 10 }, true],
      [{ limit: 9, algorithm: 'gcra' }, true],
      [{ limit: 11 }, false],
      [{ limit: 9, burst: 11 }, false],
      [{ limit: 9, window: '59s' }, false],
      [{ limit: 9, algorithm: 'fixedWindow' }, false],
    ]
    for (const [change, counts] of changes) {
      for (const client of [{ range: '192.0.2.0/24' }, { key: { ip: '192.0.2.7' } }, { prefix: { ip: '192.0.' } }]) {
        const limits = await limitsFor([{ policy: 'api', ...client, limits: [change] }], policy)
        const limit = (change as { limit: number }).limit
        expect(await limits({ ip: '192.0.2.7' })).toEqual([limit])
        expect(await limits({ ip: '192.0.2.7', isProxied: true })).toEqual([counts ? limit : 10])
      }
    }
    const ofUser = await limitsFor([{ policy: 'api', key: { user: '42' }, limits: to(99) }], policy)
    expect(await ofUser({ user: '42', isProxied: true })).toEqual([99])
  })

  test('an override of an IPv6 range applies to the whole range', async () => {
    const limits = await limitsFor([{ policy: 'api', range: '2001:db8::/33', limits: to(5) }])
    expect(await limits({ ip: '2001:db8:7fff::1' })).toEqual([5])
    expect(await limits({ ip: '2001:db8:8000::1' })).toEqual([1])
    expect(await limits({ ip: '32.1.13.184' })).toEqual([1])
  })

  test.each([
    ['192.0.2.0/24', '::ffff:192.0.2.7'],
    ['192.0.2.0/24', '64:ff9b::192.0.2.7'],
    ['::ffff:192.0.2.0/120', '192.0.2.7'],
    ['64:ff9b::c000:200/120', '192.0.2.7'],
    ['64:ff9b::192.0.2.7', '192.0.2.7'],
    ['192.0.2.3-192.0.2.9', '192.0.2.7'],
    ['2001:db8::3 - 2001:db8::9', '2001:db8::7'],
  ])('an override of %s applies to %s', async (range, ip) => {
    const limits = await limitsFor([{ policy: 'api', range, limits: to(5) }])
    expect(await limits({ ip })).toEqual([5])
  })

  test('among overrides of overlapping ranges the smallest range applies, in any form', async () => {
    const limits = await limitsFor([
      { policy: 'api', range: '192.0.2.0/30', limits: to(5) },
      { policy: 'api', range: '192.0.2.0-192.0.2.2', limits: to(6) },
      { policy: 'api', range: '192.0.2.1-192.0.2.8', limits: to(7) },
    ])
    const ofLast = (last: number) => limits({ ip: `192.0.2.${last}` })
    expect(await Promise.all([0, 2, 3, 4, 9].map(ofLast))).toEqual([[6], [6], [5], [7], [1]])
  })

  test('an override changes the limits that it names, and leaves the others', async () => {
    const limits = await limitsFor([{ policy: 'api', key: { user: 'ann' }, limits: [{ name: 'day', limit: 500 }] }], {
      limits: [
        { name: 'minute', limit: 10, window: '1m' },
        { name: 'day', limit: 100, window: '1d' },
      ],
    })
    expect(await limits({ user: 'ann' })).toEqual([10, 500])
  })

  test('an override may change the algorithm', async () => {
    const loaded = await policies.from({
      object: {
        version: 1,
        policies: { api: { limits: [{ limit: 1, window: '1m' }] } },
        overrides: [
          { policy: 'api', key: { user: 'ann' }, limits: [{ algorithm: 'slidingWindow', limit: 60, precision: '1s' }] },
        ],
      },
      ...KEYS,
    })
    const matched = (await loaded.match(contextOf({ user: 'ann' }))) as MatchedPolicies<Client>
    expect(matched.options.limits).toMatchObject([{ algorithm: 'slidingWindow', limit: 60, window: 60_000 }])
  })

  test('an override ends at its time', async () => {
    const until = new Date(Date.now() + 60_000).toISOString()
    const limits = await limitsFor([{ policy: 'api', key: { user: 'ann' }, limits: to(9), until }])
    expect(await limits({ user: 'ann' })).toEqual([9])
    vi.useFakeTimers({ now: Date.now() + 61_000, toFake: ['Date'] })
    try {
      expect(await limits({ user: 'ann' })).toEqual([1])
    } finally {
      vi.useRealTimers()
    }
  })

  test('an ended override hides no wider one, in explain as well', async () => {
    const ended = { until: '2020-01-01T00:00:00Z' }
    const loaded = await policies.from({
      object: {
        version: 1,
        policies: { api: { limits: [{ limit: 1, window: '1m' }] } },
        overrides: [
          { policy: 'api', prefix: { user: 'v' }, limits: to(3) },
          { policy: 'api', prefix: { user: 'vip-' }, limits: to(4), ...ended },
          { policy: 'api', range: '192.0.2.0/24', limits: to(5) },
          { policy: 'api', range: '192.0.2.64/26', limits: to(6), ...ended },
          { policy: 'api', key: { ip: '192.0.2.1' }, limits: to(7), ...ended },
          { policy: 'api', key: { user: 'vip-1' }, limits: to(8), ...ended },
        ],
      },
      ...KEYS,
    })
    const decided = async ({ user, ip }: Client) => {
      const matched = (await loaded.match(contextOf({ user, ip }))) as MatchedPolicies<Client>
      const [explained] = await loaded.explain({ path: '/', ip, request: { user } })
      return [matched.options.limits?.[0]?.limit, explained?.override, explained?.limits[0]?.limit]
    }
    expect(await decided({ user: 'vip-2' })).toEqual([3, 0, 3])
    expect(await decided({ user: 'vip-1' })).toEqual([3, 0, 3])
    expect(await decided({ ip: '192.0.2.66' })).toEqual([5, 2, 5])
    expect(await decided({ ip: '192.0.2.1' })).toEqual([5, 2, 5])
    expect(await decided({ user: 'bob' })).toEqual([1, undefined, 1])
  })

  test('an override of a secret contains its hash', async () => {
    const hash = createHash('sha256').update('s3cret').digest('hex')
    const limits = await limitsFor([{ policy: 'api', key: { 'header:x-api-key': `sha256:${hash}` }, limits: to(9) }])
    expect(await limits({ apiKey: 's3cret' })).toEqual([9])
    expect(await limits({ apiKey: 'other' })).toEqual([1])
  })

  test('equal matches return the same object, and unequal ones do not', async () => {
    const loaded = await policies.from({
      object: {
        version: 1,
        policies: { api: { limits: [{ limit: 1, window: '1m' }] }, more: { limits: [{ limit: 2, window: '1m' }] } },
        overrides: [{ policy: 'api', prefix: { user: 'a' }, limits: to(9) }],
      },
      ...KEYS,
    })
    const matched = (user: string) => loaded.match(contextOf({ user }))
    expect(await matched('ann')).toBe(await matched('amy'))
    expect(await matched('ann')).not.toBe(await matched('bob'))
  })
})

test('among random overrides each client has the one that a linear search finds', async () => {
  const user = fc.stringMatching(/^[ab]{1,4}$/)
  const ip = fc.tuple(fc.constantFrom(10, 11), fc.nat(3), fc.nat(3), fc.nat(255)).map((parts) => parts.join('.'))
  const place = fc.oneof(
    user.map((value) => ({ key: { user: value } })),
    user.map((value) => ({ prefix: { user: value } })),
    fc.tuple(ip, fc.integer({ min: 0, max: 32 })).map(([address, bits]) => ({ range: `${address}/${bits}` })),
  )
  // Some have ended: they must have no effect.
  const override = fc
    .tuple(place, fc.constantFrom(undefined, '2020-01-01T00:00:00Z', '2100-01-01T00:00:00Z'))
    .map(([each, until]) => ({ ...each, ...(until && { until }) }))
  const number = (address: string) => address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
  const masked = (address: string, bits: number) => Math.floor(number(address) / 2 ** (32 - bits))
  const same = ({ until: _, ...a }: { until?: string }) => {
    const { range } = a as { range?: string }
    if (!range) return JSON.stringify(a)
    const [address, bits] = range.split('/') as [string, string]
    return `${masked(address, Number(bits))}/${bits}`
  }
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(override, { maxLength: 30, selector: same }),
      user,
      ip,
      async (given, ann, address) => {
        const all = given.map((each, i) => ({ policy: 'api', ...each, limits: to(i + 2) }))
        const rank = (each: (typeof all)[number]) => {
          const { key, prefix, range } = each as { key?: { user: string }; prefix?: { user: string }; range?: string }
          if (each.until?.startsWith('2020')) return -1
          if (key) return key.user === ann ? 1000 : -1
          if (prefix) return ann.startsWith(prefix.user) ? prefix.user.length : -1
          const [start, bits] = (range as string).split('/') as [string, string]
          return masked(start, Number(bits)) === masked(address, Number(bits)) ? 100 + Number(bits) : -1
        }
        const best = Math.max(-1, ...all.map(rank))
        const expected = best < 0 ? 1 : all[all.findIndex((each) => rank(each) === best)]?.limits[0]?.limit
        const limits = await limitsFor(all)
        expect(await limits({ user: ann, ip: address })).toEqual([expected])
      },
    ),
  )
})

describe('overrides for clients that their policy does not count', () => {
  const limits = [{ limit: 2, window: '1m' }]
  const ofUser = { key: { user: 'u' } }
  /** The warnings when a policy is loaded with overrides. */
  async function warned(policy: object, ...overrides: object[]) {
    const document = {
      version: 1,
      policies: { uncounted: { limits, ...policy } },
      overrides: overrides.map((each) => ({ policy: 'uncounted', limits: [{ limit: 3 }], ...each })),
    }
    const keys = { user: () => 'u', account: () => 'a' }
    const warnings = await warningsDuring(() =>
      policies.from({ object: document, keys, tiers: { plan: () => 'free' } }),
    )
    return warnings.filter(({ message }) => message.includes('uncounted'))
  }

  test('an override of a kind that its policy does not count causes one warning per kind', async () => {
    const advice =
      'counts by "ip", so this client shares the limit with others; to count it by itself, give the policy key:'
    expect(await warned({}, ofUser, { key: { user: 'v' } }, { prefix: { account: 'a' } })).toMatchObject([
      { code: 'SLUICE_OVERRIDE_KIND', message: `object: overrides[0].key: policy "uncounted" ${advice} user` },
      { code: 'SLUICE_OVERRIDE_KIND', message: `object: overrides[2].prefix: policy "uncounted" ${advice} account` },
    ])
    const text = `version: 1
policies:
  api: { limits: [{ limit: 1, window: 1m }] }
overrides:
  - { policy: api, key: { user: a }, limits: [{ limit: 2 }] }
`
    expect(findingsIn(text, 'a.yaml', 'any')).toMatchObject({ problems: [], advice: [{ line: 5, column: 25 }] })
  })

  test.each<[string, object, object]>([
    ['the policy counts them', { key: 'user' }, ofUser],
    ['their kind is a part of the key', { key: ['user', 'path'] }, ofUser],
    [
      'one of its limits counts them',
      { limits: [...limits, { name: 'own', key: 'user', limit: 1, window: '1h' }] },
      { ...ofUser, limits: [{ name: 'own', limit: 5 }] },
    ],
    [
      'a tier counts them',
      { limits: undefined, tier: 'plan', tiers: { free: [{ ...limits[0], key: 'user' }] } },
      ofUser,
    ],
    ['they are a network', { key: 'user' }, { range: '192.0.2.0/24' }],
    ['they are an address', { key: 'user' }, { key: { ip: '192.0.2.7' } }],
  ])('an override causes no warning if %s', async (_, policy, override) => {
    expect(await warned(policy, override)).toEqual([])
  })
})

describe('mistakes in overrides', () => {
  const head = 'version: 1\npolicies:\n  api: { limits: [{ limit: 1, window: 1m }] }\noverrides:\n'
  test.each([
    [
      'of an unknown policy',
      '  - { policy: apo, key: { user: a }, limits: [{ limit: 2 }] }',
      'overrides[0].policy',
      /"api"/,
    ],
    ['for no identity', '  - { policy: api, limits: [{ limit: 2 }] }', 'overrides[0]', /one of key, prefix and range/],
    ['without limits', '  - { policy: api, key: { user: a } }', 'overrides[0]', /limits/],
    [
      'of an unknown limit',
      '  - { policy: api, key: { user: a }, limits: [{ name: b, limit: 2 }] }',
      'overrides[0].limits[0].name',
      /"b"/,
    ],
    [
      'of a range in two spellings',
      '  - { policy: api, range: 192.0.2.0/24, limits: [{ limit: 2 }] }\n' +
        "  - { policy: api, range: '::ffff:192.0.2.9/120', limits: [{ limit: 3 }] }",
      'overrides[1].range',
      /twice/,
    ],
    [
      'of an invalid range',
      '  - { policy: api, range: 192.0.2.0/33, limits: [{ limit: 2 }] }',
      'overrides[0].range',
      /192\.0\.2\.0\/24/,
    ],
    [
      'of a time without a zone',
      '  - { policy: api, key: { user: a }, limits: [{ limit: 2 }], until: "2026-01-01T00:00:00" }',
      'overrides[0].until',
      /zone/,
    ],
    [
      'of a time that does not exist',
      '  - { policy: api, key: { user: a }, limits: [{ limit: 2 }], until: "2026-13-01T00:00:00Z" }',
      'overrides[0].until',
      /a time that there is/,
    ],
    [
      'with a field of another algorithm',
      '  - { policy: api, key: { user: a }, limits: [{ limit: 2, burst: 3 }] }',
      'overrides[0].limits[0].burst',
      /unknown field/,
    ],
    [
      'twice for one client',
      '  - { policy: api, key: { user: a }, limits: [{ limit: 2 }] }\n  - { policy: api, key: { user: a }, limits: [{ limit: 3 }] }',
      'overrides[1].key',
      /twice/,
    ],
  ])('an override %s is rejected with its place', (_what, text, path, message) => {
    const problems = problemsIn(`${head}${text}\n`, 'a.yaml', 'any')
    expect(problems).toMatchObject([{ path, line: expect.any(Number), message: expect.stringMatching(message) }])
  })

  test('an override with a secret in plain text is rejected without showing it', () => {
    const text = '  - { policy: api, key: { "header:x-api-key": s3cret }, limits: [{ limit: 2 }] }'
    const [problem] = problemsIn(`${head}${text}\n`, 'a.yaml', 'any')
    expect(problem?.message).toMatch(/expected sha256: and 64 hexadecimal digits/)
    expect(JSON.stringify(problem)).not.toContain('s3cret')
  })
})
