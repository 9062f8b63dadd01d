import {
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  type Limit,
  type LimiterOptions,
  leakyBucket,
  memoryStore,
  perMinute,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '@sluice/core'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Clock } from '../../contract/store-under-test.js'

const plan = (): readonly Limit<string>[] => [
  perMinute(60),
  tokenBucket({ unit: 'tokens', capacity: 1000, refill: 1000, every: '1m' }),
  fixedWindow({ unit: 'cents', limit: 500, window: '1h' }),
  concurrency({ limit: 4 }),
]
const limiterOf = (limits = plan(), options: Partial<LimiterOptions<string>> = {}) => {
  const clock = new Clock()
  const store = memoryStore({ clock: clock.read })
  return { clock, limiter: createLimiter<string>({ name: 'chat', store, limits, ...options } as never) }
}
const leftIn = (verdict: { limits: readonly { remaining: number }[] }) =>
  verdict.limits.map(({ remaining }) => remaining)

describe('a cost by unit', () => {
  test('each limit is charged its own unit, all or none', async () => {
    const { limiter } = limiterOf()
    const first = await limiter.consume('ann', { cost: { tokens: 812, cents: 3 } })
    expect(first).toMatchObject({ allowed: true, cost: 1, remaining: 59 })
    expect(first.units).toEqual({
      requests: { cost: 1, remaining: 59 },
      tokens: { cost: 812, remaining: 188 },
      cents: { cost: 3, remaining: 497 },
      'concurrent-requests': { cost: 1, remaining: 3 },
    })
    const second = await limiter.consume('ann', { cost: { tokens: 189, cents: 3 } })
    expect(second).toMatchObject({ allowed: false, reason: 'limited', cost: 0 })
    expect(second.limits.filter(({ allowed }) => !allowed)).toMatchObject([{ unit: 'tokens', remaining: 188 }])
    expect(leftIn(second)).toEqual([59, 188, 497, 3])
  })

  test('a number is of requests: it takes one permit, and nothing of other units', async () => {
    const { limiter } = limiterOf()
    expect(leftIn(await limiter.consume('ann', { cost: 5 }))).toEqual([55, 1000, 500, 3])
    expect(leftIn(await limiter.consume('ann', { cost: 0 }))).toEqual([55, 1000, 500, 3])
    const named = { requests: 2, 'concurrent-requests': 2 }
    expect(leftIn(await limiter.consume('ann', { cost: named }))).toEqual([53, 1000, 500, 1])
  })

  test('a unit that is not named needs room for one, and one that is named as 0 needs none', async () => {
    const { limiter } = limiterOf()
    await limiter.consume('ann', { cost: { tokens: 1000 } })
    for (const ask of ['consume', 'peek'] as const) {
      expect(await limiter[ask]('ann')).toMatchObject({ allowed: false, retryAfterMs: 60 })
      expect(await limiter[ask]('ann', { cost: { cents: 1 } })).toMatchObject({ allowed: false, retryAfterMs: 60 })
    }
    expect(await limiter.consume('ann', { cost: { tokens: 0 } })).toMatchObject({ allowed: true })
    expect(await limiter.consume('ann', { cost: 0 })).toMatchObject({ allowed: true })
  })

  test('a refund returns every unit and the permit', async () => {
    const { limiter } = limiterOf()
    const verdict = await limiter.consume('ann', { cost: { tokens: 812, cents: 3 } })
    expect(await limiter.refund('ann', verdict)).toBe(true)
    expect(await limiter.refund('ann', verdict)).toBe(false)
    expect(leftIn(await limiter.peek('ann'))).toEqual([60, 1000, 500, 4])
  })

  test('a number settles requests alone', async () => {
    const { limiter } = limiterOf()
    const verdict = await limiter.consume('ann', { cost: { requests: 5, tokens: 10 } })
    await expect(verdict.settle(6)).rejects.toMatchObject({ code: 'INVALID_COST' })
    expect(await verdict.settle(2)).toBe(true)
    expect(leftIn(await limiter.peek('ann'))).toEqual([58, 990, 500, 3])
    expect(await limiter.refund('ann', verdict)).toBe(true)
    expect(leftIn(await limiter.peek('ann'))).toEqual([58, 1000, 500, 4])
  })

  test('without a limit of requests, a verdict shows the limit with the smallest share left', async () => {
    const { limiter } = limiterOf([
      gcra({ unit: 'tokens', limit: 1000, window: '1m' }),
      gcra({ unit: 'cents', limit: 10, window: '1m' }),
    ])
    const tokens = await limiter.consume('ann', { cost: { tokens: 900, cents: 5 } })
    expect(tokens).toMatchObject({ cost: 900, remaining: 100 })
    expect(await limiter.consume('ann', { cost: { tokens: 0, cents: 5 } })).toMatchObject({ cost: 5, remaining: 0 })
  })

  test('waiting goes by the unit of the limit that has no room', async () => {
    const { limiter } = limiterOf([perMinute(60), gcra({ unit: 'tokens', limit: 100_000, window: '10s' })], {
      store: memoryStore(),
    })
    await limiter.consume('ann', { cost: { tokens: 100_000 } })
    const first = limiter.acquire('ann', { cost: { tokens: 1000 }, maxWait: '9s' })
    const tooMany = limiter.acquire('ann', { cost: { tokens: 95_000 }, maxWait: '2s' })
    await expect(tooMany).rejects.toMatchObject({ code: 'WAIT_EXCEEDED' })
    expect((await first).units.tokens?.cost).toBe(1000)
  })
})

