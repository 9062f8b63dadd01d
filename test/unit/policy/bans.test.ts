import { byHeader, createLimiter, gcra, keyed, type Limiter, memoryStore, type Store } from '@sluice/core'
import { BANS } from '@sluice/core/store'
import { expect, test } from 'vitest'
import { isPrivateAddress } from '../../../packages/core/src/policy/private-address.js'

const TERMS = { after: 10, within: '10m', for: ['10m', '1h'] } as const
const make = (ban: object, more: object = {}) =>
  createLimiter({ name: 'b', limit: 1, window: '1m', ban, ...more } as never)

test.each([
  ['no strikes', { after: 0 }, 'ban: after: expected a whole number of at least 1, got 0'],
  ['too many', { after: 1001 }, 'ban: after: expected at most 1000 strikes, got 1001'],
  ['half a strike', { after: 1.5 }, 'ban: after: expected a whole number'],
  ['no window', { within: undefined }, 'ban: within: expected whole milliseconds or a duration'],
  ['a ladder without rungs', { for: [] }, 'ban: for: expected durations'],
  [
    'a ladder that does not grow',
    { for: ['10m', '10m'] },
    'ban: for[1]: expected a longer time than the rung before, 10m',
  ],
  ['a ladder that goes down', { for: ['1h', '10m'] }, 'ban: for[1]: expected a longer time than the rung before, 1h'],
  ['a rung beyond all times', { for: ['1m', '99999999d'] }, 'ban: for[1]: expected whole milliseconds or a duration'],
  [
    'too many rungs',
    { for: Array.from({ length: 33 }, (_, n) => n + 1) },
    'ban: for: expected at most 32 rungs, got 33',
  ],
  ['a duration alone', { for: '10m' }, 'ban: for: expected durations'],
  ['a factor of one', { for: { first: '1m', times: 1, max: '1h' } }, 'ban: for: times: expected a number above 1'],
  [
    'a factor that is not a number',
    { for: { first: '1m', times: Number.NaN, max: '1h' } },
    'ban: for: times: expected a number',
  ],
  ['a factor that is endless', { for: { first: 1, times: Number.POSITIVE_INFINITY, max: '1h' } }, 'ban: for: times'],
  ['a factor that is slow', { for: { first: '1m', times: 1.01, max: '1h' } }, 'within 32 rungs'],
  ['a maximum below the first', { for: { first: '1h', max: '1m' } }, 'ban: for: max: expected at least the first, 1h'],
  ['a growth without an end', { for: { first: '1h' } }, 'ban: for: max: expected whole milliseconds or a duration'],
  ['forgetting before strikes lapse', { forgetAfter: '1m' }, 'ban: forgetAfter: expected at least within, 10m'],
  ['more jitter than ban', { jitter: '2h' }, 'ban: jitter: expected at most the last ban, 1h'],
  ['another scope', { scope: 'all' }, 'ban: scope: expected "policy" or "store"'],
  ['a kind that is not counted', { by: 'ip' }, 'ban: by: expected a kind that the policy counts: "key", got "ip"'],
  ['an unknown option', { until: '1h' }, 'ban: until: unknown option'],
  ['a response without HTTP', { respond: () => 'gone' }, 'ban: respond: expected none without HTTP'],
  ['an outcome without HTTP', { count: { only: 401 } }, 'ban: count: expected none without HTTP'],
  ['private other than true or false', { private: 'yes' }, 'ban: private: expected true or false'],
])('ban options are rejected: %s', (_, ban, message) => {
  expect(() => make({ ...TERMS, ...ban })).toThrow(message)
})

test('ban.by is required where a policy counts several kinds', () => {
  const limits = [
    gcra({ limit: 1, window: '1m', key: keyed('account', (of: string) => of) }),
    gcra({ limit: 1, window: '1m', key: keyed('device', (of: string) => of) }),
  ]
  expect(() => createLimiter({ limits, ban: TERMS })).toThrow(
    'ban: by: expected the kind that is banned, as the policy counts several: "account" or "device", got undefined',
  )
  expect(() => createLimiter({ limits, ban: { ...TERMS, by: 'device' } })).not.toThrow()
  expect(() => make('soon' as never)).toThrow('ban: options: expected an object, got "soon"')
})

test('a policy with ban rejects leases, and stores without strike() in store[BANS]', () => {
  const limits = [gcra({ limit: 10, window: '1m', lease: { size: 2, ttl: '1s' } })]
  expect(() => createLimiter({ limits, ban: TERMS })).toThrow('ban: expected none beside lease')
  const { decide, reset, close, [BANS]: bans } = memoryStore()
  for (const part of [undefined, { block: bans.block, unblock: bans.unblock }]) {
    const store: Store = { decide, reset, close, [BANS]: part }
    expect(() => make(TERMS, { store })).toThrow('ban: expected a store that has strike() in store[BANS]')
  }
})

