// Runs alone: it fakes timers.
import { getEventListeners } from 'node:events'
import {
  concurrency,
  createLimiter,
  gcra,
  type Limit,
  leakyBucket,
  memoryStore,
  SluiceError,
  slidingLog,
  type Verdict,
} from '@sluice/core'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { makeLimiter, QUEUES } from '../../support/inside.js'

// Timers and the store's clock are one: time passes only where a test advances it.
beforeEach(() => void vi.useFakeTimers())
afterEach(() => {
  expect(vi.getTimerCount(), 'timers left behind, beside the one of the store').toBeLessThanOrEqual(1)
  vi.useRealTimers()
})

const NOON = 20_000 * 86_400_000 + 43_200_000

function limiterOf(...limits: Limit[]) {
  return madeOf(...limits).limiter
}

function madeOf(...limits: Limit[]) {
  const start = performance.now()
  return makeLimiter({
    name: 'partner',
    store: memoryStore({ clock: () => NOON + Math.floor(performance.now() - start) }),
    limits,
  })
}

const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms)

/** Follows a promise without waiting for it. */
function watch<T>(promise: Promise<T>) {
  const start = performance.now()
  const seen = {
    state: 'waiting' as 'waiting' | 'done' | 'failed',
    value: undefined as T | undefined,
    error: undefined as SluiceError | undefined,
    afterMs: -1,
  }
  promise.then(
    (value) => Object.assign(seen, { state: 'done', value, afterMs: performance.now() - start }),
    (error) => Object.assign(seen, { state: 'failed', error, afterMs: performance.now() - start }),
  )
  return seen
}

const oneEach100Ms = () => gcra({ limit: 1, window: 100 })

