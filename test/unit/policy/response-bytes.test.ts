import { concurrency, createLimiter, gcra, leakyBucket, memoryStore, perMinute, slidingLog } from '@sluice/core'
import { expect, test } from 'vitest'

/** An option that only JavaScript can pass. */
// biome-ignore lint/suspicious/noExplicitAny: the point is what types forbid
type Anything = any

const rate = { limit: 100, window: '1m', unit: 'response-bytes' } as const

test.each<[string, () => unknown, string]>([
  [
    'a lease',
    () => gcra({ ...rate, lease: { size: 1, ttl: '1s' } }),
    'gcra: lease: expected none beside unit "response-bytes"',
  ],
  ['a reserve', () => gcra({ ...rate, reserve: 0.5 }), 'gcra: reserve: expected none beside unit "response-bytes"'],
  [
    'a queue',
    () => leakyBucket({ ...rate, queue: true }),
    'leakyBucket: queue: expected none beside unit "response-bytes"',
  ],
  ['a log', () => slidingLog(rate), 'slidingLog: unit: expected none of bytes'],
  ['permits', () => concurrency({ limit: 1, unit: 'response-bytes' } as Anything), 'concurrency: unit: unknown option'],
])('unit "response-bytes" rejects %s', (_what, make, message) => {
  expect(make).toThrow(message)
})

test('each unit is charged its own amount: cost, bytes of the request, bytes of the response', async () => {
  const limits = [
    perMinute(10),
    gcra({ name: 'in', limit: 1000, window: '1h', unit: 'content-bytes' }),
    gcra({ name: 'out', limit: 1000, window: '1h', unit: 'response-bytes' }),
  ]
  const limiter = createLimiter({ name: 'units', store: memoryStore({ clock: () => 0 }), limits })
  const verdict = await limiter.consume('a', { cost: 2, bytes: 30, responseBytes: 400 })
  const left = async () => (await limiter.peek('a')).limits.map(({ remaining }) => remaining)
  expect(await left()).toEqual([8, 970, 600])
  await limiter.settle(verdict, 1)
  expect(await left()).toEqual([9, 970, 600])
  const none = await limiter.consume('a', { cost: 1, bytes: 0, responseBytes: 601 })
  expect([none.allowed, await left()]).toEqual([false, [9, 970, 600]])
  await limiter.refund('a', verdict)
  expect(await left()).toEqual([9, 1000, 1000])
})

test('a limit of response bytes beside a reserve requires room for a byte', async () => {
  const limits = [
    perMinute(10, { reserve: 5 }),
    gcra({ name: 'out', limit: 100, window: '1h', unit: 'response-bytes' }),
  ]
  const limiter = createLimiter({ name: 'reserved', store: memoryStore({ clock: () => 0 }), limits })
  expect((await limiter.consume('a', { responseBytes: 100 })).allowed).toBe(true)
  expect((await limiter.consume('a', { responseBytes: 0 })).allowed).toBe(false)
  expect((await limiter.consume('a', { responseBytes: 0, priority: 1 })).allowed).toBe(false)
})
