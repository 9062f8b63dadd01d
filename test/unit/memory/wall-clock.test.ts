// Runs alone: it fakes timers.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLimiter, fixedWindow, gcra, type Limit, memoryStore, slidingLog, slidingWindow } from '@sluice/core'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { byEffort } from '../../support/effort.js'
import { until } from '../../support/until.js'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
/** What the clock of the machine says at first. */
const START = Date.UTC(2026, 0, 31, 22, 10)

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'], now: START })
})
afterEach(() => {
  vi.useRealTimers()
})

/** Corrects the clock of the machine, as NTP and people do. */
const correct = (byMs: number) => vi.setSystemTime(Date.now() + byMs)
const pass = (ms: number) => vi.advanceTimersByTime(ms)

const limiterOf = (limit: Limit) => createLimiter<string>({ limits: [limit], store: memoryStore() })

describe('when the clock of the machine is corrected', () => {
  test('windows of the calendar end by the right time', async () => {
    const limiter = limiterOf(fixedWindow({ limit: 1, window: 'month' }))
    expect((await limiter.consume('ann')).resetAfterMs).toBe(HOUR + 50 * MINUTE)
    correct(2 * HOUR)
    const next = await limiter.consume('ann')
    expect(next.allowed).toBe(true)
    expect(next.resetAfterMs).toBe(Date.UTC(2026, 2, 1) - Date.now())
    pass(next.resetAfterMs - 1)
    expect((await limiter.consume('ann')).allowed).toBe(false)
    pass(1)
    expect((await limiter.consume('ann')).allowed).toBe(true)
  })

  test('clock-aligned windows end by the right time', async () => {
    const limiter = limiterOf(fixedWindow({ limit: 1, window: '1h' }))
    await limiter.consume('ann')
    correct(20 * MINUTE)
    expect((await limiter.consume('ann')).retryAfterMs).toBe(30 * MINUTE)
  })

  test.each([
    ['slidingLog', slidingLog({ limit: 1, window: '1h' })],
    ['slidingWindow', slidingWindow({ limit: 1, window: '1h' })],
    ['gcra', gcra({ limit: 1, window: '1h', burst: 1 })],
    ['a fixed window from the first request', fixedWindow({ limit: 1, window: '1h', anchor: 'first-request' })],
  ])('%s lasts as long as it says', async (_, limit) => {
    const limiter = limiterOf(limit)
    await limiter.consume('ann')
    const { retryAfterMs } = await limiter.consume('ann')
    for (const byMs of [2 * HOUR, -5 * HOUR]) {
      correct(byMs)
      expect((await limiter.consume('ann')).retryAfterMs).toBe(retryAfterMs)
    }
    pass(retryAfterMs as number)
    expect((await limiter.consume('ann')).allowed).toBe(true)
  })

  test('a clock that is set back refunds nothing and locks nobody out for longer than a window', async () => {
    const limiter = limiterOf(fixedWindow({ limit: 1, window: '1h' }))
    await limiter.consume('ann')
    for (const byMs of [-5 * MINUTE, -30 * MINUTE, -4 * HOUR]) {
      correct(byMs)
      const { allowed, retryAfterMs } = await limiter.consume('ann')
      expect(allowed).toBe(false)
      expect(retryAfterMs).toBeLessThanOrEqual(2 * HOUR)
    }
    pass((await limiter.peek('ann')).retryAfterMs as number)
    expect((await limiter.consume('ann')).allowed).toBe(true)
  })

  test('a block lasts as long as it says, and its dates are right', async () => {
    const store = memoryStore()
    const limiter = createLimiter<string>({ limit: 9, window: '1m', store })
    await limiter.block('ann', { for: '1h' })
    correct(2 * HOUR)
    expect((await limiter.peek('ann')).retryAfterMs).toBe(HOUR)
    const { entries } = await store.blocks.list()
    expect(entries).toMatchObject([{ since: Date.now(), until: Date.now() + HOUR }])
    pass(HOUR)
    expect((await limiter.peek('ann')).allowed).toBe(true)
  })

  test('a block of persist outlasts a restart', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-wall-clock-'))
    try {
      const persist = join(folder, 'blocks.ndjson')
      const before = memoryStore({ persist })
      await createLimiter<string>({ limit: 9, window: '1m', store: before }).block('ann', { for: '1h' })
      correct(2 * HOUR)
      // The process is not closed: it writes the file again by itself.
      const end = `"until":${Date.now() + HOUR}`
      await until('the file has the right dates', () => readFileSync(persist, 'utf8').includes(end))
      const limiter = createLimiter<string>({ limit: 9, window: '1m', store: memoryStore({ persist }) })
      expect((await limiter.peek('ann')).retryAfterMs).toBe(HOUR)
      await before.close?.()
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  test('the verdict of a ban has its date', async () => {
    const ban = { by: 'key', after: 1, within: '1h', for: ['1h'] } as const
    const limiter = createLimiter<string>({ limit: 1, window: '1m', ban, store: memoryStore() })
    await limiter.consume('ann')
    correct(2 * HOUR)
    expect((await limiter.consume('ann')).ban?.until).toBe(Date.now() + HOUR)
    correct(-3 * HOUR)
    expect((await limiter.peek('ann')).ban?.until).toBe(Date.now() + HOUR)
  })

  test('an entry of a list ends at its date', async () => {
    const store = memoryStore()
    await store.list('partners').add({ user: 'ann' }, { expiresAt: Date.now() + 3 * HOUR })
    correct(2 * HOUR)
    expect(await store.list('partners').get({ user: 'ann' })).toBeDefined()
    correct(2 * HOUR)
    expect(await store.list('partners').get({ user: 'ann' })).toBeUndefined()
  })
})

test('the dates of a block stay the same while the machine interrupts a process that reads its clocks', async () => {
  const store = memoryStore()
  await createLimiter<string>({ limit: 9, window: '1m', store }).block('ann', { for: '1h' })
  const dates = { since: START, until: START + HOUR }
  const date = Date.now
  const interrupted = vi.spyOn(Date, 'now')
  for (const [beforeMs, afterMs] of [
    [50, 0],
    [0, 50],
    [0, 0],
    [50, 50],
  ] as const) {
    interrupted.mockImplementation(() => {
      pass(beforeMs)
      const read = date()
      pass(afterMs)
      return read
    })
    expect((await store.blocks.list()).entries).toMatchObject([dates])
  }
})

test('limits of dates decide as if the clock of the machine was the store’s', async () => {
  const step = fc.oneof(
    fc.record({ pass: fc.integer({ min: 0, max: 90 * MINUTE }) }),
    fc.record({ correct: fc.integer({ min: -3 * HOUR, max: 3 * HOUR }).filter((ms) => Math.abs(ms) > 1) }),
    fc.record({ cost: fc.integer({ min: 1, max: 3 }) }),
  )
  const window = fc.constantFrom<'1h' | '10m' | 'day'>('1h', '10m', 'day')
  await fc.assert(
    fc.asyncProperty(window, fc.array(step, { maxLength: 40 }), async (window, steps) => {
      const limits = [fixedWindow({ limit: 5, window })]
      const own = createLimiter<string>({ limits, store: memoryStore() })
      const byDate = createLimiter<string>({ limits, store: memoryStore({ clock: () => Date.now() }) })
      for (const step of steps) {
        if ('pass' in step) pass(step.pass)
        else if ('correct' in step) correct(step.correct)
        else {
          const [one, other] = [await own.consume('ann', step), await byDate.consume('ann', step)]
          expect([one.allowed, one.remaining, one.retryAfterMs, one.resetAfterMs]).toEqual([
            other.allowed,
            other.remaining,
            other.retryAfterMs,
            other.resetAfterMs,
          ])
        }
      }
    }),
    { numRuns: byEffort({ usual: 50, full: 1000 }) },
  )
})
