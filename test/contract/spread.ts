import { createLimiter, fixedWindow, type Store } from '@sluice/core'
import { expect, test } from 'vitest'
import { type Clock, freshKey, MIDNIGHT } from './store-under-test.js'

const MINUTE = 60_000

/** The spread of retry times; test/unit/verdict/spread.test.ts has more. */
export function spreadTimes(clock: Clock, storeOf: () => Store): void {
  test('each refusal by a limit with spread names the same instant, and a limit beside it reports its own', async () => {
    const limits = [
      fixedWindow<string>({ name: 'minute', limit: 1, window: '1m', spread: '20s' }),
      fixedWindow<string>({ name: 'hour', limit: 9, window: '1h' }),
    ]
    const limiter = createLimiter({ store: storeOf(), limits })
    const key = freshKey()
    clock.now = MIDNIGHT
    const first = await limiter.consume(key)
    expect(first.limits.map(({ retryAfterMs }) => retryAfterMs)).toEqual([0, 0])
    const instants = new Set<number>()
    for (const afterMs of [0, 1, 999, 30_000, 59_999]) {
      clock.now = MIDNIGHT + afterMs
      const refusal = await limiter.consume(key)
      const [minute, hour] = refusal.limits
      expect(minute).toMatchObject({ allowed: false, retryAfterMs: refusal.retryAfterMs })
      expect(minute?.resetAfterMs).toBe(refusal.retryAfterMs)
      expect(hour).toMatchObject({ allowed: true, retryAfterMs: 0, resetAfterMs: 60 * MINUTE - afterMs })
      instants.add(clock.now + (refusal.retryAfterMs as number))
      expect((await limiter.peek(key)).retryAfterMs).toBe(refusal.retryAfterMs)
    }
    expect(instants.size).toBe(1)
    // Spread only delays the reported time: a request at the end of the window has room.
    clock.now = MIDNIGHT + MINUTE
    expect((await limiter.consume(key)).allowed).toBe(true)
  })
}
