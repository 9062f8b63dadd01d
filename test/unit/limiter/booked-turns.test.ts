// Runs alone: it fakes timers.
import { createLimiter, type Limit, leakyBucket, memoryStore } from '@sluice/core'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { byEffort } from '../../support/effort.js'

// Timers and the store's clock are one: time passes only where a test advances it.
beforeEach(() => void vi.useFakeTimers())
afterEach(() => {
  expect(vi.getTimerCount(), 'timers left behind, beside the one of the store').toBeLessThanOrEqual(1)
  vi.useRealTimers()
})

const NOON = 20_000 * 86_400_000 + 43_200_000

/** One unit each 100 ms, and who started when. */
function start(limit: Limit = leakyBucket({ leak: 10, every: '1s', capacity: 1000, queue: true })) {
  const began = performance.now()
  const clock = () => NOON + performance.now() - began
  const store = memoryStore({ clock })
  const limiter = createLimiter({ name: 'booked', store, limits: [limit] })
  const starts: { who: string; atMs: number; cost: number }[] = []
  const failures: string[] = []
  const acquire = (who: string, options: Parameters<typeof limiter.acquire>[1] = {}) => {
    limiter.acquire('all', { fairBy: who.slice(0, 3), ...options }).then(
      ({ cost }) => void starts.push({ who, atMs: performance.now() - began, cost }),
      (error) => void failures.push(`${who}: ${error.name === 'AbortError' ? 'left' : error.code}`),
    )
    return vi.advanceTimersByTimeAsync(0)
  }
  return { store, limiter, starts, failures, acquire, order: () => starts.map(({ who }) => who) }
}

describe('turns booked in a queueing limit', () => {
  test('after twenty calls of one client, another client is served second, and no call is early', async () => {
    const { acquire, starts, order } = start()
    for (let i = 0; i < 21; i++) await acquire(`ann ${i}`)
    await acquire('bob')
    await vi.advanceTimersByTimeAsync(5000)
    // The very first starts at once: it waits for no other.
    expect(order().slice(0, 4)).toEqual(['ann 0', 'ann 1', 'bob', 'ann 2'])
    expect(starts.map(({ atMs }) => atMs)).toEqual(Array.from({ length: 22 }, (_, i) => 100 * i))
  })

  test('calls without a client, and calls of one client, keep their order', async () => {
    const { acquire, order } = start()
    for (let i = 0; i < 5; i++) await acquire(`ann ${i}`, i % 2 === 0 ? {} : { fairBy: 'ann' })
    await vi.advanceTimersByTimeAsync(5000)
    expect(order()).toEqual(['ann 0', 'ann 1', 'ann 2', 'ann 3', 'ann 4'])
  })

  test('without clients, calls are served in order of arrival', async () => {
    const { limiter } = start()
    const served: number[] = []
    for (let i = 0; i < 5; i++) limiter.acquire('all').then(() => void served.push(i))
    await vi.advanceTimersByTimeAsync(5000)
    expect(served).toEqual([0, 1, 2, 3, 4])
  })

  test('when a waiter leaves, the others move up, and the last turn is free again', async () => {
    const { acquire, starts, order, failures } = start()
    const leaving = new AbortController()
    await acquire('ann 0')
    await acquire('ann 1', { signal: leaving.signal })
    await acquire('ann 2')
    await acquire('bob 0')
    leaving.abort()
    await vi.advanceTimersByTimeAsync(0)
    await acquire('bob 1')
    await vi.advanceTimersByTimeAsync(5000)
    expect(failures).toEqual(['ann 1: left'])
    expect(order()).toEqual(['ann 0', 'ann 2', 'bob 0', 'bob 1'])
    expect(starts.map(({ atMs }) => atMs)).toEqual([0, 100, 200, 300])
  })

  test('a call is served within maxWait thanks to its turn; one that is overtaken for too long is refused and refunded', async () => {
    const { acquire, limiter, order, failures } = start()
    await acquire('ann 0')
    for (let i = 1; i <= 4; i++) await acquire(`ann ${i}`, { maxWait: 400 })
    await acquire('bob', { maxWait: 200 })
    await vi.advanceTimersByTimeAsync(5000)
    expect(order()).toEqual(['ann 0', 'ann 1', 'bob', 'ann 2', 'ann 3'])
    expect(failures).toEqual(['ann 4: WAIT_EXCEEDED'])
    expect(await limiter.peek('all')).toMatchObject({ remaining: 1000 })
  })

  test('a call that would exceed maxWait even in its turn is refused at once', async () => {
    const { acquire, failures } = start()
    for (let i = 0; i < 5; i++) await acquire(`ann ${i}`)
    await acquire('bob', { maxWait: 199 })
    expect(failures).toEqual(['bob: WAIT_EXCEEDED'])
    await vi.advanceTimersByTimeAsync(5000)
  })

  test('turns of different keys are not exchanged', async () => {
    const { limiter } = start()
    const served: string[] = []
    const began = performance.now()
    for (const [key, who] of ['xa', 'xa', 'xa', 'yb', 'yb', 'xb'].map((one) => [one[0], one[1]] as [string, string])) {
      limiter.acquire(key, { fairBy: who }).then(() => void served.push(`${key}${who} ${performance.now() - began}`))
    }
    await vi.advanceTimersByTimeAsync(5000)
    expect(served.sort()).toEqual(['xa 0', 'xa 200', 'xa 300', 'xb 100', 'yb 0', 'yb 100'])
  })
})

