import { createLimiter, type Limiter, memoryStore, redisStore, slidingLog, type Verdict } from '@sluice/core'
import { describe, expect, test } from 'vitest'
import { randomFrom } from '../../contract/policies.js'
import { Clock, MIDNIGHT } from '../../contract/store-under-test.js'
import { byEffort } from '../../support/effort.js'
import { redisForTests } from '../../support/redis-for-tests.js'

/** Steps in all, spread evenly over the walks below; more for a longer run. */
const STEPS = Number(process.env.SLUICE_STEPS ?? byEffort({ usual: 2_000, full: 200_000 }))
const SEED = Number(process.env.SLUICE_SEED ?? Math.floor(Math.random() * 2 ** 32))

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

type Pair = readonly [limit: number, windowMs: number]
type Random = ReturnType<typeof randomFrom>

/** In Redis a log is a header with four entries, and a ring that is read sixteen entries at a time. */
const SIZES = [1, 2, 3, 4, 5, 8, 9, 16, 17, 60, 1000]
/** Four bytes distinguish the entries of a window of up to 2^32 ms. */
const WINDOWS_MS = [1000, 10_000, HOUR_MS, 2 ** 32 - 1, 2 ** 32, 2 ** 32 + 1, 60 * DAY_MS, 400 * DAY_MS]
/** The first instants of clocks: near 1970, near the overflow of four bytes, and a usual one. */
const STARTS = [7, 2 ** 32 - 5000, MIDNIGHT]

const KEYS = ['few', 'many', 'many', 'many']

const draw = randomFrom(SEED)
const oneOf = <T>(items: readonly T[], random: Random = draw): T => items[random(items.length)] as T
const anyPair = (): Pair => [oneOf(SIZES), oneOf(WINDOWS_MS)]

/** Every size and every window alone, and some together in one log. */
const LOGS: readonly (readonly Pair[])[] = [
  ...SIZES.map((size): Pair[] => [[size, oneOf(WINDOWS_MS)]]),
  ...WINDOWS_MS.map((windowMs): Pair[] => [[oneOf(SIZES), windowMs]]),
  ...Array.from({ length: 12 }, (_, i) => Array.from({ length: 2 + (i % 4) }, anyPair)),
]
const WALKS = LOGS.map((pairs, i) => ({
  i,
  pairs,
  title: pairs.map(([limit, windowMs]) => `${limit} in ${windowMs} ms`).join(', '),
}))

const { client } = await redisForTests()

/** An admitted request, and its verdict by each store. */
interface Admitted {
  readonly key: string
  readonly cost: number
  readonly verdicts: readonly Verdict[]
}

/** The ms to the next instant: mostly so few that the log is nearly full, at times until a promise or the ms before it. */
function gapOf(random: Random, pairs: readonly Pair[], last: Verdict | undefined): number {
  const [limit, windowMs] = oneOf(pairs, random)
  switch (random(12)) {
    case 0:
      return random(2 * windowMs)
    case 1:
      return random(windowMs)
    case 2:
      return Math.max(0, (last?.retryAfterMs ?? 0) - random(2))
    case 3:
      return Math.max(0, (last?.resetAfterMs ?? 0) - random(2))
    case 4:
    case 5:
      return random(3)
    default:
      return random(Math.ceil((4 * windowMs) / limit))
  }
}

/** The step back of the clock: of any length, or near the length at which a state from the future is discarded. */
function backOf(random: Random, pairs: readonly Pair[]): number {
  if (random(3) > 0) return random(2 * oneOf(pairs, random)[1])
  return Math.max(...pairs.map(([, windowMs]) => windowMs)) - 1 + random(3)
}

function costOf(random: Random, pairs: readonly Pair[]): number {
  const least = Math.min(...pairs.map(([limit]) => limit))
  switch (random(30)) {
    case 0:
      return random(least + 2)
    case 1:
      return least
    case 2:
    case 3:
      return random(4)
    default:
      return 1 + random(Math.ceil(least / 50))
  }
}

describe.each(['none', 'charge'] as const)('refusals charged: %s', (onDeny) => {
  test.each(WALKS)('$i: memory and Redis agree on a log of $title at every step', async ({ i, pairs }) => {
    const random = randomFrom(SEED + i)
    const clock = new Clock()
    clock.now = oneOf(STARTS, random)
    const limits = pairs.map(([limit, window]) => slidingLog<string>({ limit, window }))
    // With a deny cache, a cached refusal would precede the other requests of its instant, with an earlier state.
    const options = { timeout: 5000, denyCache: false }
    const stores = [memoryStore({ clock: clock.read }), redisStore(client, { clock: clock.read, ...options })]
    const limiters = stores.map((store) => createLimiter({ name: `log-${i}-${onDeny}`, store, limits, onDeny }))
    // Out of 160. A refund rewrites the log, so that a ring wraps only in long runs without refunds.
    const refunds = oneOf([0, 1, 20], random)
    let admitted: Admitted[] = []
    let last: Verdict | undefined

    /** The results of both stores, which must be equal; `about` is an earlier admission. */
    const both = async (ask: (limiter: Limiter, about: Verdict) => Promise<unknown>, about?: Admitted) => {
      const context = `seed ${SEED}, at ${clock.now}`
      const results = await Promise.all(limiters.map((limiter, n) => ask(limiter, about?.verdicts[n] as Verdict)))
      expect(JSON.stringify(results[1]), context).toBe(JSON.stringify(results[0]))
      return results
    }
    const step = async (): Promise<unknown> => {
      const key = oneOf(KEYS, random)
      const what = random(160)
      const cost = costOf(random, pairs)
      const one = admitted[random(admitted.length + 1)]
      if (one && what < refunds) return both((limiter, about) => limiter.refund(one.key, about), one)
      if (one && what < 2 * refunds && what < 24) {
        const actual = random(one.cost + 1)
        return both((limiter, about) => limiter.settle(about, actual), one)
      }
      if (what === 149 && random(4) === 0) return both((limiter) => limiter.reset(key))
      if (what >= 150) return both((limiter) => limiter.peek(key, { cost }))
      const verdicts = (await both((limiter) => limiter.consume(key, { cost }))) as Verdict[]
      last = verdicts[0]
      if (last?.allowed) admitted.push({ key, cost, verdicts })
      return last
    }

    /** A log that lapsed may be gone in memory, by a sweep in real time, and still be in Redis when its clock steps back. */
    const forgetLapsed = async () => {
      for (const key of new Set(KEYS)) {
        if ((await limiters[0]?.peek(key))?.resetAfterMs === 0) await both((limiter) => limiter.reset(key))
      }
    }

    for (let steps = 0; steps < STEPS / (2 * LOGS.length); ) {
      clock.now += gapOf(random, pairs, last)
      if (random(60) === 0) {
        await forgetLapsed()
        // In Redis, the key of a log after a refund ends after an hour.
        const maxBack = refunds > 0 ? HOUR_MS : clock.now
        clock.now = Math.max(0, clock.now - Math.min(maxBack, backOf(random, pairs)))
      }
      // The requests of one instant are sent to Redis in one batch.
      const together = 1 + random(4)
      await Promise.all(Array.from({ length: together }, step))
      steps += together
      admitted = admitted.slice(-30)
    }
    for (const store of stores) await store.close()
  })
})
