import { createHash } from 'node:crypto'
import {
  byCookie,
  byHeader,
  byIp,
  byMethod,
  byPath,
  byRoute,
  byUser,
  compose,
  createLimiter,
  everyone,
  hashedKey,
  type KeyFunction,
  memoryStore,
  perMinute,
  type Store,
  slidingLog,
} from '@sluice/core'
import { createGuard, pathOf } from '@sluice/core/http'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { contextOf } from '../support/context.js'

function keyOf(key: KeyFunction<unknown>, request?: Parameters<typeof contextOf>[0]) {
  const context = contextOf(request)
  return key(context.request, context)
}

const ipKey = (ip: string) => keyOf(byIp(), { ip })

describe('byIp', () => {
  test.each([
    ['1.2.3.4', '1.2.3.4'],
    ['1.2.3.4:5555', '1.2.3.4'],
    ['::ffff:1.2.3.4', '1.2.3.4'],
    ['::FFFF:1.2.3.4', '1.2.3.4'],
    ['::ffff:0102:0304', '1.2.3.4'],
    ['0:0:0:0:0:ffff:102:304', '1.2.3.4'],
    ['[::ffff:1.2.3.4]:80', '1.2.3.4'],
    ['64:ff9b::1.2.3.4', '1.2.3.4'],
    ['64:ff9b::102:304', '1.2.3.4'],
    ['64:ff9b:1::102:304', '64:ff9b:1::/64'],
    ['::1', '::/64'],
    ['[::1]:80', '::/64'],
    ['[::1]', '::/64'],
    ['fe80::1%eth0', 'fe80::/64'],
    ['[fe80::1%25eth0]:443', 'fe80::/64'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:DB8:1:2::', '2001:db8:1:2::/64'],
  ])('byIp counts %s as %s', (ip, key) => {
    expect(keyOf(byIp(), { ip })).toBe(key)
  })

  test.each([
    undefined,
    '',
    'unknown',
    '1.2.3',
    '0x7f.1',
    '01.2.3.4',
    '1.2.3.4, 5.6.7.8',
    '1.2.3.4:',
    ':::',
    '[::1',
    '%eth0',
  ])('byIp rejects %o, which is not an address', (ip) => {
    expect(() => keyOf(byIp(), { ip })).toThrow(expect.objectContaining({ code: 'INVALID_KEY' }))
  })

  test.each([
    [32, '2001:db8::/32'],
    [48, '2001:db8:1::/48'],
    [56, '2001:db8:1:ab00::/56'],
    [60, '2001:db8:1:abc0::/60'],
    [128, '2001:db8:1:abcd:0:1:2:3'],
  ])('byIp groups IPv6 by /%i with ipv6Prefix', (ipv6Prefix, key) => {
    expect(keyOf(byIp({ ipv6Prefix }), { ip: '2001:db8:1:abcd:0:1:2:3' })).toBe(key)
  })

  test.each([0, 129, 64.5, '64', null])('byIp rejects the prefix %o', (ipv6Prefix) => {
    expect(() => byIp({ ipv6Prefix: ipv6Prefix as number })).toThrow(
      expect.objectContaining({ code: 'INVALID_POLICY' }),
    )
  })

  test.each([
    [8, '192.0.0.0/8'],
    [20, '192.0.32.0/20'],
    [24, '192.0.37.0/24'],
    [31, '192.0.37.6/31'],
    [32, '192.0.37.7'],
  ])('byIp groups IPv4 by /%i with ipv4Prefix, however the address is written', (ipv4Prefix, key) => {
    const spellings = [
      '192.0.37.7',
      '192.0.37.7:5555',
      '::ffff:192.0.37.7',
      '::FFFF:c000:2507',
      '[::ffff:192.0.37.7]:80',
      '0:0:0:0:0:ffff:192.0.37.7',
      '64:ff9b::192.0.37.7',
    ]
    expect(new Set(spellings.map((ip) => keyOf(byIp({ ipv4Prefix }), { ip })))).toEqual(new Set([key]))
    expect(keyOf(byIp({ ipv4Prefix }), { ip: '2001:db8::1' })).toBe('2001:db8::/64')
  })

  test.each([0, 33, 23.5, '24', null])('byIp rejects the IPv4 prefix %o', (ipv4Prefix) => {
    expect(() => byIp({ ipv4Prefix: ipv4Prefix as number })).toThrow(
      /^byIp: ipv4Prefix: expected (a whole number|at most 32)/,
    )
  })

  test('byIp recognises another NAT64 prefix if it is named', () => {
    const key = byIp({ nat64: ['64:ff9b::/96', '2001:db8:64::/96'] })
    expect(keyOf(key, { ip: '2001:db8:64::102:304' })).toBe('1.2.3.4')
    expect(keyOf(key, { ip: '64:ff9b::102:304' })).toBe('1.2.3.4')
    expect(keyOf(byIp(), { ip: '2001:db8:64::102:304' })).toBe('2001:db8:64::/64')
    expect(keyOf(byIp({ nat64: false }), { ip: '64:ff9b::102:304' })).toBe('64:ff9b::/64')
  })

  test.each([true, '64:ff9b::/96', ['64:ff9b::/64'], ['1.2.3.4/96'], [null]])(
    'byIp rejects the NAT64 prefixes %o',
    (nat64) => {
      expect(() => byIp({ nat64: nat64 as never })).toThrow(/nat64: expected/)
    },
  )

  test('byIp rejects unknown options', () => {
    expect(() => byIp({ ipv6prefix: 48 } as never)).toThrow(/ipv6prefix/)
  })

  test('byIp with equal options is one key, so exact logs share one state', async () => {
    const seen: number[] = []
    const store = memoryStore()
    const decide: Store['decide'] = (request) => {
      seen.push(request.identities.length, request.plan.cells.length)
      return store.decide(request)
    }
    const keys = [byIp(), byIp({ ipv6Prefix: 64 }), byIp({ ipv6Prefix: 56 })]
    const limits = keys.map((key, i) => slidingLog({ limit: 1 + i, window: '1m', key }))
    await createGuard({ store: { ...store, decide }, limits })(contextOf({ ip: '192.0.2.1' }))
    expect(seen).toEqual([2, 2])
  })

  test('byIp names the problem in a limiter without requests', async () => {
    const limiter = createLimiter({ limit: 1, window: '1s', key: byIp() })
    await expect(limiter.consume('1.2.3.4')).rejects.toThrow(
      expect.objectContaining({
        code: 'INVALID_KEY',
        message: expect.stringMatching(/byIp: expected an HTTP request/),
      }),
    )
  })

  test('addresses of one /64 share a key, and those of two do not', () => {
    const group = fc.integer({ min: 0, max: 0xffff }).map((n) => n.toString(16))
    const half = fc.tuple(group, group, group, group).map((groups) => groups.join(':'))
    fc.assert(
      fc.property(half, half, half, half, (network, other, a, b) => {
        // The two networks that represent IPv4 are treated differently.
        fc.pre(network !== other && ![network, other].some((half) => /^(0:0:0:0|64:ff9b:0:0)$/.test(half)))
        expect(ipKey(`${network}:${a}`)).toBe(ipKey(`${network}:${b}`))
        expect(ipKey(`${network}:${a}`)).not.toBe(ipKey(`${other}:${a}`))
      }),
    )
  })
})

describe('other key functions', () => {
  test('byHeader hashes its value, so that an API key never leaves the process', () => {
    const key = keyOf(byHeader('X-API-Key'), { headers: { 'x-api-key': 'secret' } })
    expect(key).toBe(createHash('sha256').update('secret').digest('base64url'))
    expect(key).toBe(hashedKey('secret'))
    expect(keyOf(byHeader('x-account', { secret: false }), { headers: { 'x-account': 'bob' } })).toBe('bob')
  })

  test.each([
    ['sid=abc', 'abc'],
    ['a=1; sid=abc; b=2', 'abc'],
    ['xsid=no; sid=abc', 'abc'],
    ['sid="abc"', 'abc'],
    ['sid=%61bc', 'abc'],
    ['sid=abc; sid=other', 'abc'],
    ['sid=a=b', 'a=b'],
    ['sid=%E0%A4%A', '%E0%A4%A'],
    ['sid=%E0%A4%A; sid=other', '%E0%A4%A'],
    ['sid=', ''],
    ['sid=""', ''],
    ['sid=; sid=abc', ''],
    [' sid = abc ', 'abc'],
    ['\tsid=abc', 'abc'],
    ['\xa0sid=abc; sid=abc', 'abc'],
    ['sid=\xe9', '\xe9'],
    ['sid=ab"c', 'ab"c'],

    ['SID=no; sid=abc', 'abc'],
    ['sid=abc; \xa0sid=other', 'abc'],
    ['other=abc', undefined],
    ['other=sid=abc', undefined],
    ['sid', undefined],
    [undefined, undefined],
  ])('byCookie reads the cookie in %o as %o', (cookie, value) => {
    expect(keyOf(byCookie('sid', { secret: false }), cookie === undefined ? {} : { headers: { cookie } })).toBe(value)
    expect(keyOf(byCookie('sid'), cookie === undefined ? {} : { headers: { cookie } })).toBe(value && hashedKey(value))
  })

  test.each([
    '\xa0sid=junk; sid=REAL',
    '\tsid=junk; sid=REAL',
    'sid =junk; sid=REAL',
    'sid="REALx',
    'sid="REAL" x',
    'sid=" REAL"',
    'sid= "REAL"',
    'sid=""REAL""',
    'sid=%22REAL%22',
    'sid=\xa0REAL',
    'sid=REAL\x85\xa0',
    'sid=j:"REAL"',
    'sid=j:{"id":1}',
    'sid=j:abc',
    'sid=%6a:[',
  ])('byCookie rejects the cookie in %o, as parsers differ on it', (cookie) => {
    expect(() => keyOf(byCookie('sid'), { headers: { cookie } })).toThrow(
      expect.objectContaining({ code: 'INVALID_KEY' }),
    )
  })

  test.each([
    ['Bearer aBc', 'aBc'],
    ['BEARER aBc', 'aBc'],
    ['bearer\t  aBc ', 'aBc'],
    ['Bearer aBc junk', 'aBc'],
    ['Bearer id=aBc junk', 'id=aBc'],
    ['x1 aBc', 'aBc'],
    ['x2 aBc a=b', 'aBc'],
    ['Bearer abc', 'abc'],
    ['aBc', 'aBc'],
    ['Basic dXNlcjpwdw==', 'dXNlcjpwdw=='],
    ['BASIC  dXNlcjpwdw', 'dXNlcjpwdw=='],
    ['basic dXNlcjpwdw=====', 'dXNlcjpwdw=='],
    ['Digest username="a",\t realm="b c"', 'username="a", realm="b c"'],
    ['', ''],
  ])('byHeader counts the credentials %o as %o', (authorization, key) => {
    expect(keyOf(byHeader('Authorization', { secret: false }), { headers: { authorization } })).toBe(key)
    expect(keyOf(byHeader('proxy-authorization'), { headers: { 'proxy-authorization': authorization } })).toBe(
      key && hashedKey(key),
    )
  })

  test('byHeader rejects Basic credentials in several parts, which verifiers read differently', () => {
    expect(() => keyOf(byHeader('authorization'), { headers: { authorization: 'Basic d XNlcjpwdw' } })).toThrow(
      expect.objectContaining({ code: 'INVALID_KEY' }),
    )
  })

  test('byCookie accepts up to 16 pairs with blanks for one cookie, which parsers read differently', () => {
    const cookie = (pairs: number) => ({ headers: { cookie: 'sid =a; '.repeat(pairs) } })
    expect(keyOf(byCookie('sid', { secret: false }), cookie(16))).toBe('a')
    expect(() => keyOf(byCookie('sid'), cookie(17))).toThrow(expect.objectContaining({ code: 'INVALID_KEY' }))
  })

  test('byCookie accepts a long cookie', () => {
    const long = 'x'.repeat(5000)
    expect(keyOf(byCookie('sid', { secret: false }), { headers: { cookie: `sid=${long}` } })).toBe(long)
  })

  test.each([
    [`Digest ${'a=b '.repeat(63)}`, `Digest ${'a=b '.repeat(64)}`],
    [`Basic ${'YWFh'.repeat(1024)}`, `Basic ${'YWFh'.repeat(1025)}`],
  ])('byHeader accepts credentials of up to 63 parameters, or 4,096 characters of base64', (longest, longer) => {
    const key = byHeader('authorization')
    expect(keyOf(key, { headers: { authorization: longest } })).toBeDefined()
    expect(() => keyOf(key, { headers: { authorization: longer } })).toThrow(
      expect.objectContaining({ code: 'INVALID_KEY' }),
    )
  })

  test('long parts of a composed key result in different keys, whatever they contain', () => {
    const key = compose(byHeader('x-a', { secret: false }), byHeader('x-b', { secret: false }))
    const keys = [
      ['a'.repeat(300), 'b'],
      ['a'.repeat(299), 'ab'],
      [`${'a'.repeat(300)}|b`, 'c'],
      ['a'.repeat(300), 'b|c'],
      ['\\'.repeat(200), '|'.repeat(200)],
      ['|'.repeat(200), '\\'.repeat(200)],
    ].map(([a, b]) => keyOf(key, { headers: { 'x-a': a as string, 'x-b': b as string } }))
    expect(new Set(keys).size).toBe(keys.length)
  })

  test('a missing header or cookie has no key, not the hash of an empty text', () => {
    expect(keyOf(byHeader('x-api-key'))).toBeUndefined()
    expect(keyOf(byHeader('x-api-key'), { headers: { 'x-api-key': '' } })).toBe('')
    expect(keyOf(byCookie('sid'), { headers: { cookie: 'sid=' } })).toBe('')
  })

  test('byPath, byRoute and byMethod read the request, and HEAD counts as GET', () => {
    expect(keyOf(byPath(), { path: '/users/7' })).toBe('/users/7')
    expect(keyOf(byRoute(), { route: '/users/:id' })).toBe('/users/:id')
    expect(keyOf(byRoute())).toBeUndefined()
    expect(keyOf(byMethod(), { method: 'HEAD' })).toBe('GET')
    expect(keyOf(byMethod(), { method: 'POST' })).toBe('POST')
  })

  test.each([
    ['/items', '/items'],
    ['/Items', '/items'],
    ['/items/', '/items'],
    ['//items///', '/items'],
    ['/%69tem%73', '/items'],
    ['/%49tems%2F', '/items'],
    ['/%7Eann/x/.././', '/~ann'],
    ['/a/%2E/b', '/a/b'],
    ['/../..', '/'],
    ['/caf%C3%A9', '/café'],
    ['/a%20b', '/a b'],
    ['/a%40b', '/a@b'],
    ['/a@b', '/a@b'],
    ['/a%2fb\\c%5Cd', '/a/b/c/d'],
    ['/a;x=1;y/b%3bz', '/a/b'],
    ['/%2569', '/%2569'],
    ['/%', '/%25'],
    ['/%ff', '/%25ff'],
    ['/a\xa0', '/a'],
    ['/', '/'],
    ['//', '/'],
    ['*', '/'],
  ])('byPath counts %o as %o, and unchanged with exact: true', (path, folded) => {
    expect(keyOf(byPath(), { path })).toBe(folded)
    expect(keyOf(byPath({ exact: true }), { path })).toBe(path)
  })

  test.each([
    ['a segment of two to some, and one to others, before ..', '/a/b%2fc/../d'],
    ['a backslash before ..', '/a\\b/../c'],
    ['an encoded ..', '/a/%2e%2e/b'],
    ['.. with a parameter', '/a/..;x/b'],
    ['an empty segment before ..', '/a//../b'],
    ['an encoded slash in a parameter', '/a;x%2fy'],
    ['a host that some take for a part of the path', 'http://a;b/c'],
    ['a query that some take for a path', 'http://a?b/c'],
    ['another scheme', 'ftp://a/b'],
    ['a user before a host', '//ann@a/b'],
    ['a user before a host below a mount path', '/a//ann@b/c'],
    ['no slash', 'a/b'],
    ['more than 128 segments', '/A'.repeat(129)],
    ['more than 16,384 characters', '/A'.padEnd(16_385, '%25')],
  ])('byPath rejects a path that routers read differently: %s', (_, target) => {
    expect(() => keyOf(byPath(), { path: pathOf(target) })).toThrow(/expected a path/)
  })

  test('byPath of a key returns the same key', () => {
    for (const path of ['/A%2525/%zz', '/%2525', '/a%2541', '/%e2%84%aa', '/%', '/a%3f%23', '/x;y/%3B']) {
      const key = keyOf(byPath(), { path }) as string
      expect(keyOf(byPath(), { path: key }), path).toBe(key)
    }
  })

  test('a path given by hand is normalised like those of requests', async () => {
    const { limiter } = createGuard({ limit: 1, window: '1m', key: byPath() })
    await limiter.consume({ path: '/Items/' })
    expect((await limiter.peek({ path: '/items' })).remaining).toBe(0)
    const exact = createGuard({ limit: 1, window: '1m', key: byPath({ exact: true }) })
    await exact.limiter.consume({ path: '/Items/' })
    expect((await exact.limiter.peek({ path: '/items' })).remaining).toBe(1)
    expect(() => byPath({ exact: 'yes' as never })).toThrow(/byPath: exact: expected/)
  })

  test('an identity of two kinds is rejected with a hint', async () => {
    const limits = [perMinute(2, { key: byIp() }), perMinute(2, { key: byUser(() => 'ann') })]
    const { limiter } = createGuard({ limits })
    const both = { ip: '192.0.2.1', user: 'ann' }
    const message =
      'expected { ip: … } or { user: … }, got an object of 2 kinds, whose limits are apart: one call for each'
    for (const call of [limiter.peek(both), limiter.consume(both), limiter.acquire(both), limiter.reset(both)]) {
      await expect(call).rejects.toThrow(message)
    }
    await expect(limiter.block(both, { for: '1h' })).rejects.toThrow(message)
  })

  test.each([
    ['/a?b=c', '/a'],
    ['/a#b', '/a'],
    ['/a/?', '/a/'],
    ['http://host:80/a?b', '/a'],
    ['http://host', '/'],
    ['http://host?a', '/'],
    ['http://[::1]:80/a', '/a'],
    ['HTTP://host/a', 'HTTP://host/a'],
    ['*', '*'],
    ['//a', '//a'],
  ])('pathOf(%s) is %s', (target, path) => {
    expect(pathOf(target)).toBe(path)
  })

  test("byUser returns the application's user, and nothing without one", () => {
    expect(keyOf(byUser(() => 42))).toBe(42)
    expect(keyOf(byUser(() => undefined))).toBeUndefined()
    expect(() => byUser(undefined as never)).toThrow(/byUser: user: expected a function/)
  })

  test.each([
    () => byHeader(''),
    () => byHeader('two words'),
    () => byHeader('x', { secret: 'no' as never }),
    () => byCookie('a=b'),
    () => byCookie('sid', { hashed: false } as never),
    () => byCookie('sid', { signed: 'yes' as never }),
    () => byHeader('x', { signed: true } as never),
    () => compose(),
    () => compose('ip' as never),
  ])('invalid arguments are rejected: %s', (make) => {
    expect(make).toThrow(expect.objectContaining({ code: 'INVALID_POLICY' }))
  })
})

describe('compose', () => {
  test('compose joins keys readably', () => {
    expect(keyOf(compose(byIp(), byPath()), { ip: '1.2.3.4', path: '/api/widgets' })).toBe('1.2.3.4|/api/widgets')
  })

  test('compose never makes the same key of different parts', () => {
    const part = fc.string({ unit: fc.constantFrom('|', '\\', ':', 'a', 'b', '\n'), minLength: 1, maxLength: 6 })
    // A single key is not composed: it stays unchanged, and its kind differs.
    const parts = fc.array(part, { minLength: 2, maxLength: 4 })
    const composed = (values: string[]) => keyOf(compose(...values.map((value) => () => value)))
    fc.assert(
      fc.property(parts, parts, (a, b) => {
        fc.pre(JSON.stringify(a) !== JSON.stringify(b))
        expect(composed(a)).not.toBe(composed(b))
      }),
      { numRuns: 2000 },
    )
  })

  test.each([undefined, null, '', Number.NaN])('compose has no key for a part that is %o', async (part) => {
    expect(keyOf(compose(everyone(), () => part as never))).toBe(part)
    const limiter = createLimiter<string>({
      name: 'c',
      store: memoryStore(),
      limit: 1,
      window: '1s',
      key: compose(
        () => 'a',
        () => part as never,
      ),
    })
    await expect(limiter.consume('x')).rejects.toThrow(expect.objectContaining({ code: 'INVALID_KEY' }))
  })
})
