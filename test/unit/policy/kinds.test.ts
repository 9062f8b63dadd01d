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
  concurrency,
  createLimiter,
  everyone,
  fixedWindow,
  gcra,
  type IdentityByKind,
  type KeyFunction,
  keyed,
  type Limiter,
  memoryStore,
  perMinute,
  type RateLimitOptions,
  SluiceError,
  slidingLog,
} from '@sluice/core'
import { createGuard, type Guard } from '@sluice/core/http'
import { describe, expect, test } from 'vitest'
import { contextOf } from '../../support/context.js'

interface Login {
  readonly account?: string
  readonly user?: string
}

const account = keyed<Login>('account', (login) => login.account)
const user = byUser<Login>((login) => login.user)

const guardOf = (options: RateLimitOptions<Login>) => createGuard<Login>({ name: 'login', ...options })

/** The outcome of a request. */
function ask(guard: Guard<Login>, request: Login, context: Parameters<typeof contextOf>[0] = {}) {
  return guard(contextOf({ ip: '192.0.2.1', ...context, request }) as never)
}

/** The remaining units of an identity in each limit. */
async function left(limiter: Limiter<never>, identity: IdentityByKind): Promise<number[]> {
  return (await (limiter as Limiter<unknown>).peek(identity)).limits.map(({ remaining }) => remaining)
}

const loginGuard = () =>
  guardOf({
    limits: [
      slidingLog({ name: 'account', limit: 3, window: '15m', key: account }),
      slidingLog({ name: 'burst', limit: 9, window: '1m', key: account }),
      slidingLog({ name: 'address', limit: 6, window: '15m', key: byIp() }),
    ],
  })

describe('identities of a verdict', () => {
  test('a verdict has its policy, and the identity of each limit', () => {
    const limits = [
      perMinute<Login>(1, { key: account }),
      perMinute<Login>(2, { key: compose(byIp(), byMethod()) }),
      perMinute<Login>(3, { key: byHeader('X-Api-Key') }),
      perMinute<Login>(4, { key: everyone() }),
    ]
    const { verdict } = ask(guardOf({ limits }), { account: 'a=b|c' }, { headers: { 'x-api-key': 'secret' } }) as never
    const { policy, limits: reports } = verdict as Awaited<ReturnType<Limiter['peek']>>
    expect(policy).toBe('login')
    expect(reports.map(({ key }) => key)).toEqual([
      { kind: 'account', value: 'a=b|c' },
      { kind: 'ip+method', value: ['192.0.2.1', 'GET'] },
      { kind: 'header:x-api-key', value: createHash('sha256').update('secret').digest('base64url') },
      { kind: 'everyone', value: 'everyone' },
    ])
  })

  test('a verdict as JSON, which may go to clients, has no identities', async () => {
    const limiter = createLimiter({ limit: 1, window: '1m' })
    const verdict = await limiter.consume('hush-hush')
    expect(verdict.limits[0]?.key).toEqual({ kind: 'key', value: 'hush-hush' })
    expect(JSON.stringify(verdict) + JSON.stringify(verdict.limits)).not.toContain('hush')
  })

  test.each([
    [
      ['a', 'b'],
      ['a', 'b'],
    ],
    [
      ['a|b', 'c\\'],
      ['a|b', 'c\\'],
    ],
    [
      ['\\|', '\n=+'],
      ['\\|', '\n=+'],
    ],
  ])('a verdict has the parts of a composed key: %j', async (parts, expected) => {
    const [first, second] = [0, 1].map((i) => keyed<string[]>(`part-${i}`, (given) => given[i]))
    const key = compose(first as KeyFunction<string[]>, second as KeyFunction<string[]>)
    const limiter = createLimiter<string[]>({ limit: 1, window: '1m', key })
    expect((await limiter.consume(parts)).limits[0]?.key).toEqual({ kind: 'part-0+part-1', value: expected })
  })
})

