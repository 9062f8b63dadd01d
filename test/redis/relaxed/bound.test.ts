// Runs alone: it fakes timers.
import {
  createLimiter,
  fixedWindow,
  type Limit,
  type Limiter,
  memoryStore,
  redisStore,
  slidingWindow,
} from '@sluice/core'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { randomFrom } from '../../contract/policies.js'
import { Clock } from '../../contract/store-under-test.js'
import { byEffort } from '../../support/effort.js'
import { insist } from '../../support/outages.js'
import { redisForTests } from '../../support/redis-for-tests.js'

const RUNS = byEffort({ usual: 12, full: 400 })
const SEED = Number(process.env.SLUICE_SEED ?? Math.floor(Math.random() * 2 ** 32))
const PROCESSES = 8
const STEP_MS = 5
const WINDOW_MS = 1000

const { client } = await redisForTests()

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
})
afterEach(() => {
  vi.useRealTimers()
})

interface Admitted {
  readonly at: number
  readonly process: number
  readonly units: number
}

/** The units that a limit admits in an interval that begins and ends with a unit, both counted. */
type Exact = (from: number, to: number) => number

const always = () => Number.POSITIVE_INFINITY

interface LimitUnderTest {
  readonly limit: Limit<string>
  readonly exact: Exact
}

const LIMITS: Record<string, (limit: number) => LimitUnderTest> = {
  fixed: (limit) => ({
    limit: fixedWindow({ limit, window: WINDOW_MS }),
    exact: (from, to) => (Math.floor(from / WINDOW_MS) === Math.floor(to / WINDOW_MS) ? limit : always()),
  }),
  strict: (limit) => ({
    limit: slidingWindow({ limit, window: WINDOW_MS, segments: 20, edge: 'strict' }),
    exact: (from, to) => (to - from < WINDOW_MS ? limit : always()),
  }),
}

/** The most units that any process admits within `ms`. */
function maxWithin(admitted: readonly Admitted[], ms: number): number {
  let most = 0
  for (let process = 0; process < PROCESSES; process++) {
    const own = admitted.filter((each) => each.process === process)
    let sum = 0
    let first = 0
    for (const { at, units } of own) {
      sum += units
      for (; (own[first] as Admitted).at <= at - ms; first++) sum -= (own[first] as Admitted).units
      most = Math.max(most, sum)
    }
  }
  return most
}

/** The largest number of units admitted in an interval beyond the limit. */
function largestExcess(admitted: readonly Admitted[], exact: Exact): number {
  let largest = 0
  admitted.forEach(({ at: from }, i) => {
    let sum = 0
    for (let j = i; j < admitted.length; j++) {
      const { at, units } = admitted[j] as Admitted
      sum += units
      const most = exact(from, at)
      if (most === Number.POSITIVE_INFINITY) break
      largest = Math.max(largest, sum - most)
    }
  })
  return largest
}

for (const [name, make] of Object.entries(LIMITS)) {
  test(`${name}: ${PROCESSES} processes exceed a relaxed limit by at most what all but one admit before an exchange`, async () => {
    let exceeded = 0
    for (let run = 0; run < RUNS / Object.keys(LIMITS).length; run++) {
      const random = randomFrom(SEED + run)
      const clock = new Clock()
      // In turn, as processes seldom exceed a limit of 3.
      const units = [40, 300, 3][run % 3] as number
      const syncMs = [20, 50, 100][random(3)] as number
      const { limit, exact } = make(units)
      const policy = `bound-${name}-${SEED}-${run}`
      const stores = Array.from({ length: PROCESSES }, () =>
        insist(redisStore(client, { clock: clock.read, timeout: 5000 })),
      )
      const limiters = stores.map((store) =>
        createLimiter({ name: policy, store, limits: [limit], consistency: { syncEvery: syncMs } }),
      )
      const admitted: Admitted[] = []
      const pass = async (limiter: Limiter) => {
        // Its reply comes after those to everything sent before it.
        await limiter.peek('another')
      }
      let latestMs = 0
      let unexchangedMs = 0
      const busy = 1 + random(4)
      for (let step = 0; step < (2.5 * WINDOW_MS) / STEP_MS; step++) {
        clock.now += STEP_MS
        vi.advanceTimersByTime(STEP_MS)
        unexchangedMs += STEP_MS
        if (random(3) === 0) {
          await Promise.all(limiters.map(pass))
          unexchangedMs = 0
        }
        latestMs = Math.max(latestMs, unexchangedMs)
        // With pauses, so that counts are dropped and begun again.
        if (step % 200 > 150) continue
        for (let process = 0; process < PROCESSES; process++) {
          if (random(busy) > 0) continue
          const cost = 1 + random(2)
          const { allowed } = await (limiters[process] as Limiter).consume('key', { cost })
          if (allowed) admitted.push({ at: clock.now, process, units: cost })
        }
      }
      // An exchange waits for a round trip that takes longer than the interval.
      const blindMs = 2 * Math.max(syncMs + STEP_MS, latestMs) + latestMs + STEP_MS
      const bound = (PROCESSES - 1) * Math.min(units, maxWithin(admitted, blindMs))
      const excess = largestExcess(admitted, exact)
      if (excess > 0) exceeded++
      expect(excess, `seed ${SEED}, run ${run}: limit ${units}, every ${syncMs} ms`).toBeLessThanOrEqual(bound)
      await Promise.all(stores.map((store) => store.close()))
    }
    // Otherwise the test would not reach the bound.
    expect(exceeded).toBeGreaterThan(0)
  })
}

for (const name of ['fixed', 'strict']) {
  test(`${name}: Redis finally counts exactly the units that all processes have admitted, each in its window`, async () => {
    for (let run = 0; run < RUNS / 5; run++) {
      const random = randomFrom(SEED + run)
      const clock = new Clock()
      const units = 30
      const limits = [(LIMITS[name] as (typeof LIMITS)[string])(units).limit]
      const policy = `whole-${name}-${SEED}-${run}`
      const consistency = { syncEvery: 50 }
      const make = () => insist(redisStore(client, { clock: clock.read, timeout: 5000 }))
      const stores = Array.from({ length: 3 }, make)
      const limiters = stores.map((store) => createLimiter({ name: policy, store, limits, consistency }))
      const inMemory = memoryStore({ clock: clock.read })
      // It counts refused units in full.
      const oracle = createLimiter({ name: policy, store: inMemory, limits, consistency, onDeny: 'charge' })
      for (let step = 0; step < 60; step++) {
        const ms = random(40)
        clock.now += ms
        vi.advanceTimersByTime(ms)
        const limiter = limiters[random(3)] as Limiter
        for (let n = random(5); n > 0; n--) {
          const { allowed } = await limiter.consume('key')
          if (allowed) await oracle.consume('key')
        }
      }
      await Promise.all(stores.map((store) => store.close()))
      const last = make()
      const exact = createLimiter({ name: policy, store: last, limits, consistency })
      for (let ms = 0; ms < 2 * WINDOW_MS; ms += 37) {
        clock.now += 37
        const [counted, expected] = [await exact.peek('key'), await oracle.peek('key')]
        const context = `seed ${SEED}, run ${run}, ${ms} ms later`
        expect({ left: counted.remaining, ms: counted.retryAfterMs }, context).toEqual({
          left: expected.remaining,
          ms: expected.retryAfterMs,
        })
      }
      await last.close()
    }
  })
}
