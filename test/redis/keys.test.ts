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
  type Duration,
  everyone,
  type KeyFunction,
  keyed,
  type Limiter,
  redisStore,
  slidingLog,
} from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { contextOf } from '../support/context.js'
import { insist } from '../support/outages.js'
import { redisForTests } from '../support/redis-for-tests.js'

const { server, client } = await redisForTests()
const store = insist(redisStore(client, { timeout: 5000 }))
beforeEach(() => server.flush())
afterAll(() => store.close())

const long = 'x'.repeat(10_000)

/** Identities that have broken keys before, with neighbours that a careless escape would make equal. */
const odd = [
  ...[
    'a',
    'a ',
    ' a',
    'A',
    'a\0',
    'a\0b',
    'ab',
    '\0',
    ' ',
    '\t',
    '\r\n',
    '\n',
    'a\r\nb',
    'a\nb',
    'a\u2028b',
    '\x7f',
    '\x1b[31m',
  ],
  ...['{', '}', '{}', '{a}', '{{a}}', 'a}', '}{', '{a}b', 'a{b}', '}:default:block', '{a}:default:block'],
  ...[':', '::', 'a:b', 'a:', ':a', 'sluice:a', 'default:a', 'a:default', 'a:default:block', 'block', 'a}:keys:block'],
  ...['*', '?', '[a]', '[^a]', '\\', '\\*', 'a*', '**'],
  ...[
    '__proto__',
    'constructor',
    'prototype',
    'toString',
    'hasOwnProperty',
    'undefined',
    'null',
    'NaN',
    '0',
    '-1',
    '1e3',
  ],
  ...[
    '%',
    '%41',
    '%25',
    '%2541',
    '%7B',
    '#',
    '#a',
    '+',
    '/',
    'a/b',
    'a%2Fb',
    "'",
    '"',
    '`',
    '$',
    '(',
    ')',
    '!',
    '~',
    '|',
    ',',
  ],
  ...[
    'é',
    'e\u0301',
    'É',
    '日本',
    '😀',
    '\ud83d',
    '\ude00',
    '\ud800',
    '\udfff',
    '\ufffd',
    '\ufffe',
    '\ufeff',
    '\ufeffa',
    'a\ufeff',
  ],
  ...['1.2.3.4', '1.2.3.4/api/widgets', '::1', '2001:db8::/64', '[::1]:80'],
  ...[
    long,
    `${long}y`,
    `y${long}`,
    `${long}é`,
    `${long}\ud800`,
    `${long}\ufffd`,
    '😀'.repeat(3000),
    '{'.repeat(5000),
    '\0'.repeat(200),
  ],
  ...[
    'y'.repeat(63),
    'y'.repeat(64),
    'y'.repeat(65),
    'y'.repeat(96),
    'y'.repeat(97),
    'é'.repeat(15),
    'é'.repeat(16),
    'é'.repeat(17),
  ],
]

test('each odd identity has its own quota', async () => {
  expect(new Set(odd).size).toBe(odd.length)
  const limiter = createLimiter({ name: 'keys', store, limit: 2, window: '1h' })
  const expectAll = async (step: string, expected: object) => {
    for (const identity of odd) {
      const { allowed, remaining } = await limiter.consume(identity)
      expect({ step, identity, allowed, remaining }).toEqual({ step, identity, ...expected })
    }
  }
  await expectAll('first', { allowed: true, remaining: 1 })
  await expectAll('second', { allowed: true, remaining: 0 })
  await expectAll('third', { allowed: false, remaining: 0 })
  expect((await server.lifetimes()).size).toBe(odd.length)
})

test('an identity that looks like the key of another identity has its own quota', async () => {
  const limiter = createLimiter({ name: 'keys', store, limit: 1, window: '1h' })
  for (const identity of odd) {
    await server.flush()
    expect((await limiter.consume(identity)).allowed).toBe(true)
    const [key] = [...(await server.lifetimes()).keys()] as [string]
    const tag = key.slice(key.indexOf('{') + 1, key.indexOf('}'))
    for (const lookalike of [key, tag, `{${tag}}`].filter((text) => text !== identity)) {
      expect({ lookalike, allowed: (await limiter.consume(lookalike)).allowed }).toEqual({ lookalike, allowed: true })
    }
  }
})

test('keys are short and printable for every identity', async () => {
  // A separate prefix: other stores would restore its blocks after the flush of the next test.
  const own = insist(redisStore(client, { prefix: 'own:', timeout: 5000 }))
  const limiter = createLimiter({ name: 'keys', store: own, limit: 2, window: '1h' })
  for (const identity of odd) {
    await limiter.consume(identity)
    await limiter.block(identity, { for: '1h', reason: identity.slice(0, 50) })
  }
  for (const key of (await server.lifetimes()).keys()) {
    expect(key).toMatch(/^[\x21-\x7e]{1,200}$/)
    // One hash tag, around the whole identity, so that it cannot choose its slot. The marker of blocks has no identity.
    if (key !== 'own:v1:blocked') expect(key.match(/[{}]/g)).toEqual(['{', '}'])
    expect(key).not.toContain('*')
  }
  await own.close()
})