describe('an identity given by its kind', () => {
  test('an identity given by its kind is refused with the spread retry-after of its limit', async () => {
    const { limiter } = guardOf({
      store: memoryStore({ clock: () => 1_800_000_000_000 }),
      limits: [
        fixedWindow({ limit: 2, window: '1h', spread: '10m', key: account }),
        fixedWindow({ limit: 9, window: '1h', key: byIp() }),
      ],
    })
    for (let i = 0; i < 2; i++) await limiter.consume({ account: 'ada' })

    const refused = await limiter.consume({ account: 'ada' })

    expect(refused.retryAfterMs).toBeGreaterThan(0)
    expect(refused.retryAfterMs).toBe(refused.limits[0]?.retryAfterMs)
  })

  test('an identity given by its kind is peeked, charged, refunded and reset on the limits of its kind only', async () => {
    const guard = loginGuard()
    const { limiter } = guard
    await ask(guard, { account: 'ann' })
    expect(await left(limiter as never, { account: 'ann' })).toEqual([2, 8])
    expect(await left(limiter as never, { ip: '192.0.2.1' })).toEqual([5])
    const verdict = await limiter.consume({ ip: '192.0.2.1' }, { cost: 2 })
    expect(verdict.limits.map(({ name, remaining }) => [name, remaining])).toEqual([['address', 3]])
    expect((await limiter.acquire({ account: 'ann' })).remaining).toBe(1)
    await expect(limiter.refund({ ip: '192.0.2.2' }, verdict)).rejects.toMatchObject({ code: 'INVALID_KEY' })
    expect(await limiter.refund({ ip: '192.0.2.1' }, verdict)).toBe(true)
    expect(await left(limiter as never, { ip: '192.0.2.1' })).toEqual([5])
    await limiter.reset({ account: 'ann' })
    expect(await left(limiter as never, { account: 'ann' })).toEqual([3, 9])
    expect(await left(limiter as never, { ip: '192.0.2.1' })).toEqual([5])
  })

  test('a verdict of a request can be refunded by any of its identities', async () => {
    const guard = loginGuard()
    const { verdict } = await ask(guard, { account: 'ann' })
    await expect(guard.limiter.refund({ account: 'bob' }, verdict as never)).rejects.toMatchObject({
      code: 'INVALID_KEY',
    })
    expect(await guard.limiter.refund({ account: 'ann' }, verdict as never)).toBe(true)
    expect(await left(guard.limiter as never, { ip: '192.0.2.1' })).toEqual([6])
  })

  test('an identity given by its kind shares state with requests, for any algorithm, unit and reserve', async () => {
    const limits = [
      gcra<Login>({ name: 'bytes', limit: 100, window: '1h', unit: 'content-bytes', key: account }),
      fixedWindow<Login>({ name: 'all', limit: 10, window: '1h', key: everyone(), reserve: 2 }),
      concurrency<Login>({ name: 'permits', limit: 3, key: byIp() }),
      fixedWindow<Login>({ name: 'own', limit: 5, window: '1h', key: account }),
    ]
    const { limiter } = guardOf({ limits, body: { max: 9 }, priority: () => 0 })
    const verdict = await limiter.consume({ account: 'ann' }, { cost: 2, bytes: 30 })
    expect(verdict.limits.map(({ name, remaining }) => [name, remaining])).toEqual([
      ['bytes', 70],
      ['own', 3],
    ])
    expect(await verdict.settle(1)).toBe(true)
    expect(await left(limiter as never, { account: 'ann' })).toEqual([70, 4])
    const held = await limiter.consume({ ip: '192.0.2.1' }, { cost: 2 })
    expect(held.remaining).toBe(2)
    await limiter.release(held)
    expect(await left(limiter as never, { ip: '192.0.2.1' })).toEqual([3])
    expect(await left(limiter as never, { everyone: 'everyone' })).toEqual([8])
    expect((await limiter.consume({ everyone: 'everyone' }, { cost: 9 })).allowed).toBe(false)
    expect((await limiter.consume({ everyone: 'everyone' }, { cost: 9, priority: 1 })).allowed).toBe(true)
  })

  test('an identity given by its kind is normalised and hashed by its key', async () => {
    const limits = [
      perMinute<Login>(5, { key: byHeader('X-Api-Key') }),
      perMinute<Login>(5, { key: byCookie('sid') }),
      perMinute<Login>(5, { key: compose(byIp(), byMethod(), user) }),
    ]
    const guard = guardOf({ limits })
    const { limiter } = guard
    await ask(guard, { user: '7' }, { headers: { 'x-api-key': 'key', cookie: 'sid=session' } })
    expect(await left(limiter as never, { 'header:x-api-key': 'key' })).toEqual([4])
    expect(await left(limiter as never, { 'cookie:sid': 'session' })).toEqual([4])
    expect(await left(limiter as never, { 'ip+method+user': ['::ffff:192.0.2.1', 'HEAD', 7] })).toEqual([4])
  })

  test.each<[string, KeyFunction<Login>, IdentityByKind]>([
    ['ip', byIp(), { ip: '[2001:db8::1]:443' }],
    ['user', user, { user: 7 }],
    ['path', byPath(), { path: '/a' }],
    ['route', byRoute(), { route: '/:id' }],
    ['method', byMethod(), { method: 'HEAD' }],
    ['everyone', everyone(), { everyone: 'everyone' }],
    ['account', account, { account: 7n }],
  ])('a block of an identity of the kind %s applies to requests', async (_kind, key, identity) => {
    const guard = guardOf({ limit: 9, window: '1m', key })
    const context = { ip: '2001:db8::2', path: '/a', route: '/:id' }
    const reason = async () => (await ask(guard, { user: '7', account: '7' }, context)).verdict?.reason
    await guard.limiter.block(identity, { for: '1h' })
    expect(await reason()).toBe('blocked')
    await guard.limiter.unblock(identity)
    expect(await reason()).toBe(undefined)
  })

  test('an anonymous identity reaches the limits of anonymous clients only', async () => {
    const limits = [perMinute<Login>(2, { key: account }), perMinute<Login>(9, { key: byIp() })]
    const guard = guardOf({ limits, anonymous: 'by-ip' })
    await ask(guard, {})
    await ask(guard, { account: '192.0.2.1' })
    expect(await left(guard.limiter as never, { anonymous: '::ffff:192.0.2.1' })).toEqual([1])
    await guard.limiter.reset({ anonymous: '192.0.2.1' })
    expect(await left(guard.limiter as never, { anonymous: '192.0.2.1' })).toEqual([2])
    expect(await left(guard.limiter as never, { account: '192.0.2.1' })).toEqual([1])
    await guard.limiter.block({ anonymous: '192.0.2.1' }, { for: '1h' })
    expect((await ask(guard, {})).verdict?.reason).toBe('blocked')
    expect((await ask(guard, { account: '192.0.2.1' })).verdict?.allowed).toBe(true)
    const byAddress = guardOf({ limit: 9, window: '1m', anonymous: 'by-ip' })
    await expect(byAddress.limiter.block({ anonymous: '192.0.2.1' }, { for: '1h' })).rejects.toMatchObject({
      code: 'INVALID_KEY',
    })
  })

  test('an address counts in every grouping of a policy, and is blocked in the smallest group', async () => {
    const limits = [
      perMinute<Login>(5, { name: 'site', key: byIp({ ipv6Prefix: 48 }) }),
      perMinute<Login>(5, { name: 'client', key: byIp() }),
    ]
    const guard = guardOf({ limits })
    await ask(guard, {}, { ip: '2001:db8:0:1::1' })
    await ask(guard, {}, { ip: '2001:db8:0:2::1' })
    expect(await left(guard.limiter as never, { ip: '2001:db8:0:1::2' })).toEqual([3, 4])
    await guard.limiter.reset({ ip: '2001:db8:0:1::2' })
    expect(await left(guard.limiter as never, { ip: '2001:db8:0:2::1' })).toEqual([5, 4])
    await guard.limiter.block({ ip: '2001:db8:0:1::3' }, { for: '1h' })
    expect((await ask(guard, {}, { ip: '2001:db8:0:1::1' })).verdict?.reason).toBe('blocked')
    expect((await ask(guard, {}, { ip: '2001:db8:0:2::1' })).verdict?.allowed).toBe(true)
    // An IPv4 address has the same text in both groupings, with a state in each.
    await ask(guard, {}, { ip: '192.0.2.1' })
    expect(await left(guard.limiter as never, { ip: '192.0.2.1' })).toEqual([4, 4])
  })

  test('an IPv4 address counts in its network beside itself, and is blocked alone', async () => {
    const limits = [
      perMinute<Login>(5, { name: 'network', key: byIp({ ipv4Prefix: 24, ipv6Prefix: 128 }) }),
      perMinute<Login>(5, { name: 'client', key: byIp() }),
    ]
    const guard = guardOf({ limits })
    await ask(guard, {}, { ip: '192.0.2.1' })
    await ask(guard, {}, { ip: '::ffff:192.0.2.2' })
    expect(await left(guard.limiter as never, { ip: '192.0.2.2' })).toEqual([3, 4])
    await guard.limiter.block({ ip: '192.0.2.1' }, { for: '1h' })
    expect((await ask(guard, {}, { ip: '192.0.2.1' })).verdict?.reason).toBe('blocked')
    expect((await ask(guard, {}, { ip: '192.0.2.2' })).verdict?.allowed).toBe(true)
  })

  test('an IPv4 address that counts only in its network is blocked with the network', async () => {
    const guard = guardOf({ limits: [perMinute<Login>(5, { key: byIp({ ipv4Prefix: 24 }) })] })
    await guard.limiter.block({ ip: '192.0.2.1' }, { for: '1h' })
    expect((await ask(guard, {}, { ip: '192.0.2.200' })).verdict?.reason).toBe('blocked')
    expect((await ask(guard, {}, { ip: '192.0.3.1' })).verdict?.allowed).toBe(true)
    await guard.limiter.unblock({ ip: '192.0.2.77' })
    expect((await ask(guard, {}, { ip: '192.0.2.200' })).verdict?.allowed).toBe(true)
  })

  test('networks of IPv4 are not banned, and single addresses beside them are', async () => {
    const network = perMinute<Login>(9, { name: 'network', key: byIp({ ipv4Prefix: 24 }) })
    const ban = { after: 1, within: '1m', for: ['1h'] } as const
    expect(() => guardOf({ limits: [network], ban })).toThrow(
      /ban: by: expected single addresses of IPv4, got networks by byIp\(\{ ipv4Prefix: 24 \}\): add a limit by byIp\(\)/,
    )
    const guard = guardOf({ limits: [network, perMinute<Login>(1, { name: 'client', key: byIp() })], ban })
    for (let n = 0; n < 2; n++) await ask(guard, {}, { ip: '192.0.2.1' })
    expect((await ask(guard, {}, { ip: '192.0.2.1' })).verdict?.reason).toBe('banned')
    expect((await ask(guard, {}, { ip: '192.0.2.2' })).verdict?.allowed).toBe(true)
  })

  test('an identity given by its kind is found in every tier that counts its kind', async () => {
    const tiers = {
      free: [perMinute<Login>(2, { key: byIp() }), perMinute<Login>(9, { key: account })],
      pro: [perMinute<Login>(7, { key: account })],
    }
    const guard = guardOf({ tiers, tier: (login) => login.user ?? 'free' })
    const { limiter } = guard
    for (const tier of ['free', 'pro']) await ask(guard, { account: 'ann', user: tier })
    expect((await limiter.peek({ account: 'ann' }, { tier: 'free' })).remaining).toBe(8)
    await limiter.reset({ account: 'ann' })
    expect((await limiter.peek({ account: 'ann' }, { tier: 'free' })).remaining).toBe(9)
    expect((await limiter.peek({ account: 'ann' }, { tier: 'pro' })).remaining).toBe(7)
    await limiter.reset({ ip: '192.0.2.1' })
    await limiter.block({ account: 'ann' }, { for: '1h' })
    for (const tier of ['free', 'pro']) {
      expect((await ask(guard, { account: 'ann', user: tier })).verdict?.reason).toBe('blocked')
    }
    await expect(limiter.peek({ ip: '192.0.2.1' }, { tier: 'pro' })).rejects.toThrow(
      'policy "login": key: expected a non-empty string or a number, or { account: … }, got an object of the kind "ip"',
    )
  })

  test('the kind of a key is fixed when the policy is made', async () => {
    expect(() =>
      Object.assign(
        keyed('account', () => 'ann'),
        { kind: 'ip' },
      ),
    ).toThrow(TypeError)
    const key = Object.assign((login: { account: string }) => login.account, { kind: 'key' })
    const limiter = createLimiter({ limit: 5, window: '1m', key })
    key.kind = 'ip'
    await limiter.block({ key: 'ann' }, { for: '1h' })
    expect((await limiter.peek({ account: 'ann' })).reason).toBe('blocked')
  })

  test('an identity can be given by its kind to a limiter without requests', async () => {
    const texts = createLimiter({ name: 'mail', limit: 2, window: '1m' })
    await texts.consume('42')
    await texts.reset({ key: 42 } as never)
    expect((await texts.peek('42')).remaining).toBe(2)
    await texts.block({ key: '42' }, { for: '1h' })
    expect((await texts.peek('42')).reason).toBe('blocked')

    const limits = [perMinute<Login>(2, { key: account }), perMinute<Login>(9, { key: user })]
    const logins = createLimiter<Login>({ name: 'mail', limits })
    await logins.block({ user: 'ann' }, { for: '1h' })
    // An object that is not of a known kind is a request, whose identity the keys return.
    expect((await logins.consume({ account: 'ann', user: 'bob' })).allowed).toBe(true)
    expect((await logins.consume({ account: 'bob', user: 'ann' })).reason).toBe('blocked')
    await expect(logins.unblock('ann')).rejects.toThrow(/expected \{ account: … \} or \{ user: … \}, got "ann"/)
  })
})

