import { fixedWindow, gcra, slidingLog } from '@sluice/core'
import type { StoreRequest } from '@sluice/core/store'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { ALL, type ExploreOptions, explore } from './support/explore.js'
import { type LeasesOptions, LeasesWorld } from './support/leases-world.js'

// Leases that are over are looked for by a timer, which fires when a schedule says so.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const TTL_MS = 300
const lease = { size: 4, ttl: TTL_MS }
const exploreLeases = (options: LeasesOptions, moreThan: number, more?: ExploreOptions) =>
  explore(() => LeasesWorld.make(options), moreThan, more)

/** No window, wherever it starts, holds more. */
function inAnyWindow(units: number, windowMs: number) {
  return (instants: readonly number[]) => {
    const i = instants.findIndex((at, i) => i >= units && at - (instants[i - units] as number) < windowMs)
    if (i >= 0) throw new Error(`more than ${units} are admitted within ${windowMs} ms`)
  }
}

/** No window by the clock holds more. */
function byClock(units: number, windowMs: number) {
  return (instants: readonly number[]) => {
    const windowOf = (at: number | undefined) => Math.floor((at ?? 0) / windowMs)
    const i = instants.findIndex((at, i) => i >= units && windowOf(at) === windowOf(instants[i - units]))
    if (i >= 0) throw new Error(`more than ${units} are admitted in a window of ${windowMs} ms`)
  }
}

/** No stretch of time holds more than the burst and what comes back meanwhile. */
function asBucket(burst: number, msPerUnit: number) {
  return (instants: readonly number[]) => {
    for (const [i, from] of instants.entries()) {
      for (const [j, to] of instants.entries()) {
        const most = burst + Math.floor((to - from) / msPerUnit)
        if (j >= i && j - i + 1 > most) throw new Error(`${j - i + 1} are admitted within ${to - from} ms`)
      }
    }
  }
}

const units = 8
const few = 6
/** A window that outlasts every schedule: what is charged stays, so that units can be counted. */
const lasting = {
  limit: slidingLog({ limit: units, window: '1h', lease }),
  units,
  holds: inAnyWindow(units, 3_600_000),
  lasts: true,
}

test('two processes spend no more than there is, and return the rest', async () => {
  await exploreLeases(
    {
      ...lasting,
      asks: [
        [1, 1, 1],
        [1, 1],
      ],
    },
    5000,
  )
})

test('answers and time come whenever they like', async () => {
  const late = { ...lasting, lateAnswers: true }
  await exploreLeases({ ...late, asks: [[1, 1, 1]], passMs: TTL_MS, passes: 1, sweeps: true }, 5000)
  await exploreLeases({ ...late, asks: [[1], [1]] }, 500)
})

test('what an admission refunds is spent again while its lease lives, and goes back to the store after', async () => {
  await exploreLeases(
    {
      ...lasting,
      asks: [[1, 1], []],
      refunds: true,
      passMs: TTL_MS,
      passes: 1,
    },
    2000,
  )
})

test('a reset leaves nothing that was taken before it to be spent or refunded', async () => {
  await exploreLeases({ ...lasting, asks: [[1, 1, 1], []], resets: true, lateAnswers: true }, 10_000)
})

test('a process that dies, and calls that are lost, strand units and admit none', async () => {
  await exploreLeases({ ...lasting, asks: [[1, 1], [1]], dies: true, faults: 1 }, 10_000)
})

/** Less than a lease lives: units are spent later than they were counted. */
const passing = { asks: [[1, 1, few]], passMs: 200, passes: 3 }

test.each([
  ['slidingLog', slidingLog({ limit: few, window: 600, lease }), inAnyWindow(few, 600)],
  ['gcra', gcra({ limit: few, window: 1800, lease }), asBucket(few, 300)],
  ['fixedWindow', fixedWindow({ limit: few, window: 600, lease }), byClock(few, 600)],
] as const)('the limit holds for when units are spent, as time goes on: %s', async (_, limit, holds) => {
  await exploreLeases({ ...passing, limit, units: few, holds }, 100)
})

test('the explorer notices a log that counts no longer than its window', async () => {
  const limit = slidingLog({ limit: few, window: 600, lease })
  const plans = new WeakMap<StoreRequest['plan'], StoreRequest['plan']>()
  const seen = (ask: StoreRequest): StoreRequest => {
    const cells = ask.plan.cells.map((cell) => ({ ...cell, params: [few, 600, few, 600] }))
    const plan = plans.get(ask.plan) ?? { ...ask.plan, cells }
    plans.set(ask.plan, plan)
    return { ...ask, plan }
  }
  const exploring = exploreLeases({ ...passing, limit, units: few, holds: inAnyWindow(few, 600), seen }, 0, ALL)
  await expect(exploring).rejects.toThrow(/more than 6 are admitted/)
})
