import { createLimiter, ipRanges, keyed, list, memoryStore, rateLimit } from '@sluice/express'
import { describe, expect, test } from 'vitest'
import { warningsDuring } from '../../support/process-events.js'

describe('lists of a limiter without HTTP', () => {
  test('a key that is listed is denied or allowed, and charges nothing', async () => {
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

  test('what a list decided can be refunded, settled and released: nothing happens', async () => {
    const limiter = createLimiter({ limit: 1, window: '1h', allow: list({ key: ['vip'] }) })
    const verdict = await limiter.consume('vip')
    expect([await limiter.refund('vip', verdict), await verdict.settle(0)]).toEqual([false, false])
    await limiter.release(verdict)
    expect(JSON.parse(JSON.stringify(verdict))).toMatchObject({ kind: 'listed', limits: [], list: { effect: 'allow' } })
  })

  test('a denied identity never gets a turn, and an allowed one has it at once', async () => {
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

  test('an address is the `ip` of an object', async () => {
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

  test('identities of any text are found, and nothing near them', async () => {
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

  test('an identity that is given by hand is looked up by its kind', async () => {
    const { limiter } = rateLimit({ limit: 1, window: '1h', deny: ipRanges(['192.0.2.0/24', '2001:db8::/32']) })
    expect(await limiter.peek({ ip: '192.0.2.7' })).toMatchObject({ reason: 'denied' })
    expect(await limiter.peek('2001:db8::7')).toMatchObject({ reason: 'denied' })
    expect(await limiter.peek({ ip: '198.51.100.9' })).toMatchObject({ allowed: true })
  })

  test('an IPv6 address in a list is the client it belongs to, in ranges the address alone', async () => {
    const of = (deny: Parameters<typeof rateLimit>[0]['deny']) => rateLimit({ limit: 1, window: '1h', deny }).limiter
    const asClient = of(list({ ip: ['2001:db8::1'] }))
    const asAddress = of(ipRanges(['2001:db8::1']))
    const written = of(list({ ip: ['2001:db8::1/128'] }))
    expect(await asClient.peek({ ip: '2001:db8::2' })).toMatchObject({ allowed: false })
    expect(await asAddress.peek({ ip: '2001:db8::2' })).toMatchObject({ allowed: true })
    expect(await written.peek({ ip: '2001:db8::2' })).toMatchObject({ allowed: true })
    expect(await written.peek({ ip: '2001:db8::1' })).toMatchObject({ allowed: false })
  })

  test('a block of an identity that is allowed is said to be void, and is', async () => {
    const { limiter } = rateLimit({ limit: 1, window: '1h', store: memoryStore(), allow: ipRanges(['192.0.2.7']) })
    const warnings = await warningsDuring(async () => {
      await limiter.block({ ip: '192.0.2.8' }, { for: '1h' })
      await limiter.block({ ip: '192.0.2.7' }, { for: '1h' })
    })
    expect(warnings).toEqual([expect.objectContaining({ name: 'SluiceWarning', code: 'SLUICE_BLOCK_ALLOWED' })])
    expect(await limiter.consume({ ip: '192.0.2.7' })).toMatchObject({ allowed: true })
    expect(await limiter.consume({ ip: '192.0.2.8' })).toMatchObject({ reason: 'blocked' })
  })

  test('a list of a kind that the policy does not know is an error, in a store it concerns others', async () => {
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
  ])('%j is an error', (options, message) => {
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
  ])('list(%j) is an error', (values, message) => {
    expect(() => list(values as never)).toThrow(message)
  })
})