describe('input that a client may have chosen', () => {
  const { limiter } = loginGuard()
  const methods: Record<string, (identity: unknown) => Promise<unknown>> = {
    consume: (identity) => limiter.consume(identity as never),
    peek: (identity) => limiter.peek(identity as never),
    acquire: (identity) => limiter.acquire(identity as never),
    reset: (identity) => limiter.reset(identity as never),
    block: (identity) => limiter.block(identity as never, { for: '1h' }),
    unblock: (identity) => limiter.unblock(identity as never),
  }

  test.each([
    '{ "ip": "192.0.2.7", "account": "ann" }',
    '{ "account": "ann", "ip": "192.0.2.7" }',
    '{ "__proto__": "ann" }',
    '{ "__proto__": { "account": "ann" } }',
    '{ "account": "ann", "__proto__": { "ip": "192.0.2.7" } }',
    '{ "constructor": "ann" }',
    '{ "toString": "ann" }',
    '{ "key": "ann" }',
    '{ "account+ip": ["ann", "192.0.2.7"] }',
    '{ "account=ann": "" }',
    '{ "Account": "ann" }',
    '{}',
    '{ "account": { "ip": "192.0.2.7" } }',
    '{ "account": ["ann"] }',
    '{ "account": [] }',
    '{ "account": null }',
    '{ "account": true }',
    '{ "account": "" }',
    '{ "ip": 7 }',
    '{ "ip": "ann" }',
    '["ann"]',
    '[["account", "ann"]]',
    '"ann"',
    '"ip=192.0.2.7"',
    'null',
    'true',
    '7',
  ])('input that is not exactly one identity of a known kind is rejected: %s', async (json) => {
    for (const [name, call] of Object.entries(methods)) {
      const error = await call(JSON.parse(json)).catch((thrown: unknown) => thrown)
      expect(error, name).toBeInstanceOf(SluiceError)
      expect(error, name).toMatchObject({ code: 'INVALID_KEY' })
    }
  })

  test('a network can be blocked and unblocked, and is rejected elsewhere', async () => {
    const network = { ip: '192.0.2.0/24' }
    for (const [name, call] of Object.entries(methods)) {
      const error = await call(network).catch((thrown: unknown) => thrown)
      if (name === 'block' || name === 'unblock') expect(error, name).toBeUndefined()
      else expect(error, name).toMatchObject({ code: 'INVALID_KEY' })
    }
  })

  test('in a policy of one kind, text input can only name a value of that kind', async () => {
    const { limiter: ofAccounts } = guardOf({ limit: 3, window: '1m', key: account })
    const reset = (json: string) => ofAccounts.reset(JSON.parse(json))
    await reset('"192.0.2.7"')
    await expect(reset('{ "ip": "192.0.2.7" }')).rejects.toMatchObject({
      code: 'INVALID_KEY',
      message:
        'policy "login": key: expected a non-empty string or a number, or { account: … }, got an object of the kind "ip"',
    })
  })

  test.each([
    [{ 'ip+route': ['192.0.2.1'] }, 'policy "login": key: ip+route: expected an array of 2 values, got an array'],
    [
      { 'ip+route': '192.0.2.1|/a' },
      'policy "login": key: ip+route: expected an array of 2 values, got "192.0.2.1|/a"',
    ],
    [
      { 'ip+route': ['192.0.2.1', ['/a']] },
      'policy "login": key: ip+route: expected a non-empty string or a number, got an array',
    ],
    ['192.0.2.1|/a', 'policy "login": key: expected { "ip+route": […, …] }, got "192.0.2.1|/a"'],
  ])('a malformed value of a composed kind is rejected: %j', async (identity, message) => {
    const { limiter } = guardOf({ limit: 3, window: '1m', key: compose(byIp(), byRoute()) })
    await expect(limiter.reset(identity as never)).rejects.toThrow(message)
  })
})