describe('settling by unit', () => {
  test('units are settled above and below, each once, and permits stay', async () => {
    const { limiter } = limiterOf()
    const verdict = await limiter.consume('ann', { cost: { tokens: 100, cents: 10 } })
    expect(await verdict.settle({ tokens: 640 })).toBe(true)
    expect(await limiter.settle(verdict, { tokens: 0, cents: 4 })).toBe(true)
    expect(await verdict.settle({ tokens: 0, cents: 0 })).toBe(false)
    expect(leftIn(await limiter.peek('ann'))).toEqual([59, 360, 496, 3])
    expect(await limiter.refund('ann', verdict)).toBe(true)
    expect(await limiter.refund('ann', verdict)).toBe(false)
    expect(leftIn(await limiter.peek('ann'))).toEqual([60, 360, 496, 4])
  })

  test('what exceeds the room is a debt, which refuses for two windows at most', async () => {
    const { clock, limiter } = limiterOf()
    const verdict = await limiter.consume('ann', { cost: { tokens: 100 } })
    await verdict.settle({ tokens: 50_000, cents: 999 })
    expect(leftIn(await limiter.peek('ann'))).toEqual([59, 0, 0, 3])
    const refused = await limiter.consume('ann')
    expect(refused.limits[1]?.retryAfterMs).toBeLessThanOrEqual(120_000)
    clock.now += 3_600_000
    expect(await limiter.consume('ann', { cost: { tokens: 1000, cents: 500 } })).toMatchObject({ allowed: true })
  })

  test('a settlement after its window charges the window that then runs, and refunds nowhere', async () => {
    const { clock, limiter } = limiterOf()
    const [more, less] = [
      await limiter.consume('ann', { cost: { cents: 3 } }),
      await limiter.consume('ann', { cost: { cents: 3 } }),
    ]
    clock.now += 3_600_000
    expect(await more.settle({ cents: 5 })).toBe(true)
    await less.settle({ cents: 0 })
    expect((await limiter.peek('ann')).units.cents?.remaining).toBe(498)
  })

  test('wrong settlements change nothing', async () => {
    const { limiter } = limiterOf()
    const verdict = await limiter.consume('ann', { cost: { tokens: 10 } })
    for (const [actual, message] of [
      [{ token: 1 }, 'settle: expected units that limits count'],
      [{ tokens: -1 }, 'settle: tokens: expected a whole number of at least 0, got -1'],
      [{ tokens: 0.5 }, 'settle: tokens: expected a whole number'],
      [{ tokens: 2 ** 53 }, 'settle: tokens: expected a whole number'],
      [{ tokens: 5, cents: Infinity }, 'settle: cents: expected a whole number'],
      [{ 'concurrent-requests': 0 }, 'settle: expected no permits, which are released'],
      [[5], 'actual cost: expected a whole number from 0 to the 1 charged, got an array'],
      [2, 'actual cost: expected a whole number from 0 to the 1 charged, got 2'],
    ] as const) {
      await expect(verdict.settle(actual as never)).rejects.toMatchObject({
        code: 'INVALID_COST',
        message: expect.stringContaining(message),
      })
    }
    await expect(limiterOf(plan(), { name: 'other' }).limiter.settle(verdict, { tokens: 1 })).rejects.toMatchObject({
      code: 'INVALID_POLICY',
    })
    expect(leftIn(await limiter.peek('ann'))).toEqual([59, 990, 500, 3])
    const refused = await limiter.consume('ann', { cost: { tokens: 1001 } })
    expect(await refused.settle({ tokens: 5 })).toBe(false)
    expect(await (await limiter.peek('ann')).settle({ tokens: 5 })).toBe(false)
  })

  test('an amount of any size leaves a debt that numbers hold', async () => {
    const { clock, limiter } = limiterOf()
    const verdict = await limiter.consume('ann')
    await verdict.settle({
      tokens: Number.MAX_SAFE_INTEGER,
      cents: Number.MAX_SAFE_INTEGER,
      requests: Number.MAX_SAFE_INTEGER,
    })
    const refused = await limiter.consume('ann')
    expect(leftIn(refused)).toEqual([0, 0, 0, 3])
    expect(refused.retryAfterMs).toBeLessThanOrEqual(3_600_000)
    clock.now += 3_600_000
    expect((await limiter.consume('ann')).allowed).toBe(true)
  })
})

