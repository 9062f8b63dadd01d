import {
  compose,
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  keyed,
  leakyBucket,
  memoryStore,
  perHour,
  perMinute,
  SluiceError,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '@sluice/core'
import { BANS } from '@sluice/core/store'
import { describe, expect, test } from 'vitest'
import { unhandledDuring } from '../../support/process-events.js'

/** A value that only JavaScript, or wrong types, can pass. */
// biome-ignore lint/suspicious/noExplicitAny: the point is what types forbid
type Anything = any

function errorOf(make: () => unknown): SluiceError {
  try {
    make()
  } catch (error) {
    expect(error).toBeInstanceOf(SluiceError)
    return error as SluiceError
  }
  throw new Error('expected it to throw')
}

function expectRefused(make: () => unknown, message: string): void {
  const { code, message: received, name } = errorOf(make)
  expect({ code, received, name }).toEqual({ code: 'INVALID_POLICY', received: message, name: 'SluiceError' })
}

const CONSTRUCTORS: Readonly<Record<string, (options: Anything) => unknown>> = {
  slidingLog,
  fixedWindow,
  slidingWindow,
  gcra,
  tokenBucket,
  leakyBucket,
}

describe('messages of errors', () => {
  test.each<[string, () => unknown, string]>([
    [
      'a misspelt duration',
      () => createLimiter({ name: 'login', limit: 5, window: '1 minuite' as never }),
      'policy "login": window: expected whole milliseconds or a duration such as "30s" (units: ms, s, m, h, d), got "1 minuite"',
    ],
    [
      'a fractional limit',
      () => createLimiter({ name: 'login', limit: 1.5, window: '1m' }),
      'policy "login": limit: expected a whole number of at least 0, got 1.5',
    ],
    [
      'a negative limit in a constructor',
      () => gcra({ limit: -1, window: '1m' }),
      'gcra: limit: expected a whole number of at least 0, got -1',
    ],
    [
      'a duration of 0',
      () => createLimiter({ name: 'login', limit: 5, window: 0 }),
      'policy "login": window: expected whole milliseconds or a duration such as "30s" (units: ms, s, m, h, d), from 1 ms to 100 years (36500d), got 0',
    ],
    [
      'a duration beyond the bounds',
      () => createLimiter({ name: 'login', limit: 5, window: '40000d' }),
      'policy "login": window: expected whole milliseconds or a duration such as "30s" (units: ms, s, m, h, d), from 1 ms to 100 years (36500d), got "40000d"',
    ],
    [
      'a window of the calendar of a plain limit',
      () => createLimiter({ name: 'plan', limit: 5, window: 'month' as never }),
      'policy "plan": window: expected whole milliseconds or a duration such as "30s", got "month": a window of the calendar is fixedWindow({ limit, window: "month" })',
    ],
    [
      'a window of the calendar of a log',
      () => slidingLog({ limit: 5, window: 'day' as never }),
      'slidingLog: window: expected whole milliseconds or a duration such as "30s", got "day": a window of the calendar is fixedWindow({ limit, window: "day" })',
    ],
    [
      'a missing refill',
      () => tokenBucket({ every: '1m' }),
      'tokenBucket: refill: expected a whole number of at least 0, got undefined',
    ],
    [
      'a misspelt time to refill in',
      () => tokenBucket({ refill: 5, every: '1 min' as never }),
      'tokenBucket: every: expected whole milliseconds or a duration such as "30s" (units: ms, s, m, h, d), got "1 min"',
    ],
    [
      'a missing leak',
      () => leakyBucket({ every: '1m' }),
      'leakyBucket: leak: expected a whole number of at least 0, got undefined',
    ],
    [
      'a refill too large to count exactly',
      () => tokenBucket({ refill: 2 ** 50, every: '1m', capacity: 1 }),
      `tokenBucket: refill: expected units times window in ms to stay below 2^53, got ${2 ** 50} * 60000: use a shorter window, or fixedWindow, which has no such bound`,
    ],
    [
      'a bucket with options limit and window',
      () => tokenBucket({ limit: 5, window: '1 min' as never }),
      'tokenBucket: window: expected whole milliseconds or a duration such as "30s" (units: ms, s, m, h, d), got "1 min"',
    ],
    [
      'a bucket with option limit',
      () => leakyBucket({ limit: -5, every: '1m' }),
      'leakyBucket: limit: expected a whole number of at least 0, got -5',
    ],
    [
      'a burst of 0',
      () => gcra({ limit: 5, window: '1m', burst: 0 }),
      'gcra: burst: expected a whole number of at least 1, got 0',
    ],
    [
      'an unknown anchor',
      () => fixedWindow({ limit: 5, window: '1m', anchor: 'midnight' as Anything }),
      'fixedWindow: anchor: expected "clock" or "first-request", got "midnight"',
    ],
    [
      'an unknown edge',
      () => slidingWindow({ limit: 5, window: '1m', edge: 'soft' as Anything }),
      'slidingWindow: edge: expected "weighted" or "strict" or "dropped", got "soft"',
    ],
    [
      'a name that a header cannot hold',
      () => createLimiter({ name: 'a"b\r\n', limit: 5, window: '1m' }),
      'policy "a\\"b\\r\\n": name: expected 1 to 64 letters, digits, "_" or "-", got "a\\"b\\r\\n"',
    ],
    [
      'no limit at all',
      () => createLimiter({ name: 'empty' } as Anything),
      'policy "empty": limit: expected a limit and a window, or limits, got undefined',
    ],
    [
      'an object that is not a limit',
      () => createLimiter({ name: 'mixed', limits: [perMinute(5), { limit: 5, window: '1s' } as Anything] }),
      'policy "mixed": limits[1]: expected a limit made by a constructor such as perMinute(20), got an object: write slidingLog({ limit, window }), or another of its constructors',
    ],
    [
      'an empty list of limits',
      () => createLimiter({ name: 'none', limits: [] }),
      'policy "none": limits: expected an array of 1 to 32 limits, got an array',
    ],
    [
      'an object that is not a store',
      () => createLimiter({ name: 'api', limit: 5, window: '1m', store: {} as Anything }),
      'policy "api": store: expected memoryStore() or redisStore(client), got an object',
    ],
  ])('an error names its source, the field, the expectation and the value: %s', (_, make, message) =>
    expectRefused(make, message),
  )
})

describe('unknown options', () => {
  test.each(Object.entries(CONSTRUCTORS))('%s rejects an unknown option', (name, make) => {
    const { code, message } = errorOf(() => make({ limit: 5, window: '1m', burts: 10 }))
    expect(code).toBe('INVALID_POLICY')
    expect(message).toMatch(new RegExp(`^${name}: burts: unknown option.* (burst|\\(.*limit).*, got 10$`))
  })

  test.each<[string, () => unknown, RegExp]>([
    ['concurrency', () => concurrency({ limit: 5, window: '1m' } as Anything), /^concurrency: window: /],
    [
      'createLimiter',
      () => createLimiter({ limit: 5, window: '1m', max: 3 } as Anything),
      /max: unknown option: use limit, got/,
    ],
    ['memoryStore', () => memoryStore({ size: 3 } as Anything), /^memoryStore: size: unknown option/],
    [
      'maxKeys',
      () => memoryStore({ maxKeys: 60_000_001 }),
      /^memoryStore: maxKeys: expected at most 60000000, got 60000001/,
    ],
    [
      'options that are not an object',
      () => slidingLog(undefined as Anything),
      /^slidingLog: options: expected an object/,
    ],
    [
      'limit and limits at once',
      () => createLimiter({ limit: 5, limits: [perMinute(5)] } as never),
      /limits: expected none beside/,
    ],
    [
      'refill and limit at once',
      () => tokenBucket({ limit: 5, refill: 5, every: '1m' }),
      /refill: expected none beside limit/,
    ],
    [
      'every and window at once',
      () => leakyBucket({ leak: 5, window: '1m', every: '1m' }),
      /every: expected none beside window/,
    ],
    [
      'segments and precision at once',
      () => slidingWindow({ limit: 5, window: '1m', segments: 2, precision: '1s' }),
      /precision: expected none beside segments/,
    ],
  ])('unknown and contradictory options are rejected: %s', (_, make, message) => {
    const error = errorOf(make)
    expect(error.code).toBe('INVALID_POLICY')
    expect(error.message).toMatch(message)
  })

  test('acquire and block reject bad options and charge nothing', async () => {
    const limiter = createLimiter({ limit: 5, window: '1m' })
    await expect(limiter.acquire('key', { wait: '1s' } as Anything)).rejects.toMatchObject({ code: 'INVALID_POLICY' })
    await expect(limiter.acquire('key', { maxWait: 'soon' as Anything })).rejects.toMatchObject({
      code: 'INVALID_POLICY',
    })
    await expect(limiter.acquire('key', { signal: {} as Anything })).rejects.toMatchObject({ code: 'INVALID_POLICY' })
    await expect(limiter.block('key', { until: 5 } as Anything)).rejects.toMatchObject({ code: 'INVALID_POLICY' })
    await expect(limiter.block('key', { for: 0 })).rejects.toMatchObject({ code: 'INVALID_POLICY' })
    await expect(limiter.block('key', { for: '1h', reason: 5 as Anything })).rejects.toMatchObject({
      code: 'INVALID_POLICY',
    })
    expect((await limiter.peek('key')).remaining).toBe(5)
  })

  test.each<[string, Anything, string]>([
    [
      'a number, as others take it',
      3,
      'options: expected an object, got 3: its fields are cost, bytes, responseBytes, priority, tier',
    ],
    ['null', null, 'options: expected an object, got null: its fields are cost, bytes, responseBytes, priority, tier'],
    [
      'an array',
      [3],
      'options: expected an object, got an array: its fields are cost, bytes, responseBytes, priority, tier',
    ],
    ['a misspelt option', { costs: 3 }, 'costs: unknown option: did you mean cost?, got 3'],
    [
      'an unknown option',
      { cost: 2, fresh: true },
      'fresh: unknown option (the options are cost, bytes, responseBytes, priority, tier), got true',
    ],
  ])('consume and peek reject %s as options and charge nothing', async (_, options, message) => {
    const limiter = createLimiter({ name: 'api', limit: 5, window: '1m' })
    for (const method of ['consume', 'peek'] as const) {
      await expect(limiter[method]('key', options)).rejects.toMatchObject({
        name: 'SluiceError',
        code: 'INVALID_POLICY',
        message: `policy "api": ${method}: ${message}`,
      })
    }
    expect((await limiter.peek('key')).remaining).toBe(5)
  })

  test('undefined and inherited options are ignored', async () => {
    const limiter = createLimiter({ limit: 5, window: '1m' })
    for (const options of [undefined, {}, { cost: undefined, tier: undefined }, Object.create({ costs: 3 })]) {
      expect((await limiter.consume('key', options)).cost).toBe(1)
    }
  })
})

describe('durations', () => {
  const windowMs = (window: Anything) => createLimiter({ limit: 5, window }).limits[0]?.window

  test.each([
    ['250ms', 250],
    ['10s', 10_000],
    ['15m', 900_000],
    ['1h', 3_600_000],
    ['1d', 86_400_000],
    ['1.5s', 1500],
    ['1.1s', 1100],
    ['0.001s', 1],
    [1, 1],
    [500, 500],
  ])('a window of %s is %i ms', (given, ms) => expect(windowMs(given)).toBe(ms))

  test.each([
    ['nothing', undefined],
    ['the value null', null],
    ['zero', 0],
    ['zero seconds', '0s'],
    ['a negative number', -1],
    ['a negative text', '-1s'],
    ['a fraction of a millisecond', 1.5],
    ['a fraction of a millisecond as text', '1.5ms'],
    ['not a number', Number.NaN],
    ['infinity', Number.POSITIVE_INFINITY],
    ['an unknown unit', '1w'],
    ['no unit', '10'],
    ['no number', 's'],
    ['an empty text', ''],
    ['an exponent', '1e3s'],
    ['a space', '1 s'],
    ['two units', '1h30m'],
    ['upper case', '1M'],
    ['a line break', '1s\n'],
    ['more than a hundred years', '40000d'],
    ['a date', new Date(0)],
    ['a bigint', 1000n],
  ])('a window is rejected: %s', (_, window) => {
    const { code, message } = errorOf(() => windowMs(window))
    expect(code).toBe('INVALID_POLICY')
    expect(message).toMatch(
      /^policy "default": window: expected whole milliseconds or a duration such as "30s" \(units: ms, s, m, h, d\)(, from 1 ms to .*)?, got /,
    )
  })
})

describe('numbers that could round', () => {
  const half = 2 ** 52
  test.each<[string, () => unknown, RegExp]>([
    [
      'a limit times its window',
      () => gcra({ limit: half, window: 2 }),
      /^gcra: limit: expected units times window .* below 2\^53/,
    ],
    [
      'a limit of a sliding window times its window',
      () => slidingWindow({ limit: half, window: 2, segments: 1 }),
      /^slidingWindow: limit: /,
    ],
    [
      'a limit of a log with a very long window',
      () => slidingLog({ limit: 1_000_000, window: '40000000s' as Anything }),
      /^slidingLog: (limit|window): /,
    ],
    ['a burst times its window', () => gcra({ limit: 1, window: 1000, burst: half }), /^gcra: burst: /],
    [
      'a capacity times its window',
      () => tokenBucket({ refill: 1, every: 1000, capacity: half }),
      /^tokenBucket: capacity: /,
    ],
    ['a leaky capacity', () => leakyBucket({ leak: 1, every: 1000, capacity: half }), /^leakyBucket: capacity: /],
    ['a number beyond 2^53', () => gcra({ limit: 2 ** 53, window: 1 }), /^gcra: limit: expected a whole number/],
    [
      'a log above the maximum',
      () => slidingLog({ limit: 1_000_001, window: '1d' }),
      /^slidingLog: limit: expected at most 1000000/,
    ],
    [
      'more permits than the maximum',
      () => concurrency({ limit: 100_001 }),
      /^concurrency: limit: expected at most 100000/,
    ],
    ['a response held for no time', () => concurrency({ limit: 5, maxHold: 0 }), /^concurrency: maxHold: /],
    [
      'segments that do not divide',
      () => slidingWindow({ limit: 5, window: '1m', segments: 7 }),
      /^slidingWindow: segments: /,
    ],
    [
      'a precision that does not divide',
      () => slidingWindow({ limit: 5, window: '1m', precision: '7s' }),
      /^slidingWindow: precision: /,
    ],
    [
      'a precision longer than the window',
      () => slidingWindow({ limit: 5, window: '1m', precision: '2m' }),
      /^slidingWindow: precision: /,
    ],
    [
      'segments shorter than a millisecond',
      () => slidingWindow({ limit: 5, window: 10, segments: 20 }),
      /^slidingWindow: segments: /,
    ],
    ['no segments', () => slidingWindow({ limit: 5, window: '1m', segments: 0 }), /^slidingWindow: segments: /],
    [
      'more segments than the maximum',
      () => slidingWindow({ limit: 5, window: '1h', segments: 1200 }),
      /^slidingWindow: segments: /,
    ],
  ])('numbers that could round, or exceed their bounds, are rejected: %s', (_, make, message) => {
    const error = errorOf(make)
    expect(error.code).toBe('INVALID_POLICY')
    expect(error.message).toMatch(message)
  })

  test('the largest numbers that cannot round still count exactly', async () => {
    const limit = 2 ** 53 - 1
    const limiter = createLimiter({ limits: [gcra({ limit, window: 1 }), fixedWindow({ limit, window: 1 })] })
    expect((await limiter.consume('key', { cost: limit })).remaining).toBeLessThanOrEqual(limit)
  })
})

describe('names', () => {
  test.each(['', 'a b', 'a"b', 'a\nb', 'é', 'a:b', 'a{b}', 'x'.repeat(65), 5, null, {}])(
    'a policy and a limit reject the name %j',
    (name) => {
      expect(errorOf(() => createLimiter({ name: name as Anything, limit: 5, window: '1m' })).code).toBe(
        'INVALID_POLICY',
      )
      expect(errorOf(() => perMinute(5, { name: name as Anything })).code).toBe('INVALID_POLICY')
    },
  )

  test('limits whose names differ by case only are rejected', () => {
    const limits = [perMinute(5, { name: 'Burst' }), gcra({ limit: 5, window: '1s', name: 'bURST' })]
    expect(errorOf(() => createLimiter({ limits })).message).toBe(
      'policy "default": name: expected limit names that differ by more than case, got "bURST"',
    )
  })

  test('limits without names get unique ones', async () => {
    const limiter = createLimiter({
      name: 'api',
      limits: [perMinute(5), gcra({ limit: 5, window: '1m' }), perMinute(9, { name: 'API-1m-2' })],
    })
    const names = (await limiter.peek('key')).limits.map(({ name }) => name.toLowerCase())
    expect(new Set(names).size).toBe(3)
  })
})

describe('invalid costs', () => {
  test.each([
    ['negative', -1],
    ['not a number', Number.NaN],
    ['infinite', Number.POSITIVE_INFINITY],
    ['a fraction', 1.5],
    ['beyond 2^53', 2 ** 53],
    ['text', '1'],
    ['null', null],
    ['a bigint', 1n],
    ['a promise', Promise.resolve(1)],
  ])('a cost that is %s rejects and charges nothing', async (_, cost) => {
    const limiter = createLimiter({ name: 'api', limit: 5, window: '1m' })
    for (const method of ['consume', 'peek', 'acquire'] as const) {
      const error = await limiter[method]('key', { cost: cost as Anything }).catch((error) => error)
      expect(error).toBeInstanceOf(SluiceError)
      expect(error.code).toBe('INVALID_COST')
      expect(error.message).toMatch(/^policy "api": cost: expected a whole number of at least 0, got /)
    }
    expect((await limiter.peek('key')).remaining).toBe(5)
  })
})

describe('invalid keys', () => {
  test.each([
    ['empty', ''],
    ['missing', undefined],
    ['null', null],
    ['not a number', Number.NaN],
    ['infinite', Number.POSITIVE_INFINITY],
    ['an object', { id: 1 }],
    ['an array', ['key']],
    ['a symbol', Symbol('key')],
    ['a function', () => 'key'],
    ['a boolean', true],
  ])('a key that is %s rejects and charges nothing', async (_, key) => {
    const limiter = createLimiter<Anything>({ name: 'api', limit: 5, window: '1m' })
    const byFunction = createLimiter<Anything>({
      name: 'api',
      limits: [perMinute(5), perMinute(9, { key: keyed('own', () => key as Anything) })],
    })
    for (const call of [
      () => limiter.consume(key),
      () => limiter.peek(key),
      () => limiter.reset(key),
      () => limiter.acquire(key),
      () => limiter.block(key as Anything, { for: '1h' }),
      () => limiter.unblock(key as Anything),
      () => byFunction.consume('key'),
    ]) {
      // A rejection, not a synchronous throw, which callers would not handle.
      const promise = call()
      expect(promise).toBeInstanceOf(Promise)
      const error = await (promise as Promise<Anything>).catch((error) => error)
      expect(error).toBeInstanceOf(SluiceError)
      expect(error.code).toBe('INVALID_KEY')
      expect(error.message).toMatch(
        /^policy "api": key: expected a non-empty string or a number,( or \{ key: … \},)? got /,
      )
    }
    expect((await limiter.peek('key')).remaining).toBe(5)
  })

  test('a number and its text are the same key', async () => {
    const limiter = createLimiter<Anything>({ limit: 5, window: '1m' })
    await limiter.consume(42)
    await limiter.consume(42n)
    expect((await limiter.peek('42')).remaining).toBe(3)
  })
})

describe('limit and window as functions of the request', () => {
  test.each([
    ['NaN', Number.NaN],
    ['undefined', undefined],
    ['negative', -1],
    ['text', '5'],
    ['a fraction', 0.5],
    ['infinite', Number.POSITIVE_INFINITY],
    ['a promise of nothing', Promise.resolve()],
  ])('a limit function that returns %s is an error, not "unlimited"', async (_, limit) => {
    const limiter = createLimiter({ name: 'api', limit: (() => limit) as Anything, window: '1m' })
    const error = await limiter.consume('key').catch((error) => error)
    expect(error).toBeInstanceOf(SluiceError)
    expect(error.code).toBe('INVALID_POLICY')
    expect(error.message).toMatch(/^policy "api": limit: expected a whole number of at least 0, got /)
  })

  test.each([undefined, 0, -5, '1 minuite', Number.NaN])(
    'a window function that returns %j is an error',
    async (window) => {
      const limiter = createLimiter({ name: 'api', limit: 5, window: (() => window) as Anything })
      await expect(limiter.consume('key')).rejects.toMatchObject({
        code: 'INVALID_POLICY',
        message: expect.stringMatching(/^policy "api": window: expected whole milliseconds or a duration/),
      })
    },
  )

  test('numbers that could round are rejected when a function returns them', async () => {
    const limiter = createLimiter({ name: 'api', limits: [gcra({ limit: () => 2 ** 52, window: '1m' })] })
    await expect(limiter.consume('key')).rejects.toMatchObject({ code: 'INVALID_POLICY' })
  })

  test('functions give each request its own limit and window', async () => {
    const limiter = createLimiter<string>({
      limit: (user) => (user === 'paying' ? 3 : 1),
      window: (user) => (user === 'paying' ? '1h' : 60_000),
    })
    expect((await limiter.consume('paying')).limits[0]).toMatchObject({ limit: 3, windowMs: 3_600_000, remaining: 2 })
    expect((await limiter.consume('free')).limits[0]).toMatchObject({ limit: 1, windowMs: 60_000, remaining: 0 })
    expect((await limiter.consume('free')).allowed).toBe(false)
    expect((await limiter.consume('paying')).allowed).toBe(true)
  })

  test('an error thrown by a limit function reaches the caller', async () => {
    const oops = new Error('no such plan')
    const limiter = createLimiter({
      limit: () => {
        throw oops
      },
      window: '1m',
    })
    await expect(limiter.consume('key')).rejects.toBe(oops)
  })
})

describe('functions whose promise rejects', () => {
  const failing = () => {
    throw new Error('no database')
  }
  const later = (() => Promise.reject(new Error('no database'))) as Anything
  test.each<[string, Anything]>([
    ['key', { limit: 5, window: '1m', key: later }],
    ['limit', { limit: later, window: '1m' }],
    ['window', { limit: 5, window: later }],
    ['priority', { limit: 5, window: '1m', priority: later }],
    ['tier', { tiers: { free: [perMinute(5)] }, tier: later }],
    ['key beside a limit that throws', { limit: failing, window: '1m', key: later }],
    ['limit beside a window that throws', { limit: later, window: failing }],
    ['part of a key beside one that throws', { limit: 5, window: '1m', key: compose(later, failing) }],
    ['key beside another one', { limits: [perMinute(5, { key: later }), perHour(5, { key: keyed('other', later) })] }],
  ])('a rejected promise rejects the call and is never unhandled: %s', async (_what, options) => {
    const limiter = createLimiter({ name: 'api', ...options })
    const unhandled = await unhandledDuring(async () => {
      for (const method of ['consume', 'peek', 'acquire'] as const) {
        await expect(limiter[method]('key')).rejects.toThrow('no database')
      }
    })
    expect(unhandled).toEqual([])
  })
})

describe('a limit of 0', () => {
  test.each(Object.entries(CONSTRUCTORS))('a limit of 0 refuses everything: %s', async (_, make) => {
    const limiter = createLimiter({ limits: [make({ limit: 0, window: '1m' }) as Anything] })
    const { allowed, reason, remaining, retryAfterMs, resetAfterMs } = await limiter.consume('key')
    expect({ allowed, reason, remaining, retryAfterMs, resetAfterMs }).toEqual({
      allowed: false,
      reason: 'impossible',
      remaining: 0,
      retryAfterMs: undefined,
      resetAfterMs: 0,
    })
    expect((await limiter.peek('key', { cost: 0 })).allowed).toBe(true)
  })

  test('a limit function may return 0', async () => {
    const limiter = createLimiter({ limit: () => 0, window: '1m' })
    expect(await limiter.consume('key')).toMatchObject({ allowed: false, reason: 'impossible', remaining: 0 })
  })
})

describe('limits and verdicts', () => {
  test('a plain limit is an exact log up to 1,000, and strict segments above', () => {
    expect(createLimiter({ limit: 1000, window: '1m' }).limits[0]?.algorithm).toBe('slidingLog')
    expect(createLimiter({ limit: 1001, window: '1m' }).limits[0]?.algorithm).toBe('slidingWindow')
  })

  test('limits are frozen', () => {
    const limit = perMinute(5)
    expect(() => Object.assign(limit, { limit: 500 })).toThrow(TypeError)
    expect(limit.limit).toBe(5)
  })

  test('changing an array of limits later has no effect on the limiter', async () => {
    const limits = [perMinute(1)]
    const limiter = createLimiter({ limits })
    limits[0] = perMinute(500)
    limits.push(perMinute(5))
    expect(await limiter.consume('key')).toMatchObject({ remaining: 0, limits: [{ limit: 1 }] })
  })

  test('a refund rejects a verdict of another limiter or key, or a copy', async () => {
    const one = createLimiter({ name: 'one', limit: 5, window: '1m' })
    const other = createLimiter({ name: 'other', limit: 5, window: '1m' })
    const verdict = await one.consume('key')
    await expect(other.refund('key', verdict)).rejects.toMatchObject({ code: 'INVALID_POLICY' })
    await expect(one.refund('else', verdict)).rejects.toMatchObject({ code: 'INVALID_KEY' })
    await expect(one.refund('key', { ...verdict } as Anything)).rejects.toMatchObject({ code: 'INVALID_POLICY' })
    expect((await one.peek('key')).remaining).toBe(4)
    expect(await one.refund('key', verdict)).toBe(true)
    expect((await one.peek('key')).remaining).toBe(5)
  })

  test('a refusal and a peek have nothing to refund', async () => {
    const limiter = createLimiter({ limit: 1, window: '1m' })
    await limiter.consume('key')
    expect(await limiter.refund('key', await limiter.consume('key'))).toBe(false)
    expect(await limiter.refund('key', await limiter.peek('key'))).toBe(false)
    expect((await limiter.peek('key')).remaining).toBe(0)
  })
})

test('long keys differ to their last character, and are stored as short hashes', async () => {
  const identities: string[] = []
  const store = memoryStore()
  const limiter = createLimiter({
    limit: 1,
    window: '1m',
    store: {
      decide(request) {
        identities.push(...request.identities)
        return store.decide(request)
      },
      reset: (plan, identities) => store.reset(plan, identities),
      [BANS]: store[BANS],
      close: () => store.close(),
    },
  })
  const long = 'x'.repeat(10_000)
  expect((await limiter.consume(`${long}1`)).allowed).toBe(true)
  expect((await limiter.consume(`${long}2`)).allowed).toBe(true)
  expect((await limiter.consume(`${long}1`)).allowed).toBe(false)
  for (const identity of identities) expect(identity.length).toBeLessThan(300)
  await limiter.block(`${long}3`, { for: '1m' })
  expect((await limiter.consume(`${long}3`)).reason).toBe('blocked')
})
