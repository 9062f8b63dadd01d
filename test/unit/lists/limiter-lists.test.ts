import { createLimiter, ipRanges, keyed, list, memoryStore, rateLimit } from '@sluice/express'
import { describe, expect, test } from 'vitest'
import { warningsDuring } from '../../support/process-events.js'

describe('lists of a limiter without HTTP', () => {
  test('a listed key is denied or allowed without a charge', async () => {
    const store = memoryStore()
    const options = { name: 'mail', store, limit: 1, window: '1h' } as const
    const limiter = createLimiter({ ...options, allow: list({ key: ['vip'] }), deny: list({ key: ['spammer', 42] }) })
    for (let i = 0; i < 3; i++)
      expect(await limiter.consume('vip')).toMatchObject({ allowed: true, kind: 'listed', cost: 0 })
    expect(await limiter.consume('spammer')).toMatchObject({ allowed: false, reason: 'denied' })
    expect(await limiter.peek(42 as never)).toMatchObject({ allowed: false, reason: 'denied' })
    expect(await limiter.consume({ key: 'spammer' } as never)).toMatchObject({ reason: 'denied' })
    const unlisted = createLimiter(options)
    expect(await unlisted.consume('vip')).toMatchObject({ allowed: true, remaining: 0 })
    expect(await unlisted.consume('spammer')).toMatchObject({ allowed: true, remaining: 0 })
  })

  test("refund, settle and release of a list's verdict do nothing", async () => {
    const limiter = createLimiter({ limit: 1, window: '1h', allow: list({ key: ['vip'] }) })
    const verdict = await limiter.consume('vip')
    expect([await limiter.refund('vip', verdict), await verdict.settle(0)]).toEqual([false, false])
    await limiter.release(verdict)
    expect(JSON.parse(JSON.stringify(verdict))).toMatchObject({ kind: 'listed', limits: [], list: { effect: 'allow' } })
  })

  test('acquire rejects a denied identity and admits an allowed one at once', async () => {
    const limiter = createLimiter({
      limit: 0,
      window: '1h',
      allow: list({ key: ['vip'] }),
      deny: list({ key: ['spammer'] }),
    })
    expect(await limiter.acquire('vip')).toMatchObject({ kind: 'listed' })
    await expect(limiter.acquire('spammer')).rejects.toMatchObject({
      code: 'WAIT_EXCEEDED',
      refusal: { reason: 'denied' },
    })
  })

  test('ip lists match the `ip` of an object', async () => {
    const limiter = createLimiter<{ account: string; ip?: string }>({
      limit: 1,
      window: '1h',
      key: keyed('account', ({ account }) => account),
      deny: [ipRanges(['192.0.2.0/24']), list({ account: ['eve'] })],
    })
    expect(await limiter.consume({ account: 'ann', ip: '192.0.2.7' })).toMatchObject({ reason: 'denied' })
    expect(await limiter.consume({ account: 'eve' })).toMatchObject({ reason: 'denied', list: { kind: 'account' } })
    for (const ip of ['198.51.100.9', '', 'no address', {} as string]) {
      expect(await limiter.peek({ account: 'ann', ip })).toMatchObject({ allowed: true, kind: 'decided' })
    }
  })

  test('a list finds any text exactly, and nothing similar', async () => {
    const values = [
      'a',
      'A',
      ' a',
      '\0',
      '\ud800',
      '\udfff',
      '\u{1f600}',
      '__proto__',
      'constructor',
      '#'.padEnd(23, 'x'),
      'x'.repeat(300),
    ]
    const limiter = createLimiter({ limit: 0, window: '1h', allow: list({ key: values }) })
    for (const value of values) expect(await limiter.consume(value)).toMatchObject({ kind: 'listed' })
    for (const value of ['b', '\ud801', 'toString', 'x'.repeat(299), 'x'.repeat(301), `${'#'.padEnd(22, 'x')}y`]) {
      expect(await limiter.consume(value)).toMatchObject({ kind: 'decided' })
    }
  })

  test('an identity passed by hand is looked up by its kind', async () => {
    const { limiter } = rateLimit({ limit: 1, window: '1h', deny: ipRanges(['192.0.2.0/24', '2001:db8::/32']) })
    expect(await limiter.peek({ ip: '192.0.2.7' })).toMatchObject({ reason: 'denied' })
    expect(await limiter.peek('2001:db8::7')).toMatchObject({ reason: 'denied' })
    expect(await limiter.peek({ ip: '198.51.100.9' })).toMatchObject({ allowed: true })
  })

  test('an IPv6 address stands for its client in list(), and for itself in ipRanges()', async () => {
    const of = (deny: Parameters<typeof rateLimit>[0]['deny']) => rateLimit({ limit: 1, window: '1h', deny }).limiter
    const asClient = of(list({ ip: ['2001:db8::1'] }))
    const asAddress = of(ipRanges(['2001:db8::1']))
    const written = of(list({ ip: ['2001:db8::1/128'] }))
    expect(await asClient.peek({ ip: '2001:db8::2' })).toMatchObject({ allowed: false })
    expect(await asAddress.peek({ ip: '2001:db8::2' })).toMatchObject({ allowed: true })
    expect(await written.peek({ ip: '2001:db8::2' })).toMatchObject({ allowed: true })
    expect(await written.peek({ ip: '2001:db8::1' })).toMatchObject({ allowed: false })
  })

  test('a block of an allowed identity has no effect and causes a warning', async () => {
    const { limiter } = rateLimit({ limit: 1, window: '1h', store: memoryStore(), allow: ipRanges(['192.0.2.7']) })
    const warnings = await warningsDuring(async () => {
      await limiter.block({ ip: '192.0.2.8' }, { for: '1h' })
      await limiter.block({ ip: '192.0.2.7' }, { for: '1h' })
    })
    expect(warnings).toEqual([expect.objectContaining({ name: 'SluiceWarning', code: 'SLUICE_BLOCK_ALLOWED' })])
    expect(await limiter.consume({ ip: '192.0.2.7' })).toMatchObject({ allowed: true })
    expect(await limiter.consume({ ip: '192.0.2.8' })).toMatchObject({ reason: 'blocked' })
  })

  test('a limiter rejects a list of an unknown kind; a store accepts it, as it may concern others', async () => {
    const store = memoryStore({ deny: list({ user: ['eve'] }) })
    expect(() => rateLimit({ limit: 1, window: '1h', deny: list({ user: ['eve'] }) })).toThrow(
      /deny: expected kinds .* got "user" in list/,
    )
    expect(() => createLimiter({ limit: 1, window: '1h', deny: ipRanges(['::1']) })).toThrow(/got "ip" in ipRanges/)
    expect(await createLimiter({ store, limit: 1, window: '1h' }).consume('eve')).toMatchObject({ allowed: true })
  })

  test.each([
    [{ deny: '192.0.2.0/24' }, /deny: expected a list such as/],
    [{ deny: ['192.0.2.0/24'] }, /deny\[0\]: expected a list such as/],
    [{ allow: {} }, /allow: expected a list such as/],
    [{ allow: null }, /allow: expected a list such as/],
    [{ deny: {} }, /deny\.lists: expected a list/],
    [{ deny: { list: [] } }, /deny: list: unknown option: did you mean lists\?/],
    [{ deny: { lists: [], respond: true } }, /deny\.respond: expected a responder/],
  ])('rateLimit and memoryStore reject invalid lists: %j', (options, message) => {
    expect(() => rateLimit({ limit: 1, window: '1h', ...(options as object) })).toThrow(message)
    if (!JSON.stringify(options).includes('"lists"'))
      expect(() => memoryStore(options as never)).toThrow(/memoryStore: /)
  })

  test.each([
    [[], /list: values: /],
    [{ 'no kind': ['a'] }, /list: values: /],
    [{ user: 'ann' }, /list: user: /],
    [{ user: ['ann', ''] }, /list: user\[1\]: /],
    [{ user: [['ann']] }, /list: user\[0\]: /],
    [{ ip: ['192.0.2.7', 'eve'] }, /list: ip\[1\]: /],
    [{ 'user+route': ['ann'] }, /list: user\+route\[0\]: expected an array of 2 values/],
  ])('list rejects invalid values: %j', (values, message) => {
    expect(() => list(values as never)).toThrow(message)
  })
})
