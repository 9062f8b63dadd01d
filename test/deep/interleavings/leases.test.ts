import { fixedWindow, gcra, slidingLog } from '@sluice/core'
import type { StoreRequest } from '@sluice/core/store'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { ALL, type ExploreOptions, explore } from './support/explore.js'
import { type LeasesOptions, LeasesWorld } from './support/leases-world.js'

// A timer looks for expired leases, and fires when a schedule has it as a step.
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

/** Fails where any window, at any position, has more units. */
function inAnyWindow(units: number, windowMs: number) {
  return (instants: readonly number[]) => {
    const i = instants.findIndex((at, i) => i >= units && at - (instants[i - units] as number) < windowMs)
    if (i >= 0) throw new Error(`more than ${units} are admitted within ${windowMs} ms`)
  }
}

/** Fails where a window by the clock has more units. */
function byClock(units: number, windowMs: number) {
  return (instants: readonly number[]) => {
    const windowOf = (at: number | undefined) => Math.floor((at ?? 0) / windowMs)
    const i = instants.findIndex((at, i) => i >= units && windowOf(at) === windowOf(instants[i - units]))
    if (i >= 0) throw new Error(`more than ${units} are admitted in a window of ${windowMs} ms`)
  }
}

/** Fails where an interval has more units than the burst and the refill. */
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
/** A window longer than every schedule, so that no charge lapses and units can be counted. */
const lasting = {
  limit: slidingLog({ limit: units, window: '1h', lease }),
  units,
  holds: inAnyWindow(units, 3_600_000),
  lasts: true,
}

test('two processes with leases spend at most the limit, and return the rest', async () => {
  await exploreLeases(
    {
      ...lasting,
      requests: [
        [1, 1, 1],
        [1, 1],
      ],
    },
    5000,
  )
})

test('leases hold the limit with replies in any order and time that passes at any moment', async () => {
  const late = { ...lasting, lateReplies: true }
  await exploreLeases({ ...late, requests: [[1, 1, 1]], passMs: TTL_MS, passes: 1, sweeps: true }, 5000)
  await exploreLeases({ ...late, requests: [[1], [1]] }, 500)
})

test('a refunded unit is spent again during its lease, and returns to the store after it', async () => {
  await exploreLeases(
    {
      ...lasting,
      requests: [[1, 1], []],
      refunds: true,
      passMs: TTL_MS,
      passes: 1,
    },
    2000,
  )
})

test('no unit that was leased before a reset is spent or refunded after it', async () => {
  await exploreLeases({ ...lasting, requests: [[1, 1, 1], []], resets: true, lateReplies: true }, 10_000)
})

test('a process that dies and calls that are lost strand units, and admit none', async () => {
  await exploreLeases({ ...lasting, requests: [[1, 1], [1]], dies: true, faults: 1 }, 10_000)
})

/** Less than the ttl of a lease, so that units are spent later than they are counted. */
const passing = { requests: [[1, 1, few]], passMs: 200, passes: 3 }

test.each([
  ['slidingLog', slidingLog({ limit: few, window: 600, lease }), inAnyWindow(few, 600)],
  ['gcra', gcra({ limit: few, window: 1800, lease }), asBucket(few, 300)],
  ['fixedWindow', fixedWindow({ limit: few, window: 600, lease }), byClock(few, 600)],
] as const)('the limit holds at the instants at which leased units are spent: %s', async (_, limit, holds) => {
  await exploreLeases({ ...passing, limit, units: few, holds }, 100)
})

test('the explorer detects a log that counts leased units for its window only', async () => {
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