describe("estimate: 'cap'", () => {
  const capped = [
    gcra<string>({ unit: 'tokens', limit: 1000, window: '1m', estimate: 'cap' }),
    slidingLog<string>({ unit: 'tokens', limit: 400, window: '1m', estimate: 'cap' }),
    slidingLog<string>({ unit: 'tokens', limit: 2000, window: '1h' }),
  ]

  test('charges an estimate above a capacity as the capacity, in place of impossible', async () => {
    const { clock, limiter } = limiterOf(capped)
    const verdict = await limiter.consume('ann', { cost: { tokens: 1500 } })
    expect(verdict).toMatchObject({ allowed: true })
    expect(leftIn(verdict)).toEqual([0, 0, 500])
    expect(await limiter.consume('ann', { cost: { tokens: 1500 } })).toMatchObject({
      reason: 'limited',
      retryAfterMs: 3_600_000,
    })
    expect(await limiter.consume('bob', { cost: { tokens: 2001 } })).toMatchObject({ reason: 'impossible' })
    await verdict.settle({ tokens: 100 })
    expect(leftIn(await limiter.peek('ann'))).toEqual([900, 300, 1900])
    clock.now += 60_000
    expect(leftIn(await limiter.peek('ann'))).toEqual([1000, 400, 1900])
  })

  test('a limit of 0 still refuses everything, and other values are rejected', async () => {
    const { limiter } = limiterOf([gcra({ unit: 'tokens', limit: 0, window: '1m', estimate: 'cap' })])
    expect(await limiter.consume('ann', { cost: { tokens: 5 } })).toMatchObject({ allowed: false })
    expect(() => gcra({ limit: 1, window: '1m', estimate: 'full' as never })).toThrow('gcra: estimate: expected "cap"')
  })
})