describe('acquire: waiting', () => {
  test('acquire admits a request at once while the limit has room', async () => {
    const got = watch(limiterOf(oneEach100Ms()).acquire('key'))
    await pass(0)
    expect(got).toMatchObject({ state: 'done', afterMs: 0, value: { allowed: true, cost: 1 } })
  })

  test('acquire serves the callers of one key in order of arrival, each as soon as there is room', async () => {
    const limiter = limiterOf(oneEach100Ms())
    const served: number[] = []
    const all = Array.from({ length: 6 }, (_, i) => limiter.acquire('key').then(() => served.push(i)))
    for (let i = 0; i < 6; i++) {
      await pass(i === 0 ? 0 : 99)
      expect(served).toHaveLength(Math.max(1, i))
      await pass(i === 0 ? 0 : 1)
      expect(served).toHaveLength(i + 1)
    }
    await Promise.all(all)
    expect(served).toEqual([0, 1, 2, 3, 4, 5])
  })

  test('callers with fairBy take turns by units', async () => {
    const limiter = limiterOf(oneEach100Ms())
    const served: string[] = []
    const ask = (fairBy: string) => limiter.acquire('key', { fairBy }).then(() => served.push(fairBy))
    const all = [...Array.from({ length: 20 }, () => ask('ann')), ask('bob')]
    await pass(2000)
    await Promise.all(all)
    expect(served).toEqual(['ann', 'bob', ...new Array(19).fill('ann')])
  })

  test.each([
    ['', '""'],
    [7, '7'],
  ])('acquire rejects a fairBy that is not a non-empty string: %j', async (fairBy, shown) => {
    const acquired = limiterOf(oneEach100Ms()).acquire('key', { fairBy: fairBy as string })
    await expect(acquired).rejects.toThrow(`fairBy: expected a non-empty string, got ${shown}`)
  })

  test('acquire serves higher priorities first, and waiting raises a priority', async () => {
    const limiter = limiterOf(oneEach100Ms())
    await limiter.acquire('key')
    const served: string[] = []
    const wait = (name: string, options: Parameters<typeof limiter.acquire>[1]) => {
      void limiter.acquire('key', { ageEvery: 50, ...options }).then(() => served.push(name))
      return pass(1)
    }
    await wait('low', { priority: -1 })
    await wait('first', {})
    await wait('high', { priority: 2.5 })
    await wait('second', { priority: 0 })
    await pass(110)
    await wait('late', { priority: 1 })
    await pass(1000)
    expect(served).toEqual(['high', 'first', 'second', 'low', 'late'])
  })

  test('acquire uses the priority of the policy by default, and reserves apply to it', async () => {
    const limiter = createLimiter<string>({
      name: 'partner',
      key: () => 'all',
      priority: async (name) => (name === 'paying' ? 1 : 0),
      limits: [concurrency({ limit: 2, ttl: '1h', reserve: { 1: 1 } })],
    })
    const first = await limiter.acquire('free')
    const free = watch(limiter.acquire('free'))
    await pass(100)
    expect(free.state).toBe('waiting')
    const paying = watch(limiter.acquire('paying'))
    await pass(100)
    const named = watch(limiter.acquire('free', { priority: 1 }))
    await pass(100)
    expect([paying.state, named.state]).toEqual(['done', 'waiting'])
    await limiter.release(first)
    await pass(100)
    expect([named.state, free.state]).toEqual(['done', 'waiting'])
    await limiter.release(paying.value)
    await limiter.release(named.value)
    await pass(100)
    expect(free.state).toBe('done')
  })

  test('acquire rejects an invalid priority or ageEvery', async () => {
    const limiter = limiterOf(oneEach100Ms())
    await expect(limiter.acquire('key', { priority: Number.NaN })).rejects.toThrow('priority: expected a finite number')
    await expect(limiter.acquire('key', { ageEvery: 0 })).rejects.toThrow('ageEvery: expected')
  })

  test('callers of different keys do not wait for each other', async () => {
    const limiter = limiterOf(oneEach100Ms())
    await limiter.acquire('ann')
    const waiting = watch(limiter.acquire('ann'))
    const other = watch(limiter.acquire('bob'))
    await pass(0)
    expect(other.state).toBe('done')
    expect(waiting.state).toBe('waiting')
    await pass(100)
    expect(waiting.state).toBe('done')
  })

  test('a small cost does not overtake a large one that came first', async () => {
    const limiter = limiterOf(gcra({ limit: 4, window: 400 }))
    await limiter.consume('key', { cost: 3 })
    const large = watch(limiter.acquire('key', { cost: 3 }))
    const small = watch(limiter.acquire('key'))
    await pass(199)
    expect([large.state, small.state]).toEqual(['waiting', 'waiting'])
    await pass(1)
    expect([large.state, small.state]).toEqual(['done', 'waiting'])
    await pass(100)
    expect(small.state).toBe('done')
  })

  test('acquire waits for the slowest of several limits', async () => {
    const limiter = limiterOf(oneEach100Ms(), slidingLog({ limit: 2, window: 1000 }))
    const got = Array.from({ length: 3 }, () => watch(limiter.acquire('key')))
    await pass(999)
    expect(got.map(({ state }) => state)).toEqual(['done', 'done', 'waiting'])
    await pass(1)
    expect(got.map(({ afterMs }) => afterMs)).toEqual([0, 100, 1000])
  })

  test('a queueing limit admits callers one leak apart', async () => {
    const limiter = limiterOf(leakyBucket({ leak: 1, every: 100, capacity: 3, queue: true }))
    const got = Array.from({ length: 5 }, () => watch(limiter.acquire('key')))
    await pass(1000)
    // The fourth and fifth first wait for room in the bucket.
    expect(got.map(({ afterMs }) => afterMs)).toEqual([0, 100, 200, 300, 400])
  })

  test('acquire with a cost of 0 waits for its turn only', async () => {
    const limiter = limiterOf(oneEach100Ms())
    await limiter.consume('key')
    const got = watch(limiter.acquire('key', { cost: 0 }))
    await pass(0)
    expect(got.state).toBe('done')
  })

  test('acquire works on real time', async () => {
    vi.useRealTimers()
    const store = memoryStore()
    const limiter = createLimiter({ store, limits: [gcra({ limit: 1, window: 25 })] })
    const before = performance.now()
    await Promise.all(Array.from({ length: 4 }, () => limiter.acquire('key')))
    expect(performance.now() - before).toBeGreaterThan(70)
    // Otherwise its timer would fire during a later test.
    await store.close()
    vi.useFakeTimers()
  })
})