describe('kinds of a policy', () => {
  const limits = (...keys: (KeyFunction<Login> | undefined)[]) =>
    keys.map((key) => perMinute<Login>(5, { ...(key && { key }) }))
  const made = (...keys: (KeyFunction<Login> | undefined)[]) =>
    createLimiter<Login>({ name: 'login', limits: limits(...keys) })

  test.each<[string, (KeyFunction<Login> | undefined)[]]>([
    ['two unnamed functions', [(login) => login.account, (login) => login.user]],
    ['an unnamed function beside the default key', [(login) => login.account, undefined]],
    ['two functions under one name', [account, keyed('account', (login) => login.user)]],
    ['two functions by user', [user, byUser((login) => login.account)]],
    ['one header, hashed and not', [byHeader('x-key'), byHeader('X-Key', { secret: false })]],
    [
      'two compositions of one kind',
      [
        compose(byIp(), account),
        compose(
          byIp(),
          keyed('account', (login) => login.user),
        ),
      ],
    ],
  ])('a policy rejects %s, and its error says what to write instead', (_what, keys) => {
    expect(() => made(...keys)).toThrow(
      expect.objectContaining({
        code: 'INVALID_POLICY',
        message: expect.stringMatching(
          /^policy "login": limits\[1\]: key: expected a kind of its own, such as by keyed\('name', fn\), got another function/,
        ),
      }),
    )
  })

  test('a policy rejects two functions of one kind in different tiers, which share blocks', () => {
    const tiers = { free: limits((login) => login.account), pro: limits((login) => login.user) }
    expect(() => createLimiter<Login>({ name: 'login', tiers, tier: () => 'free' })).toThrow(
      /^policy "login": tiers: pro: limits\[0\]: key: .* than policy "login": tiers: free: limits\[0\]$/,
    )
  })

  test.each<[string, (KeyFunction<Login> | undefined)[]]>([
    ['one function twice, named each time', [keyed('who', user), keyed('who', user)]],
    ['one unnamed function twice, beside others', [user, byIp(), user, everyone()]],
    [
      'addresses grouped in several ways',
      [byIp(), byIp({ ipv6Prefix: 48 }), byIp({ ipv4Prefix: 24 }), byIp({ nat64: false })],
    ],
    [
      'compositions with addresses grouped in several ways',
      [byIp(), byIp({ ipv6Prefix: 48 })].map((ip) => compose(ip, user)),
    ],
    ['the same header twice', [byHeader('x-key'), byHeader('X-Key')]],
    ['a key alone and as a part', [account, compose(account, byIp()), compose(byIp(), account)]],
  ])('a policy accepts %s', (_what, keys) => {
    expect(made(...keys).name).toBe('login')
  })

  test.each(['', 'two words', 'a=b', 'a+b', 'x'.repeat(65), 7, undefined])('keyed rejects the name %j', (name) => {
    expect(() => keyed(name as string, user)).toThrow(
      /^keyed: name: expected 1 to 64 letters, digits, "_" or "-", got /,
    )
  })

  test.each(['ip', 'user', 'everyone', 'anonymous', 'key', 'path', 'route', 'method', 'header', 'cookie', '__proto__'])(
    'keyed rejects the reserved name %s',
    (name) => {
      expect(() => keyed(name, user)).toThrow(/^keyed: name: expected none of ip, user, /)
    },
  )

  test.each([
    ['user', 'byUser((req) => …)'],
    ['ip', 'byIp()'],
    ['header', 'byHeader(name)'],
  ])('the error of the reserved name %s names the key function of that kind', (name, call) => {
    expect(() => keyed(name, user)).toThrow(`got "${name}": use ${call} for that kind, or choose another name`)
  })

  test('keyed rejects a value that is not a function, and a policy rejects a malformed kind', () => {
    expect(() => keyed('account', 'ann' as never)).toThrow('keyed: key: expected a function of the request, got "ann"')
    const forged = Object.assign((login: Login) => login.user, { kind: 'ip=192.0.2.1' })
    expect(() => made(forged)).toThrow(/^policy "login": limits\[0\]: key: expected a kind of up to 256 letters/)
  })
})