test('after a change of its rate, a limit exchanges turns by the times that it has booked at either rate', async () => {
  let leak = 20
  const limit = leakyBucket({ leak: () => leak, every: '1s', capacity: 1000, queue: true })
  // As limits of documents are, whose used units count after a change of their rate.
  const { acquire, starts } = start({ ...limit, carry: '' } as Limit)
  for (let i = 0; i < 3; i++) await acquire(`ann ${i}`)
  leak = 200
  await acquire('bob')
  await acquire('cem', { cost: 10 })
  for (let i = 0; i < 8; i++) await acquire(`dan ${i}`)
  await vi.advanceTimersByTimeAsync(5000)
  // The first three were booked for 0, 50 and 100, and those after them for 15, 20 to 65, and 70, 75, … up to 105.
  expect(starts.map(({ who, atMs }) => [who, atMs])).toEqual([
    ['ann 0', 0],
    ['ann 1', 15],
    ['bob', 20],
    ['cem', 25],
    ['dan 0', 70],
    ['ann 2', 75],
    ['dan 1', 80],
    ['dan 2', 85],
    ['dan 3', 90],
    ['dan 4', 95],
    ['dan 5', 100],
    ['dan 6', 100],
    ['dan 7', 105],
  ])
})

test('for any rates, costs, arrivals and aborts, no start precedes a booked time, and all start in the total time', async () => {
  const arrival = fc.record({
    who: fc.constantFrom('ann', 'bob', 'cem'),
    cost: fc.integer({ min: 1, max: 5 }),
    afterMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 300 })),
    /** Units a second from then on. */
    rate: fc.constantFrom(10, 10, 10, 40),
    /** Charges directly, as another process does. */
    isElsewhere: fc.boolean(),
    leavesAfterMs: fc.option(fc.integer({ min: 1, max: 2000 }), { nil: undefined, freq: 5 }),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(arrival, { minLength: 1, maxLength: 25 }), async (arrivals) => {
      let leak = 10
      const limit = leakyBucket({ leak: () => leak, every: '1s', capacity: 1000, queue: true })
      const { store, limiter, starts, failures, acquire } = start({ ...limit, carry: '' } as Limit)
      const began = performance.now()
      const booked: number[] = []
      const unitMs = new Map<string, number>()
      let leaving = 0
      for (const [i, { who, cost, afterMs, rate, isElsewhere, leavesAfterMs }] of arrivals.entries()) {
        await vi.advanceTimersByTimeAsync(afterMs)
        leak = rate
        // The time that the store itself would book.
        const { delayMs } = await limiter.peek('all')
        const from = performance.now() - began + delayMs
        if (isElsewhere) {
          await limiter.consume('all', { cost })
          continue
        }
        unitMs.set(`${who} ${i}`, 1000 / rate)
        for (let unit = 0; unit < cost; unit++) booked.push(from + (1000 / rate) * unit)
        const signal = leavesAfterMs === undefined ? undefined : new AbortController()
        if (leavesAfterMs !== undefined) {
          leaving++
          setTimeout(() => signal?.abort(), leavesAfterMs)
        }
        await acquire(`${who} ${i}`, { cost, ...(signal && { signal: signal.signal }) })
      }
      await vi.advanceTimersByTimeAsync(100_000)
      expect(starts.length + failures.length).toBe(unitMs.size)
      expect(failures.length).toBeLessThanOrEqual(leaving)
      const units = starts.flatMap(({ who, atMs, cost }) =>
        Array.from({ length: cost }, (_, unit) => atMs + (unitMs.get(who) as number) * unit),
      )
      units.sort((a, b) => a - b)
      booked.sort((a, b) => a - b)
      for (const [i, at] of units.entries()) expect(at).toBeGreaterThanOrEqual((booked[i] as number) - 1)
      if (failures.length === 0 && units.length > 0)
        expect(units.at(-1)).toBeLessThanOrEqual((booked.at(-1) as number) + 500)
      // After a change to a higher rate, there may be room at once.
      const isOneRate = new Set(unitMs.values()).size < 2
      for (const who of isOneRate ? ['ann', 'bob', 'cem'] : []) {
        const own = starts.map((one) => one.who).filter((one) => one.startsWith(who))
        expect(own).toEqual([...unitMs.keys()].filter((one) => own.includes(one)))
      }
      await store.close()
    }),
    { numRuns: byEffort({ usual: 50, full: 1000 }) },
  )
})
