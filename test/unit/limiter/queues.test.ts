import { everyone, gcra, memoryStore, type SluiceError, slidingLog, type Verdict } from '@sluice/core'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { byEffort } from '../../support/effort.js'
import { makeLimiter, QUEUES } from '../../support/inside.js'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

interface Caller {
  readonly user: string
}

/** `perUser` per 100 ms for each user and 2 per 80 ms for all; every other store call resolves later. */
function limiterOfTwo(perUser = 1) {
  const start = performance.now()
  const store = memoryStore({ clock: () => 1_000_000_000 + Math.floor(performance.now() - start) })
  return makeLimiter<Caller>({
    name: 'two',
    store: { ...storeLate(store) } as never,
    limits: [
      gcra({ limit: perUser, window: 100, key: ({ user }: Caller) => user }),
      slidingLog({ limit: 2, window: 80, key: everyone() }),
    ],
  })
}

function storeLate(store: ReturnType<typeof memoryStore>) {
  let calls = 0
  return {
    decide: (request: never) => {
      const result = store.decide(request)
      return calls++ % 2 === 0 ? result : Promise.resolve(result)
    },
    close: () => store.close(),
  }
}

describe('queues of several limits', () => {
  test('a client that waits for its own limit delays no other, and each queue keeps its order', async () => {
    const { limiter } = limiterOfTwo()
    const served: string[] = []
    const wait = (user: string) => limiter.acquire({ user }).then(() => served.push(`${user} ${performance.now()}`))
    const start = performance.now()
    const all = ['ann', 'ann', 'ann', 'bob', 'cid', 'bob'].map(wait)
    await vi.advanceTimersByTimeAsync(400)
    await Promise.all(all)
    expect(served.map((queue) => `${queue.split(' ')[0]} ${Number(queue.split(' ')[1]) - start}`)).toEqual([
      'ann 0',
      'bob 0',
      'cid 80',
      'ann 100',
      'bob 160',
      'ann 200',
    ])
  })

  test('a small cost does not overtake a large one of another key that waits for the same limit', async () => {
    const { limiter } = limiterOfTwo(5)
    const start = performance.now()
    const served: [string, number][] = []
    const wait = (user: string, cost: number) =>
      limiter.acquire({ user }, { cost }).then(() => served.push([user, performance.now() - start]))
    await wait('cid', 1)
    const large = wait('ann', 2)
    await vi.advanceTimersByTimeAsync(1)
    const small = wait('bob', 1)
    await vi.advanceTimersByTimeAsync(200)
    await Promise.all([large, small])
    expect(served).toEqual([
      ['cid', 0],
      ['ann', 80],
      ['bob', 160],
    ])
  })

  test('a request that becomes first in one queue still waits behind earlier ones in another', async () => {
    const { limiter } = limiterOfTwo(2)
    const start = performance.now()
    const served: [string, number][] = []
    const leaving = new AbortController()
    const wait = (user: string, cost: number, signal?: AbortSignal) =>
      limiter.acquire({ user }, { cost, ...(signal && { signal }) }).then(
        () => served.push([user, performance.now() - start]),
        () => {},
      )
    await wait('ann', 2)
    await vi.advanceTimersByTimeAsync(1)
    void wait('ann', 2, leaving.signal)
    await vi.advanceTimersByTimeAsync(84)
    void wait('dan', 1)
    await vi.advanceTimersByTimeAsync(1)
    void wait('zed', 2)
    await vi.advanceTimersByTimeAsync(1)
    // It waits behind her earlier request, which then leaves: her own limit has room from 100 ms on.
    void wait('ann', 1)
    await vi.advanceTimersByTimeAsync(1)
    leaving.abort(new Error('left'))
    await vi.advanceTimersByTimeAsync(400)
    expect(served).toEqual([
      ['ann', 0],
      ['dan', 85],
      ['zed', 165],
      ['ann', 245],
    ])
  })

  test('for any arrivals and departures all waiters are served or rejected, in order per user, and none is left', async () => {
    const arrival = fc.record({
      user: fc.constantFrom('ann', 'bob', 'cid'),
      afterMs: fc.integer({ min: 0, max: 60 }),
      leavesAfterMs: fc.option(fc.integer({ min: 0, max: 400 }), { nil: undefined }),
      maxWait: fc.option(fc.integer({ min: 1, max: 600 }), { nil: undefined }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(arrival, { minLength: 1, maxLength: 14 }), async (arrivals) => {
        // Timers of the stores of earlier runs would take most of the time.
        vi.clearAllTimers()
        const { limiter, engine } = limiterOfTwo()
        const served: { user: string; n: number; atMs: number; verdict: Verdict }[] = []
        const ended: string[] = []
        for (const [n, { user, afterMs, leavesAfterMs, maxWait }] of arrivals.entries()) {
          await vi.advanceTimersByTimeAsync(afterMs)
          const leaving = new AbortController()
          if (leavesAfterMs !== undefined) setTimeout(() => leaving.abort(new Error('left')), leavesAfterMs)
          limiter.acquire({ user }, { signal: leaving.signal, ...(maxWait !== undefined && { maxWait }) }).then(
            (verdict) => served.push({ user, n, atMs: performance.now(), verdict }),
            (error: SluiceError) => ended.push(error.code ?? error.message),
          )
        }
        await vi.advanceTimersByTimeAsync(5000)
        expect(served.length + ended.length).toBe(arrivals.length)
        expect(ended.every((why) => why === 'left' || why === 'WAIT_EXCEEDED')).toBe(true)
        expect(served.every(({ verdict }) => verdict.allowed && verdict.cost === 1)).toBe(true)
        for (const name of ['ann', 'bob', 'cid']) {
          const own = served.filter(({ user }) => user === name)
          expect(own.map(({ n }) => n)).toEqual(own.map(({ n }) => n).sort((a, b) => a - b))
          for (let i = 1; i < own.length; i++) expect(at(own, i) - at(own, i - 1)).toBeGreaterThanOrEqual(100)
        }
        for (let i = 2; i < served.length; i++) expect(at(served, i) - at(served, i - 2)).toBeGreaterThanOrEqual(80)
        // Only what has been charged is stored, and no request waits.
        expect(engine.parts.get(QUEUES)?.areAny).toBe(false)
        expect((await limiter.peek({ user: 'ann' })).remaining).toBe(1)
      }),
      { numRuns: byEffort({ quick: 12, usual: 20, full: 600 }) },
    )
  })
})

function at(served: readonly { atMs: number }[], i: number): number {
  return served[i]?.atMs ?? Number.NaN
}