describe('acquire: a wait that would exceed maxWait', () => {
  async function expectExceeded(promise: Promise<Verdict>): Promise<void> {
    const got = watch(promise)
    await pass(0)
    expect(got).toMatchObject({ state: 'failed', afterMs: 0 })
    expect(got.error).toBeInstanceOf(SluiceError)
    expect(got.error?.code).toBe('WAIT_EXCEEDED')
    expect(got.error?.message).toMatch(/^policy "partner": acquire: /)
  }

  test('acquire fails at once if the first in the queue would wait longer than maxWait', async () => {
    const limiter = limiterOf(oneEach100Ms())
    await limiter.acquire('key')
    await expectExceeded(limiter.acquire('key', { maxWait: 99 }))
    const exact = watch(limiter.acquire('key', { maxWait: 100 }))
    await pass(100)
    expect(exact).toMatchObject({ state: 'done', afterMs: 100 })
  })

  for (const [title, make] of [
    ['gcra', () => gcra({ limit: 1, window: 100 })],
    ['exact log', () => slidingLog({ limit: 1, window: 100 })],
    ['queue', () => leakyBucket({ leak: 1, every: 100, capacity: 1, queue: true })],
  ] as const) {
    test(`acquire fails at once if a late call in the queue of a ${title} would wait longer than maxWait`, async () => {
      const limiter = limiterOf(make())
      await limiter.acquire('key')
      const ahead = Array.from({ length: 3 }, () => watch(limiter.acquire('key')))
      await pass(0)
      await expectExceeded(limiter.acquire('key', { maxWait: 350 }))
      const patient = watch(limiter.acquire('key', { maxWait: 400 }))
      await pass(400)
      expect(ahead.map(({ afterMs }) => afterMs)).toEqual([100, 200, 300])
      expect(patient).toMatchObject({ state: 'done', afterMs: 400 })
    })
  }

  test('acquire fails at once if large costs ahead would make it wait longer than maxWait', async () => {
    const limiter = limiterOf(gcra({ limit: 3, window: 300 }))
    await limiter.acquire('key', { cost: 3 })
    const ahead = [watch(limiter.acquire('key', { cost: 3 })), watch(limiter.acquire('key', { cost: 2 }))]
    await pass(0)
    await expectExceeded(limiter.acquire('key', { maxWait: 599 }))
    const patient = watch(limiter.acquire('key', { maxWait: 600 }))
    await pass(600)
    expect(ahead.map(({ afterMs }) => afterMs)).toEqual([300, 500])
    expect(patient).toMatchObject({ state: 'done', afterMs: 600 })
  })

  test('acquire charges nothing if the wait would exceed maxWait', async () => {
    const limiter = limiterOf(oneEach100Ms())
    await limiter.acquire('key')
    const { resetAfterMs } = await limiter.peek('key')
    await expectExceeded(limiter.acquire('key', { maxWait: 50 }))
    expect((await limiter.peek('key')).resetAfterMs).toBe(resetAfterMs)
  })

  test('a queueing limit refunds the units of a call whose wait would exceed maxWait', async () => {
    const limiter = limiterOf(leakyBucket({ leak: 1, every: 100, capacity: 5, queue: true }))
    await limiter.consume('key', { cost: 2 })
    await expectExceeded(limiter.acquire('key', { maxWait: 150 }))
    expect(await limiter.peek('key')).toMatchObject({ remaining: 3, delayMs: 200 })
  })

  test('acquire fails after maxWait if no permit was released', async () => {
    const limiter = limiterOf(concurrency({ limit: 1 }))
    await limiter.acquire('key')
    const got = watch(limiter.acquire('key', { maxWait: 120 }))
    await pass(119)
    expect(got.state).toBe('waiting')
    await pass(5)
    expect(got).toMatchObject({ state: 'failed', error: { code: 'WAIT_EXCEEDED' } })
  })

  test('acquire fails at once for a cost above the capacity', async () => {
    await expectExceeded(limiterOf(oneEach100Ms()).acquire('key', { cost: 2 }))
  })

  test('acquire fails at once for a cost above the capacity, even behind other waiters', async () => {
    const limiter = limiterOf(oneEach100Ms())
    await limiter.acquire('key')
    const ahead = watch(limiter.acquire('key'))
    await pass(0)
    await expectExceeded(limiter.acquire('key', { cost: 2 }))
    await pass(100)
    expect(ahead.state).toBe('done')
  })

  test('acquire fails at once under a limit of 0', async () => {
    await expectExceeded(limiterOf(gcra({ limit: 0, window: 100 })).acquire('key'))
  })

  test('acquire of a blocked key waits for the end of the block, or fails at once', async () => {
    const limiter = limiterOf(oneEach100Ms())
    await limiter.block('key', { for: 200 })
    await expectExceeded(limiter.acquire('key', { maxWait: 199 }))
    const patient = watch(limiter.acquire('key', { maxWait: 200 }))
    await pass(200)
    expect(patient).toMatchObject({ state: 'done', afterMs: 200 })
  })
})