test.each([
  [{ weight: 0 }, 'strike: weight: expected a whole number of at least 1, got 0'],
  [{ weight: -1 }, 'strike: weight'],
  [{ weight: 0.5 }, 'strike: weight'],
  [{ weight: Number.MAX_SAFE_INTEGER }, 'strike: weight: expected at most 1000000'],
  [{ reason: 'x'.repeat(201) }, 'reason: expected a string of up to 200 characters'],
  [{ for: '1h' }, 'strike: for: unknown option'],
])('strike rejects invalid options: %j', async (options, message) => {
  await expect(make(TERMS).strike('k', options as never)).rejects.toThrow(message)
})

test('strike rejects in a policy without ban, and for identities of other kinds', async () => {
  const none = createLimiter({ limit: 1, window: '1m' })
  await expect(none.strike('k')).rejects.toThrow('strike: expected a policy with ban')
  const limits = [
    gcra({ limit: 1, window: '1m', key: keyed('account', (of: string) => of) }),
    gcra({ limit: 1, window: '1m', key: keyed('device', (of: string) => of) }),
  ]
  const two = createLimiter({ limits, ban: { ...TERMS, by: 'device' } })
  await expect(two.strike({ account: 'ann' })).rejects.toThrow(
    'strike: expected an identity of the kind that is banned, "device", got one of "account"',
  )
})

test('identities of any bytes are struck and banned apart', async () => {
  const limiter = make({ after: 2, within: '1h', for: ['1h'] }, { store: memoryStore() }) as Limiter
  const keys = [
    'a',
    'a:b',
    'a\0b',
    '__proto__',
    'constructor',
    '\ud800',
    'é',
    'e\u0301',
    'x'.repeat(5000),
    ' ',
    '}:b:strikes',
  ]
  for (const key of keys) expect(await limiter.strike(key)).toBeUndefined()
  for (const key of keys) expect(await limiter.strike(key)).toMatchObject({ rung: 1, strikes: 2 })
})

test('the heaviest strike bans once, on the first rung', async () => {
  const limiter = make(TERMS) as Limiter
  expect(await limiter.strike('k', { weight: 1_000_000 })).toMatchObject({ rung: 1, strikes: 1_000_000 })
  expect(await limiter.strike('k', { weight: 1_000_000 })).toMatchObject({ rung: 1 })
})

test('jitter prolongs each ban by a different time up to its value', async () => {
  const now = 1_800_000_000_000
  const limiter = make(
    { after: 1, within: '1m', for: ['10m'], jitter: '1m' },
    { store: memoryStore({ clock: () => now }) },
  )
  const ends = await Promise.all(Array.from({ length: 200 }, (_, n) => limiter.strike(`k${n}`)))
  const jitters = ends.map((ban) => (ban?.until ?? 0) - now - 600_000)
  expect(Math.min(...jitters)).toBeGreaterThanOrEqual(0)
  expect(Math.max(...jitters)).toBeLessThanOrEqual(60_000)
  expect(new Set(jitters).size).toBeGreaterThan(100)
})

test('isPrivateAddress recognises private, loopback and link-local addresses', () => {
  const isPrivate = [
    ...[
      '127.0.0.1',
      '10.255.0.1',
      '172.16.0.1',
      '172.31.255.255',
      '192.168.1.1',
      '169.254.0.9',
      '100.64.0.1',
      '100.127.0.1',
    ],
    ...['::1', '::/64', '::1/128', 'fe80::/64', 'febf::/64', 'fc00::/64', 'fdff:1::/64'],
  ]
  const isPublic = [
    ...[
      '128.0.0.1',
      '11.0.0.1',
      '172.15.0.1',
      '172.32.0.1',
      '192.169.0.1',
      '169.253.0.1',
      '100.63.0.1',
      '100.128.0.1',
      '1.2.3.4',
    ],
    ...['2001:db8::/64', '::1:0:0:0/64', 'fec0::/64', 'fe00::/64', 'fb00::/64', '::2'],
  ]
  for (const address of isPrivate) expect([address, isPrivateAddress(address)]).toEqual([address, true])
  for (const address of isPublic) expect([address, isPrivateAddress(address)]).toEqual([address, false])
  expect(isPrivateAddress('ip=10.0.0.1', 3)).toBe(true)
})

test('a limiter of requests rejects a ban by a kind that it does not count', () => {
  expect(() =>
    createLimiter({ limit: 1, window: '1m', key: byHeader('x') as never, ban: { ...TERMS, by: 'ip' } }),
  ).toThrow('a kind that the policy counts: "header:x", got "ip"')
})