describe('the state of a unit', () => {
  const names = (limits: readonly Limit<string>[]) => {
    const { limiter } = limiterOf(limits)
    return limiter
  }

  test.each([
    ['fixed windows', (unit: string) => fixedWindow<string>({ unit, limit: 100, window: '1m' })],
    ['sliding windows', (unit: string) => slidingWindow<string>({ unit, limit: 100, window: '1m' })],
    ['buckets', (unit: string) => leakyBucket<string>({ unit, leak: 100, every: '1m' })],
    ['logs', (unit: string) => slidingLog<string>({ unit, limit: 100, window: '1m' })],
  ])('equal %s of several units keep their counts when they are reordered', async (_, make) => {
    const units = ['requests', 'tokens', 'cents', 'constructor']
    const store = memoryStore({ clock: new Clock().read })
    const cost = { requests: 1, tokens: 20, cents: 3, constructor: 40 }
    const limiter = createLimiter<string>({ store, limits: units.map(make) })
    await limiter.consume('ann', { cost })
    const reordered = createLimiter<string>({ store, limits: units.toReversed().map(make) })
    expect((await reordered.peek('ann')).units).toEqual({
      requests: { cost: 0, remaining: 99 },
      tokens: { cost: 0, remaining: 80 },
      cents: { cost: 0, remaining: 97 },
      constructor: { cost: 0, remaining: 60 },
    })
  })

  test('logs of one unit are one log, and no others', async () => {
    const limiter = names([
      slidingLog({ limit: 10, window: '1m' }),
      slidingLog({ unit: 'tokens', limit: 50, window: '1m' }),
      slidingLog({ unit: 'tokens', limit: 90, window: '1h' }),
    ])
    expect(leftIn(await limiter.consume('ann', { cost: { tokens: 40 } }))).toEqual([9, 10, 50])
  })
})

describe('wrong units', () => {
  const wrong = (limits: () => readonly Limit<string>[]) => expect(() => limiterOf(limits()))

  test.each(['', 'to kens', '__proto__', 'größe', 'a'.repeat(33), 1, null, 'Requests', 'CONTENT-BYTES'])(
    'the unit %j is rejected',
    (unit) => {
      wrong(() => [gcra({ limit: 1, window: '1s', unit: unit as string })]).toThrow(
        /^gcra: unit: expected 1 to 32 letters/,
      )
    },
  )

  test('permits and bytes have limits of their own', () => {
    wrong(() => [gcra({ limit: 1, window: '1s', unit: 'concurrent-requests' })]).toThrow(/unit: expected another one/)
    wrong(() => [slidingLog({ limit: 1, window: '1s', unit: 'content-bytes' })]).toThrow(/unit: expected none of bytes/)
    wrong(() => [concurrency({ limit: 1, unit: 'tokens' } as never)]).toThrow(/unit: unknown option/)
  })

  test('units that differ by case alone clash', () => {
    wrong(() => [
      gcra({ limit: 1, window: '1s', unit: 'tokens' }),
      gcra({ limit: 1, window: '2s', unit: 'Tokens' }),
    ]).toThrow('policy "chat": unit: expected units that differ by more than case, got "Tokens"')
  })

  test('a lease needs one unit for all limits', () => {
    const lease = { size: 10, ttl: '1s' } as const
    const leased = (unit: string) => gcra<string>({ limit: 100, window: '1m', unit, lease })
    wrong(() => [leased('tokens'), leased('cents')]).toThrow(/lease: expected limits that all count the same unit/)
    wrong(() => [leased('tokens'), { ...leased('tokens'), window: 120_000 }]).not.toThrow()
  })
})