describe('acquire: size of the queue', () => {
  const waitersOf = async (limiter: ReturnType<typeof limiterOf>, count: number, options = {}) => {
    await limiter.acquire('key')
    const waiting = Array.from({ length: count }, () => watch(limiter.acquire('key', options)))
    await pass(0)
    return waiting
  }

  test('a queue holds 10,000 waiters per key; further calls are rejected at once, those of other keys are not', async () => {
    const { limiter, engine } = madeOf(concurrency({ limit: 1 }))
    const leaving = new AbortController()
    await waitersOf(limiter, 10_000, { signal: leaving.signal })
    const got = watch(limiter.acquire('key'))
    const other = watch(limiter.acquire('other'))
    await pass(0)
    expect(got).toMatchObject({ state: 'failed', error: { code: 'WAIT_EXCEEDED' } })
    expect(got.error?.message).toBe('policy "partner": acquire: 10000 calls wait already')
    expect(other.state).toBe('done')
    leaving.abort()
    await pass(0)
    expect(engine.parts.get(QUEUES)?.areAny).toBe(false)
  })

  test('size bounds a queue, and a waiter that leaves makes room for another', async () => {
    const limiter = limiterOf(concurrency({ limit: 1 }))
    const leaving = new AbortController()
    const { signal } = leaving
    const [first, second] = await waitersOf(limiter, 2, { size: 2, signal })
    const third = watch(limiter.acquire('key', { size: 2 }))
    const more = watch(limiter.acquire('key', { size: 3, signal }))
    await pass(0)
    expect([first?.state, second?.state, third.state, more.state]).toEqual(['waiting', 'waiting', 'failed', 'waiting'])
    leaving.abort()
    await pass(0)
    const last = watch(limiter.acquire('key', { size: 1, maxWait: 60 }))
    await pass(0)
    expect(last.state).toBe('waiting')
    await pass(100)
  })

  test('a full queue drops the newest call of the client with the most, in favour of another client', async () => {
    const limiter = limiterOf(concurrency({ limit: 1 }))
    const [first, second] = await waitersOf(limiter, 2, { size: 2, fairBy: 'ann', maxWait: 100 })
    const other = watch(limiter.acquire('key', { size: 2, fairBy: 'bob', maxWait: 100 }))
    await pass(0)
    expect([first?.state, second?.state, other.state]).toEqual(['waiting', 'failed', 'waiting'])
    expect(second?.error?.code).toBe('WAIT_EXCEEDED')
    await pass(200)
  })

  test.each([0, 1.5, '5'])('acquire rejects a size that is not a whole number of at least 1: %j', async (size) => {
    const acquired = limiterOf(oneEach100Ms()).acquire('key', { size: size as number })
    await expect(acquired).rejects.toThrow('size: expected a whole number of at least 1')
  })
})

describe('acquire: aborting', () => {
  const reason = new Error('the caller left')
  /** Aborts, and expects the wait to end at once, with no listener left on the signal. */
  async function abortAndExpect(controller: AbortController, got: ReturnType<typeof watch>): Promise<void> {
    expect(got.state).toBe('waiting')
    controller.abort(reason)
    await pass(0)
    expect(got).toMatchObject({ state: 'failed', error: reason })
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0)
  }

  test('an acquire with an aborted signal charges nothing', async () => {
    const limiter = limiterOf(oneEach100Ms())
    await expect(limiter.acquire('key', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    expect((await limiter.peek('key')).remaining).toBe(1)
  })

  test('when a waiter aborts, those behind it move up', async () => {
    const limiter = limiterOf(oneEach100Ms())
    const controller = new AbortController()
    await limiter.acquire('key')
    const first = watch(limiter.acquire('key'))
    const second = watch(limiter.acquire('key', { signal: controller.signal }))
    const third = watch(limiter.acquire('key'))
    await pass(50)
    await abortAndExpect(controller, second)
    await pass(150)
    expect([first.afterMs, third.afterMs]).toEqual([100, 200])
  })

  test('when the first waiter aborts, the next takes its turn', async () => {
    const limiter = limiterOf(oneEach100Ms())
    const controller = new AbortController()
    await limiter.acquire('key')
    const head = watch(limiter.acquire('key', { signal: controller.signal }))
    const next = watch(limiter.acquire('key'))
    await pass(50)
    await abortAndExpect(controller, head)
    await pass(50)
    expect(next).toMatchObject({ state: 'done', afterMs: 100 })
  })

  test('a queueing limit refunds the units of a waiter that aborts', async () => {
    const limiter = limiterOf(leakyBucket({ leak: 1, every: 100, capacity: 5, queue: true }))
    const controller = new AbortController()
    await limiter.acquire('key')
    const queued = watch(limiter.acquire('key', { signal: controller.signal }))
    await pass(0)
    expect(await limiter.peek('key')).toMatchObject({ remaining: 3, delayMs: 200 })
    await abortAndExpect(controller, queued)
    expect(await limiter.peek('key')).toMatchObject({ remaining: 4, delayMs: 100 })
  })

  test('a waiter that aborts takes no permit', async () => {
    const limiter = limiterOf(concurrency({ limit: 1 }))
    const controller = new AbortController()
    const held = await limiter.acquire('key')
    const waiting = watch(limiter.acquire('key', { signal: controller.signal }))
    await pass(10)
    await abortAndExpect(controller, waiting)
    await limiter.release(held)
    expect((await limiter.peek('key')).remaining).toBe(1)
  })

  test('waiters with one signal share one listener, and all leave on abort', async () => {
    const limiter = limiterOf(oneEach100Ms(), concurrency({ limit: 1 }))
    const controller = new AbortController()
    await limiter.acquire('key')
    const waiting = Array.from({ length: 20 }, () => watch(limiter.acquire('key', { signal: controller.signal })))
    await pass(10)
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(1)
    controller.abort(reason)
    await pass(0)
    for (const one of waiting) expect(one).toMatchObject({ state: 'failed', error: reason })
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0)
  })

  test('an abort after the admission changes nothing', async () => {
    const limiter = limiterOf(oneEach100Ms())
    const controller = new AbortController()
    await limiter.acquire('key', { signal: controller.signal })
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(0)
    controller.abort(reason)
    await pass(0)
    expect((await limiter.peek('key')).remaining).toBe(0)
  })
})

