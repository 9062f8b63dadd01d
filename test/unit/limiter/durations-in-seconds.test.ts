// Runs alone: some warnings come once in a process.
import {
  concurrency,
  createLimiter,
  delay,
  fixedWindow,
  gcra,
  memoryStore,
  queue,
  redisStore,
  slidingWindow,
  tarpit,
  tokenBucket,
} from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import { policies } from '@sluice/policies'
import { expect, test } from 'vitest'
import { allWarningsDuring } from '../../support/process-events.js'

const some = { limit: 5, window: '1m' } as const
const ban = { after: 3, within: '1m', for: ['1h'] } as const
const limiter = createLimiter(some)
const blocks = memoryStore().blocks

async function warnedOf(make: () => unknown): Promise<string[]> {
  const warnings = await allWarningsDuring(make)
  expect(warnings.every((warning) => (warning as { code?: unknown }).code === 'SLUICE_SHORT_WINDOW')).toBe(true)
  return warnings.map(({ message }) => message)
}

// Each value is warned of once, so every row has its own.
test.each<[string, number, () => unknown]>([
  ['slidingLog: window', 60, () => createLimiter({ limit: 5, window: 60 })],
  ['slidingLog: window', 3600, () => createLimiter({ limit: 5, window: 3600 })],
  ['fixedWindow: window', 86_400, () => fixedWindow({ limit: 5, window: 86_400 })],
  ['tokenBucket: every', 604_800, () => tokenBucket({ refill: 5, every: 604_800 })],
  ['policy "default": block: for', 600, () => limiter.block('a', { for: 600 })],
  ['blocks.add: for', 7200, () => blocks.add({ ip: '192.0.2.7' }, { for: 7200 })],
  ['policy "default": ban: within', 900, () => createLimiter({ ...some, ban: { ...ban, within: 900 } })],
  ['policy "default": ban: for[0]', 300, () => createLimiter({ ...some, ban: { ...ban, for: [300, '1h'] } })],
  [
    'policy "default": ban: for: max',
    172_800,
    () => createLimiter({ ...some, ban: { ...ban, for: { first: '1s', times: 1000, max: 172_800 } } }),
  ],
  [
    'policy "default": ban: forgetAfter',
    2_592_000,
    () => createLimiter({ ...some, ban: { ...ban, forgetAfter: 2_592_000 } }),
  ],
  ['policy "default": ban: jitter', 120, () => createLimiter({ ...some, ban: { ...ban, jitter: 120 } })],
  ['concurrency: ttl', 30, () => concurrency({ limit: 5, ttl: 30 })],
  ['concurrency: maxHold', 90, () => concurrency({ limit: 5, maxHold: 90 })],
  ['gcra: lease: ttl', 2, () => gcra({ ...some, lease: { size: 1, ttl: 2 } })],
  ['policy "default": count: within', 5, () => createGuard({ ...some, count: { only: 'failure', within: 5 } })],
  ['policy "default": maxWait', 6, () => limiter.acquire('b', { maxWait: 6 })],
  ['queue: maxWait', 10, () => queue({ size: 5, maxWait: 10 })],
  ['delay: max', 20, () => delay({ max: 20 })],
  ['tarpit: for', 15, () => tarpit({ for: 15 })],
  ['policy "default": window', 1800, () => createLimiter({ limit: 5, window: () => 1800 }).consume('a')],
])('a bare number that looks like seconds causes one warning: %s: %d', async (where, value, make) => {
  const message = `${where}: ${value} is ${value} ms: write '${value}s' for seconds, or '${value}ms' if that is meant`
  expect(await warnedOf(make)).toEqual([message])
  expect(await warnedOf(make)).toEqual([])
})

test('durations in documents cause the same warning as those in code', async () => {
  const object = {
    version: 1,
    policies: {
      api: {
        limits: [{ limit: 5, window: 14_400 }],
        ban: { after: 3, within: 10_800, for: [21_600] },
        respond: { delay: { max: 45 } },
      },
    },
  }
  const messages = await warnedOf(() => policies.from({ object }))
  expect(messages.map((message) => message.split(' is ')[0])).toEqual([
    'delay: max: 45',
    'slidingLog: window: 14400',
    'policy "api": ban: within: 10800',
    'policy "api": ban: for[0]: 21600',
  ])
})

test('durations with a unit, and numbers common in milliseconds, cause no warning', async () => {
  const warned = await warnedOf(async () => {
    createLimiter({ limit: 5, window: '61s' })
    createLimiter({ limit: 5, window: '61ms' })
    createLimiter({ limit: 5, window: '3ms', ban: { after: 3, within: '60ms', for: ['600ms'] } })
    for (const window of [1000, 1500, 2000, 5000, 10_000, 60_000, 900_000, 3_600_000, 86_400_000])
      gcra({ limit: 1, window })
    slidingWindow({ limit: 5, window: '1s', precision: 50 })
    concurrency({ limit: 5, ttl: '61ms', maxHold: 100 })
    concurrency({ limit: 5, ttl: 600 })
    await createLimiter({ limits: [concurrency({ limit: () => 5, ttl: '62ms' })] }).peek('a')
    createLimiter({ limits: [fixedWindow(some)], consistency: { syncEvery: 10 } })
    delay({ max: 500, from: 1, by: 10 })
    tarpit({ for: 100 })
    await limiter.acquire('c', { maxWait: 500 })
    await limiter.block('c', { for: Number.POSITIVE_INFINITY })
    expect(() => redisStore({} as never, { timeout: 50 })).toThrow('client: expected')
  })
  expect(warned).toEqual([])
})

test.each([
  ['in seconds', () => Math.floor(Date.now() / 1000), /clock: expected milliseconds, got seconds: \d+/],
  ['of fractions', () => 0.5, /clock: expected .* whole milliseconds \(Math.floor .*, got 0.5/],
  ['of seconds with fractions', () => Date.now() / 1000 + 1e-7, /clock: expected .*Math.floor/],
  ['of big integers', () => process.hrtime.bigint() as unknown as number, /clock: expected .* whole milliseconds/],
  ['of nothing', () => undefined as unknown as number, /clock: expected .*, got undefined/],
])('both stores reject a clock %s', (_what, clock, message) => {
  expect(() => memoryStore({ clock })).toThrow(
    expect.objectContaining({ code: 'INVALID_POLICY', message: expect.stringMatching(message) }),
  )
  expect(() => redisStore({} as never, { clock })).toThrow(message)
})

test('a clock may begin at 0 and step back below it', async () => {
  let now = 0
  const limiter = createLimiter({ ...some, limit: 1, store: memoryStore({ clock: () => now }) })
  await limiter.consume('a')
  now = 60_000
  expect((await limiter.consume('a')).allowed).toBe(true)
  now = -1
  expect((await limiter.consume('a')).allowed).toBe(false)
})