describe('wrong costs', () => {
  const { limiter } = limiterOf()
  const wrong = (cost: unknown, why: string) =>
    expect(limiter.consume('ann', { cost: cost as number })).rejects.toMatchObject({
      code: 'INVALID_COST',
      message: `policy "chat": ${why}`,
    })

  test('a unit that no limit counts is an error', async () => {
    const known = '"requests" or "tokens" or "cents" or "concurrent-requests"'
    await wrong({ token: 5 }, `cost: expected units that limits count, ${known}, got "token"`)
    await wrong({ toString: 5 }, `cost: expected units that limits count, ${known}, got "toString"`)
    await wrong(JSON.parse('{"__proto__": 5}'), `cost: expected units that limits count, ${known}, got "__proto__"`)
    await wrong({ 'content-bytes': 5 }, 'cost: expected no bytes, which are measured, got "content-bytes"')
  })

  test('a number where no limit counts requests is an error', async () => {
    const { limiter: tokens } = limiterOf([gcra({ limit: 100, window: '1m', unit: 'tokens' })])
    await expect(tokens.consume('ann', { cost: 5 })).rejects.toThrow(
      'policy "chat": cost: expected units by name, such as { "tokens": 5 }, as no limit counts requests, got 5',
    )
  })

  test('wrong amounts, hostile objects and what is no object of units charge nothing', async () => {
    const amounts = fc.oneof(
      fc.integer({ max: -1 }),
      fc.double({ noInteger: true }),
      fc.constantFrom(
        Number.NaN,
        Infinity,
        -Infinity,
        2 ** 53,
        1e300,
        '5',
        '',
        null,
        undefined,
        true,
        5n,
        [5],
        {},
        () => 5,
      ),
    )
    const thrower = Object.defineProperty({ tokens: 1 }, 'cents', {
      enumerable: true,
      get: () => {
        throw new Error('no cents')
      },
    })
    const objects = fc.oneof(
      fc.record({ tokens: amounts }),
      fc.record({ requests: amounts, tokens: fc.nat() }),
      fc.constantFrom<unknown>(
        [],
        [1],
        new Map([['tokens', 1]]),
        new Date(),
        Symbol('x'),
        new (class Cost {
          tokens = 1
        })(),
      ),
      fc.constant(thrower),
      fc.constant(
        new Proxy(
          { tokens: 1 },
          {
            ownKeys: () => {
              throw new Error('no keys')
            },
          },
        ),
      ),
      fc.constant(
        new Proxy(
          {},
          {
            getPrototypeOf: () => {
              throw new Error('no prototype')
            },
          },
        ),
      ),
    )
    await fc.assert(
      fc.asyncProperty(objects, async (cost) => {
        await expect(limiter.consume('eve', { cost: cost as number })).rejects.toThrow()
        await expect(limiter.acquire('eve', { cost: cost as number })).rejects.toThrow()
        expect(leftIn(await limiter.peek('eve'))).toEqual([60, 1000, 500, 4])
      }),
    )
  })

  test('units on a polluted prototype are not charged', async () => {
    const { limiter: clean } = limiterOf()
    Object.defineProperty(Object.prototype, 'tokens', { value: 900, configurable: true, enumerable: true })
    const pending = clean.consume('ann', { cost: { cents: 1 } }).then((verdict) => [leftIn(verdict), verdict.units])
    const [left, units] = await pending.finally(() => Reflect.deleteProperty(Object.prototype, 'tokens'))
    expect(left).toEqual([59, 1000, 499, 3])
    expect(units).toMatchObject({ tokens: { cost: 0, remaining: 1000 } })
  })
})

test('64 callers at once take each unit all or none', async () => {
  const { limiter } = limiterOf([
    perMinute(60),
    gcra({ unit: 'tokens', limit: 1000, window: '1m' }),
    concurrency({ limit: 50 }),
  ])
  const verdicts = await Promise.all(
    Array.from({ length: 64 }, (_, i) => limiter.consume('ann', { cost: { tokens: 10 + (i % 7) } })),
  )
  const admitted = verdicts.filter(({ allowed }) => allowed)
  const tokens = admitted.reduce((sum, { units }) => sum + (units.tokens?.cost ?? 0), 0)
  expect(leftIn(await limiter.peek('ann', { cost: 0 }))).toEqual([
    60 - admitted.length,
    1000 - tokens,
    50 - admitted.length,
  ])
})