test('a reset, a refund or a block of an odd identity affects that identity alone', async () => {
  const own = insist(redisStore(client, { prefix: 'own:', timeout: 5000 }))
  const limiter = createLimiter({ name: 'keys', store: own, limit: 5, window: '1h' })
  const remaining = () => Promise.all(odd.map(async (identity) => (await limiter.peek(identity)).remaining))
  const verdicts = await Promise.all(odd.map((identity) => limiter.consume(identity, { cost: 2 })))
  const expected = new Array<number>(odd.length).fill(3)
  for (const [i, identity] of odd.entries()) {
    if (i % 3 === 0) await limiter.reset(identity)
    else if (i % 3 === 1) await limiter.refund(identity, verdicts[i] as Awaited<ReturnType<Limiter['consume']>>)
    else await limiter.block(identity, { for: '1h' })
    expected[i] = i % 3 === 2 ? 0 : 5
    if (i % 10 === 0) expect(await remaining()).toEqual(expected)
  }
  expect(await remaining()).toEqual(expected)
  await own.close()
})

test('the identities of one request have separate quotas', async () => {
  type Pair = readonly [string, string]
  const limits = [
    slidingLog<Pair>({ limit: 1, window: '1h', key: keyed('first', ([a]) => a) }),
    slidingLog<Pair>({ limit: 1, window: '1h', key: keyed('second', ([, b]) => b) }),
  ]
  const limiter = createLimiter<Pair>({ name: 'pairs', store, limits })
  const pairs: Pair[] = [
    ['a', 'b:c'],
    ['a:b', 'c'],
    ['b', 'a'],
    ['a}', '{b'],
    ['same', 'same'],
  ]
  for (const pair of pairs)
    expect({ pair, allowed: (await limiter.consume(pair)).allowed }).toEqual({ pair, allowed: true })
  expect((await limiter.consume(['a', 'new'])).limits.map(({ allowed }) => allowed)).toEqual([false, true])
  expect((await limiter.consume(['new', 'a'])).limits.map(({ allowed }) => allowed)).toEqual([true, false])
})

test('limiters of one name share counts exactly when their limits are the same, in any order', async () => {
  const make = (limits: [number, Duration][]) =>
    createLimiter({ name: 'same', store, limits: limits.map(([limit, window]) => slidingLog({ limit, window })) })
  const one = make([
    [5, '1m'],
    [9, '1h'],
  ])
  const turned = make([
    [9, '1h'],
    [5, '1m'],
  ])
  const other = make([
    [6, '1m'],
    [9, '1h'],
  ])
  await one.consume('k', { cost: 3 })
  expect((await turned.peek('k')).remaining).toBe(2)
  expect((await other.peek('k')).remaining).toBe(6)
})

test('policies have separate quotas and blocks for the same identity', async () => {
  const login = createLimiter({ name: 'login', store, limit: 1, window: '1h' })
  const search = createLimiter({ name: 'search', store, limit: 1, window: '1h' })
  await login.consume('k')
  await login.block('other', { for: '1h' })
  expect((await search.consume('k')).allowed).toBe(true)
  expect((await search.consume('other')).allowed).toBe(true)
  // The store would restore the block after the flush of the next test.
  await login.unblock('other')
})

test('a key has the version of its layout and the kind of its identity', async () => {
  const context = contextOf({
    ip: '2001:db8::1',
    path: '/a b',
    route: '/:id',
    method: 'POST',
    headers: { 'x-api-key': 'secret', cookie: 'sid=secret', 'x+ip': '192.0.2.1', 'x-name': 'ann' },
  })
  const hash = createHash('sha256').update('secret').digest('base64url')
  const long = createHash('sha256').update('y'.repeat(999), 'utf16le').digest('base64url').slice(0, 22)
  const kinds: readonly (readonly [KeyFunction<unknown>, string])[] = [
    [byIp(), 'ip=2001:db8::/64'],
    [byUser(() => 42), 'user=42'],
    [byHeader('X-Api-Key'), `header:x-api-key=${hash}`],
    [byHeader('x+ip', { secret: false }), 'header:x%2Bip=192.0.2.1'],
    [byCookie('sid'), `cookie:sid=${hash}`],
    [byPath(), 'path=%2Fa%20b'],
    [byRoute(), 'route=/:id'],
    [byMethod(), 'method=POST'],
    [everyone(), 'everyone=everyone'],
    [keyed('account', () => 'ann=bob|+'), 'account=ann=bob|+'],
    [keyed('long', () => 'y'.repeat(999)), `long=%23${long}`],
    [() => 'ip=192.0.2.1', 'key=ip=192.0.2.1'],
    [() => undefined, 'anonymous=2001:db8::/64'],
    [compose(byIp(), byHeader('x-name', { secret: false })), 'ip+header:x-name=2001:db8::/64|ann'],
  ]
  for (const [key, identity] of kinds) {
    await server.flush()
    await createGuard<unknown>({ name: 'told', store, limit: 9, window: '1h', key, anonymous: 'by-ip' })(context)
    // The store may look for blocks meanwhile, and note that Redis lost them.
    const states = [...(await server.lifetimes()).keys()].filter((name) => !name.includes('}:.store:'))
    expect(states).toEqual([`sluice:v1:{${identity}}:told:log.9.3600000`])
  }
})