describe('acquire: early wake-ups, without a timer', () => {
  test('a released permit wakes the first waiter', async () => {
    const limiter = limiterOf(concurrency({ limit: 1 }))
    const held = await limiter.acquire('key')
    const [first, second] = [watch(limiter.acquire('key')), watch(limiter.acquire('key'))]
    await pass(5)
    await limiter.release(held)
    await pass(0)
    expect([first.state, second.state]).toEqual(['done', 'waiting'])
    await limiter.release(first.value as Verdict)
    await pass(0)
    expect(second.state).toBe('done')
  })

  test('a refund wakes the first waiter', async () => {
    const limiter = limiterOf(oneEach100Ms())
    const held = await limiter.acquire('key')
    const waiting = watch(limiter.acquire('key'))
    await pass(5)
    await limiter.refund('key', held)
    await pass(0)
    expect(waiting.state).toBe('done')
  })

  test('a reset wakes the first waiter', async () => {
    const limiter = limiterOf(oneEach100Ms())
    await limiter.acquire('key')
    const waiting = watch(limiter.acquire('key'))
    await pass(5)
    await limiter.reset('key')
    await pass(0)
    expect(waiting.state).toBe('done')
  })

  test('the end of a block wakes the first waiter', async () => {
    const limiter = limiterOf(oneEach100Ms())
    await limiter.block('key', { for: '1h' })
    const waiting = watch(limiter.acquire('key'))
    await pass(5)
    await limiter.unblock('key')
    await pass(0)
    expect(waiting.state).toBe('done')
  })

  test('a release wakes only the waiters of its own key', async () => {
    const store = memoryStore()
    const decided: string[] = []
    const decide: typeof store.decide = (request) => {
      decided.push(request.identities.join())
      return store.decide(request)
    }
    const limiter = createLimiter({ store: { ...store, decide }, limits: [concurrency({ limit: 1 })] })
    const leaving = new AbortController()
    const keys = Array.from({ length: 20 }, (_, i) => `key ${i}`)
    const held = await Promise.all(keys.map((key) => limiter.acquire(key)))
    const waiting = keys.map((key) => watch(limiter.acquire(key, { signal: leaving.signal })))
    await pass(1)
    decided.length = 0
    await limiter.release(held[7] as Verdict)
    await pass(0)
    expect(waiting.map(({ state }) => state === 'done')).toEqual(keys.map((_, i) => i === 7))
    expect(new Set(decided)).toEqual(new Set(['key=key 7']))
    leaving.abort()
    await pass(0)
  })

  test('a permit whose holder died wakes the first waiter when its ttl ends', async () => {
    const limiter = limiterOf(concurrency({ limit: 1, ttl: 1000 }))
    await limiter.acquire('key')
    const waiting = watch(limiter.acquire('key'))
    await pass(999)
    expect(waiting.state).toBe('waiting')
    await pass(60)
    expect(waiting.state).toBe('done')
  })
})
