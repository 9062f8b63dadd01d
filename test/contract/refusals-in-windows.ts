import { createLimiter, fixedWindow, type Limit, type Store, slidingWindow } from '@sluice/core'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Clock, freshKey, MIDNIGHT, type StoreUnderTest } from './store-under-test.js'
import { always } from './traces.js'

const WINDOWS: Readonly<Record<string, (limit: number, window: number) => Limit<string>>> = {
  'fixed window': (limit, window) => fixedWindow({ limit, window }),
  'fixed window from the first request': (limit, window) => fixedWindow({ limit, window, anchor: 'first-request' }),
  'two counters': (limit, window) => slidingWindow({ limit, window }),
  'two counters, rounded up': (limit, window) => slidingWindow({ limit, window, rounding: 'up' }),
  'strict segments': (limit, window) => slidingWindow({ limit, window, segments: 4, edge: 'strict' }),
  'dropped segments': (limit, window) => slidingWindow({ limit, window, segments: 4, edge: 'dropped' }),
}

/** Refusals that count in windows, with `onDeny: 'charge'`. */
export function refusalsInWindows(under: StoreUnderTest, clock: Clock, storeOf: () => Store): void {
  test('two counters that count refusals admit 2 requests of a client that retries every 20 s, and one more after the reported wait', async () => {
    const limiter = createLimiter({
      store: storeOf(),
      limits: [slidingWindow({ limit: 2, window: '1m' })],
      onDeny: 'charge',
    })
    const key = freshKey()
    clock.now = MIDNIGHT
    const hammer = async () => {
      let admitted = 0
      for (let n = 0; n < 30; n++) {
        if ((await limiter.consume(key)).allowed) admitted++
        clock.now += 20_000
      }
      return admitted
    }
    expect(await hammer()).toBe(2)
    clock.now += (await limiter.peek(key)).retryAfterMs ?? 0
    expect((await limiter.consume(key)).allowed).toBe(true)
  })

  for (const [title, limitOf] of Object.entries(WINDOWS)) {
    test(`charged refusals delay the next admission by at most two windows, to the instant reported: ${title}`, () => {
      const input = fc.record({
        limit: fc.integer({ min: 1, max: 9 }),
        gaps: fc.array(fc.integer({ min: 0, max: 1500 }), { minLength: 5, maxLength: 60 }),
      })
      return always(under, input, async ({ limit, gaps }) => {
        const limiter = createLimiter({ store: storeOf(), limits: [limitOf(limit, 2000)], onDeny: 'charge' })
        const key = freshKey()
        clock.now = MIDNIGHT
        for (const gap of gaps) {
          clock.now += gap
          const verdict = await limiter.consume(key)
          expect(verdict.retryAfterMs).toBeLessThanOrEqual(4000)
        }
        const { retryAfterMs = 0 } = await limiter.peek(key)
        if (retryAfterMs > 0) {
          clock.now += retryAfterMs - 1
          expect((await limiter.peek(key)).allowed).toBe(false)
          clock.now += 1
        }
        expect((await limiter.consume(key)).allowed).toBe(true)
      })
    })

    test(`a refund returns the charge alone, and charged refusals still count: ${title}`, async () => {
      const limiter = createLimiter({ store: storeOf(), limits: [limitOf(10, 10_000)], onDeny: 'charge' })
      const key = freshKey()
      clock.now = MIDNIGHT
      const admitted = await limiter.consume(key, { cost: 8 })
      expect(await limiter.consume(key, { cost: 5 })).toMatchObject({ allowed: false, remaining: 0 })
      await limiter.refund(key, admitted)
      expect(await limiter.peek(key)).toMatchObject({ allowed: true, remaining: 5 })
    })

    test(`a request of cost 0 is admitted however many refusals count: ${title}`, async () => {
      const limiter = createLimiter({ store: storeOf(), limits: [limitOf(2, 10_000)], onDeny: 'charge' })
      const key = freshKey()
      clock.now = MIDNIGHT
      for (let n = 0; n < 5; n++) await limiter.consume(key)
      expect(await limiter.consume(key, { cost: 0 })).toMatchObject({ allowed: true, remaining: 0 })
    })

    test(`a refusal of an impossible cost is not charged: ${title}`, async () => {
      const limiter = createLimiter({ store: storeOf(), limits: [limitOf(3, 10_000)], onDeny: 'charge' })
      const key = freshKey()
      clock.now = MIDNIGHT
      expect(await limiter.consume(key, { cost: 4 })).toMatchObject({ reason: 'impossible', remaining: 3 })
      expect(await limiter.consume(key, { cost: 3 })).toMatchObject({ allowed: true, remaining: 0 })
    })

    test(`counts of refusals do not overflow at the largest limits: ${title}`, async () => {
      for (const [limit, window] of [
        [2 ** 30, 10_000],
        // The largest limit that this window permits.
        [Math.floor((2 ** 53 - 1) / 86_400_000), 86_400_000],
        [2 ** 40, 4000],
      ] as const) {
        const limiter = createLimiter({ store: storeOf(), limits: [limitOf(limit, window)], onDeny: 'charge' })
        const key = freshKey()
        clock.now = MIDNIGHT
        expect((await limiter.consume(key, { cost: limit })).allowed).toBe(true)
        for (let n = 0; n < 6; n++) {
          const refusal = await limiter.consume(key, { cost: limit })
          expect(refusal).toMatchObject({ allowed: false, remaining: 0 })
          expect(refusal.retryAfterMs).toBeGreaterThan(0)
          expect(refusal.retryAfterMs).toBeLessThanOrEqual(2 * window)
        }
        clock.now += (await limiter.peek(key, { cost: limit })).retryAfterMs ?? 0
        expect(await limiter.consume(key, { cost: limit })).toMatchObject({ allowed: true, remaining: 0 })
      }
    })
  }

  test('policies of one name have separate counts when only one of them charges refusals', async () => {
    const limits = [slidingWindow<string>({ limit: 2, window: '1m' })]
    const counting = createLimiter({ name: 'both', store: storeOf(), limits, onDeny: 'charge' })
    const other = createLimiter({ name: 'both', store: storeOf(), limits })
    const key = freshKey()
    clock.now = MIDNIGHT
    for (let n = 0; n < 5; n++) await counting.consume(key)
    expect(await other.consume(key)).toMatchObject({ allowed: true, remaining: 1 })
  })

  test('a charged refusal by one of several limits counts in the window of each', async () => {
    const limits = [fixedWindow<string>({ limit: 1, window: '1s' }), slidingWindow<string>({ limit: 9, window: '1m' })]
    const limiter = createLimiter({ store: storeOf(), limits, onDeny: 'charge' })
    const key = freshKey()
    clock.now = MIDNIGHT
    const verdicts = []
    for (let n = 0; n < 12; n++) verdicts.push(await limiter.consume(key))
    expect(verdicts.filter(({ allowed }) => allowed)).toHaveLength(1)
    expect(verdicts.at(-1)?.limits.map(({ remaining }) => remaining)).toEqual([0, 0])
    clock.now += 1000
    expect((await limiter.peek(key)).limits.map(({ allowed }) => allowed)).toEqual([true, false])
  })
}
