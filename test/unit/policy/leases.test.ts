import {
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  leakyBucket,
  perMinute,
  perSecond,
  SluiceError,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '@sluice/core'
import { expect, test } from 'vitest'

/** An option that only JavaScript can pass. */
// biome-ignore lint/suspicious/noExplicitAny: the point is what types forbid
type Anything = any

const lease = { size: 10, ttl: '1s' } as const
const rate = { limit: 100, window: '1m' } as const

test.each<[string, () => unknown, string]>([
  [
    'no size',
    () => slidingLog({ ...rate, lease: { ttl: '1s' } as Anything }),
    'slidingLog: lease: size: expected a whole number of at least 1, got undefined',
  ],
  [
    'a size of 0',
    () => fixedWindow({ ...rate, lease: { size: 0, ttl: '1s' } }),
    'fixedWindow: lease: size: expected a whole number of at least 1, got 0',
  ],
  [
    'no ttl',
    () => gcra({ ...rate, lease: { size: 10 } as Anything }),
    'gcra: lease: ttl: expected whole milliseconds or a duration such as "30s" (units: ms, s, m, h, d), got undefined',
  ],
  [
    'a misspelt option',
    () => gcra({ ...rate, lease: { ...lease, life: 5 } as Anything }),
    'gcra: lease: life: unknown option (the options are size, ttl), got 5',
  ],
  [
    'no object',
    () => gcra({ ...rate, lease: 10 as Anything }),
    'gcra: lease: expected an object such as { size: 10, ttl: "1s" }, got 10',
  ],
  [
    'a ttl beyond the window',
    () => slidingWindow({ ...rate, lease: { size: 10, ttl: '61s' } }),
    'slidingWindow: lease: ttl: expected at most the window of 60000 ms, got 61000',
  ],
  [
    'a ttl in which everything refills',
    () => gcra({ ...rate, burst: 5, lease: { size: 10, ttl: '3s' } }),
    'gcra: lease: ttl: expected one in which less than the capacity of 5 comes back, got 3000 ms',
  ],
  [
    'refusals that are charged beside it',
    () => createLimiter({ name: 'api', limits: [slidingLog({ ...rate, lease })], onDeny: 'charge' }),
    'policy "api": lease: expected none beside onDeny: "charge"',
  ],
  [
    'a reserve beside it',
    () => slidingLog({ ...rate, reserve: 10, lease }),
    'slidingLog: lease: expected none beside reserve, got an object: leave out lease, or reserve',
  ],
  [
    'a queue beside it',
    () => leakyBucket({ leak: 5, every: '1s', queue: true, lease }),
    'leakyBucket: lease: expected none beside queue, got an object: leave out lease, or queue',
  ],
  [
    'permits',
    () => concurrency({ limit: 5, lease } as Anything),
    'concurrency: lease: unknown option (the options are name, limit, key, respond, ttl, maxHold, reserve), got an object',
  ],
  [
    'one limit of two',
    () => createLimiter({ name: 'api', limits: [perSecond(50, { lease }), perMinute(200)] }),
    'policy "api": lease: expected an equal one for every limit, or none',
  ],
  [
    'different ones',
    () =>
      createLimiter({
        name: 'api',
        limits: [perSecond(50, { lease }), perMinute(200, { lease: { size: 20, ttl: '1s' } })],
      }),
    'policy "api": lease: expected an equal one for every limit, or none',
  ],
  [
    'different units',
    () =>
      createLimiter({
        name: 'api',
        limits: [perSecond(50, { lease }), gcra({ limit: 1e6, window: '1m', unit: 'content-bytes', lease })],
      }),
    'policy "api": lease: expected limits that all count the same unit',
  ],
])('a lease is rejected with %s', (_, make, message) => {
  expect(make).toThrow(new SluiceError('INVALID_POLICY', message))
})

test('equal leases may be written differently', () => {
  const written = [
    { size: 10, ttl: '1s' },
    { ttl: 1000, size: 10 },
  ] as const
  const limits = [perSecond(50, { lease: written[0] }), perMinute(200, { lease: written[1] })]
  expect(createLimiter({ name: 'api', limits }).limits).toHaveLength(2)
})

test('with a lease, an interval bucket keeps its capacity and a greedy one lowers it', () => {
  const capacityOf = async (style: 'greedy' | 'interval') => {
    const limits = [tokenBucket<string>({ capacity: 100, refill: 60, every: '1m', style, lease })]
    return (await createLimiter({ limits }).peek('any')).limits[0]?.capacity
  }
  return expect(Promise.all([capacityOf('greedy'), capacityOf('interval')])).resolves.toEqual([99, 100])
})

test('a limit of 0 with a lease refuses everything', async () => {
  const limiter = createLimiter({ limits: [gcra<string>({ limit: 0, window: '1m', lease })] })
  expect(await limiter.consume('any')).toMatchObject({ allowed: false, reason: 'impossible' })
})
