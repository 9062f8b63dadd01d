import {
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  leakyBucket,
  memoryStore,
  perMinute,
  rateLimit,
  slidingWindow,
  tokenBucket,
} from '@sluice/express'
import { expect, test } from 'vitest'

/** An option that only JavaScript can pass. */
// biome-ignore lint/suspicious/noExplicitAny: the point is what types forbid
type Anything = any

const consistency = { syncEvery: '100ms' } as const
const NO_BUCKET =
  'consistency: buckets are counted by Redis alone: use slidingWindow or fixedWindow, or in code a lease, which never exceeds the limit'
const rate = { limit: 100, window: '1m' } as const
const make = (options: object) => createLimiter({ store: memoryStore(), consistency, ...options } as Anything)

test.each<[string, () => unknown, string]>([
  ['a log', () => make({ limits: [perMinute(5)] }), 'consistency: a log holds each unit: use slidingWindow'],
  ['a bucket', () => make({ limits: [fixedWindow(rate), gcra(rate)] }), NO_BUCKET],
  ['a token bucket', () => make({ limits: [tokenBucket({ refill: 5, every: '1s', style: 'interval' })] }), NO_BUCKET],
  ['a leaky bucket', () => make({ limits: [leakyBucket({ leak: 5, every: '1s' })] }), NO_BUCKET],
  ['a queue', () => make({ limits: [leakyBucket({ leak: 5, every: '1s', queue: true })] }), NO_BUCKET],
  [
    'a bucket of a tier',
    () => make({ tiers: { free: [fixedWindow(rate)], paid: [gcra(rate)] }, tier: () => 'free' }),
    NO_BUCKET,
  ],
  [
    'permits',
    () => make({ limits: [fixedWindow(rate), concurrency({ limit: 5, ttl: '1s' })] }),
    'consistency: permits are held in Redis: put concurrency into a limiter of its own',
  ],
  [
    'a lease',
    () => make({ limits: [slidingWindow({ ...rate, lease: { size: 5, ttl: '1s' } })] }),
    'consistency: expected none beside lease',
  ],
  [
    'units by name',
    () => make({ limits: [fixedWindow(rate), fixedWindow({ ...rate, unit: 'tokens' })] }),
    'consistency: units by name are counted by Redis alone: put limits of tokens into a policy without consistency',
  ],
  [
    'a reserve',
    () => make({ limits: [fixedWindow({ ...rate, reserve: 5 })] }),
    'consistency: expected none beside reserve, which Redis alone keeps exactly',
  ],
  [
    'a longer time than the window',
    () => make({ limits: [slidingWindow({ limit: 5, window: '50ms' })] }),
    'consistency: syncEvery: expected at most the window of 50 ms, got 100',
  ],
  [
    'too short a time',
    () => make({ limits: [fixedWindow(rate)], consistency: { syncEvery: '9ms' } }),
    'consistency: syncEvery: expected 10 ms to 1 minute, got 9',
  ],
  [
    'too long a time',
    () => make({ limits: [fixedWindow({ limit: 5, window: '1h' })], consistency: { syncEvery: '61s' } }),
    'consistency: syncEvery: expected 10 ms to 1 minute, got 61000',
  ],
  ['no time', () => make({ limits: [fixedWindow(rate)], consistency: {} }), 'consistency: syncEvery: expected whole'],
  [
    'no object',
    () => make({ limits: [fixedWindow(rate)], consistency: '100ms' }),
    'consistency: expected an object such as { syncEvery: "100ms" }, got "100ms"',
  ],
  [
    'a misspelt option',
    () => make({ limits: [fixedWindow(rate)], consistency: { ...consistency, sync: 1 } }),
    'consistency: sync: unknown option',
  ],
])('consistency is rejected for %s', (_, run, message) => {
  expect(run).toThrow(message)
})

test('windows of every kind accept consistency, in every form of a policy', () => {
  const limits = [
    fixedWindow(rate),
    fixedWindow({ ...rate, anchor: 'first-request' }),
    slidingWindow({ ...rate, edge: 'strict' }),
  ]
  expect(() => make({ limits })).not.toThrow()
  expect(() => make({ tiers: { free: limits, paid: limits }, tier: () => 'free' })).not.toThrow()
  expect(() => rateLimit({ ...rate, store: memoryStore(), consistency })).not.toThrow()
})

test('a limit that is a function is checked against syncEvery when its value is known', async () => {
  const limiter = make({ limits: [slidingWindow<string>({ limit: 5, window: () => 50 })] })
  await expect(limiter.consume('key')).rejects.toThrow('syncEvery: expected at most the window of 50 ms, got 100')
})

test('a policy with consistency rejects meters, and settlements that may exceed the charge, and charges nothing for them', async () => {
  const limits = [slidingWindow<string>({ limit: 100, window: '1m' })]
  const limiter = createLimiter<string>({ name: 'chat', limits, consistency: { syncEvery: '100ms' } })
  const verdict = await limiter.consume('ann', { cost: 10 })
  const message = 'expected no units by name beside consistency: settle a number, which is at most the charge'
  await expect(verdict.settle({ requests: 70 })).rejects.toThrow(`policy "chat": settle: ${message}`)
  await expect(limiter.settle(verdict, { requests: 5 })).rejects.toThrow(`policy "chat": settle: ${message}`)
  expect(() => verdict.meter('requests')).toThrow(`policy "chat": meter: ${message}`)
  const left = async () => (await limiter.peek('ann', { cost: 0 })).remaining
  expect(await left()).toBe(90)
  expect(await limiter.refund('ann', verdict)).toBe(true)
  expect(await left()).toBe(100)
})
