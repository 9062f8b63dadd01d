import {
  createLimiter,
  everyone,
  fixedWindow,
  keyed,
  type Limiter,
  memoryStore,
  perMinute,
  tokenBucket,
} from '@sluice/core'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { Clock, MIDNIGHT } from '../../contract/store-under-test.js'

const CLIENTS = 1000
const MINUTE = 60_000
const names = Array.from({ length: CLIENTS }, (_, n) => `client-${n}`)

const clock = new Clock()
const store = memoryStore({ clock: clock.read })
beforeEach(() => {
  clock.now = MIDNIGHT
  store.clear?.()
})
afterAll(() => store.close())

const own = {
  'fixed window': (spread?: '10s') => fixedWindow<string>({ limit: 2, window: '1m', ...(spread && { spread }) }),
  'bucket that refills at intervals': (spread?: '10s') =>
    tokenBucket<string>({ refill: 2, every: '1m', style: 'interval', ...(spread && { spread }) }),
}

/** The largest number of these instants within one tick. */
function busiest(instants: readonly number[], tickMs: number): number {
  const perTick = new Map<number, number>()
  for (const at of instants) perTick.set(Math.ceil(at / tickMs), (perTick.get(Math.ceil(at / tickMs)) ?? 0) + 1)
  return Math.max(...perTick.values())
}

for (const [title, limitOf] of Object.entries(own)) {
  test(`spread keeps 1,000 returning clients below 26 per 100 ms; without it all return in one ms: ${title}`, async () => {
    const together = await returns(createLimiter({ name: 'together', store, limits: [limitOf()] }), names)
    expect(new Set(together)).toEqual(new Set([MIDNIGHT + MINUTE]))

    const spread = await returns(createLimiter({ name: 'spread', store, limits: [limitOf('10s')] }), names)
    expect(Math.min(...spread)).toBeGreaterThanOrEqual(MIDNIGHT + MINUTE)
    expect(Math.max(...spread)).toBeLessThan(MIDNIGHT + MINUTE + 10_000)
    expect(busiest(spread, 100)).toBeLessThanOrEqual(25)
    // The seconds of Retry-After are as even.
    expect(busiest(spread, 1000)).toBeLessThanOrEqual(130)
  })
}

test('a shared limit gives all clients one retry-after, with or without spread', async () => {
  for (const spread of [undefined, '10s'] as const) {
    const limit = fixedWindow<string>({ limit: 100, window: '1m', key: everyone(), ...(spread && { spread }) })
    const limiter = createLimiter({ name: `shared-${spread}`, store, limits: [limit] })
    clock.now = MIDNIGHT
    let waiting = CLIENTS
    let requests = 0
    while (waiting > 0) {
      const verdicts = await Promise.all(names.slice(0, waiting).map((name) => limiter.consume(name)))
      requests += waiting
      waiting -= verdicts.filter(({ allowed }) => allowed).length
      const times = new Set(verdicts.filter(({ allowed }) => !allowed).map(({ retryAfterMs }) => retryAfterMs))
      expect(times.size).toBe(waiting > 0 ? 1 : 0)
      clock.now += [...times][0] ?? 0
    }
    expect(requests).toBe(5500)
  }
})

test('a refusal by two limits has the later retry-after of both', async () => {
  const limits = [
    fixedWindow<string>({ limit: 1, window: '1m', spread: '30s' }),
    perMinute<string>(1, { key: keyed<string>('own', (name) => name) }),
  ]
  const limiter = createLimiter<string>({ name: 'two', store, limits, key: keyed<string>('client', (name) => name) })
  for (const name of names.slice(0, 50)) {
    await limiter.consume(name)
    const refusal = await limiter.consume(name)
    const times = refusal.limits.map(({ retryAfterMs }) => retryAfterMs as number)
    expect(refusal.retryAfterMs).toBe(Math.max(...times))
    expect(times[0]).toBeGreaterThanOrEqual(MINUTE)
    expect(times[0]).toBeLessThan(MINUTE + 30_000)
    expect(times[1]).toBe(MINUTE)
  }
})

test('a spread beyond the window, or without common window ends, is rejected', () => {
  const expectRejected = (make: () => unknown, message: RegExp) => expect(make).toThrow(message)
  expectRejected(
    () => fixedWindow({ limit: 1, window: '1m', spread: '2m' }),
    /spread: expected at most the window of 60000 ms/,
  )
  expectRejected(
    () => fixedWindow({ limit: 1, window: '1m', spread: 0 }),
    /fixedWindow: spread: expected whole milliseconds/,
  )
  expectRejected(
    () => fixedWindow({ limit: 1, window: '1m', anchor: 'first-request', spread: '1s' }),
    /spread: expected none beside anchor "first-request"/,
  )
  expectRejected(
    () => tokenBucket({ refill: 1, every: '1m', spread: '1s' }),
    /spread: expected none without style "interval"/,
  )
  expectRejected(() => perMinute(1, { spread: '1s' } as never), /slidingLog: spread: unknown option/)
  const byRequest = createLimiter<string>({
    store,
    limits: [fixedWindow({ limit: 1, window: () => '1s', spread: '2s' })],
  })
  return expect(byRequest.consume('ann')).rejects.toThrow(/spread: expected at most the window of 1000 ms/)
})

/** The return times of the clients: each waits for its retry-after, and is admitted then up to its limit. */
async function returns(limiter: Limiter, names: readonly string[]): Promise<number[]> {
  clock.now = MIDNIGHT
  const due = await Promise.all(
    names.map(async (name) => {
      await Promise.all([limiter.consume(name), limiter.consume(name)])
      const refusal = await limiter.consume(name)
      expect(refusal.allowed).toBe(false)
      return { name, at: MIDNIGHT + (refusal.retryAfterMs as number) }
    }),
  )
  due.sort((a, b) => a.at - b.at)
  for (const { name, at } of due) {
    clock.now = at
    const verdicts = [await limiter.consume(name), await limiter.consume(name), await limiter.consume(name)]
    expect(verdicts.map(({ allowed }) => allowed)).toEqual([true, true, false])
  }
  return due.map(({ at }) => at)
}
