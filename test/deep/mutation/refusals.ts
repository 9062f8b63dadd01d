import {
  concurrency,
  fixedWindow,
  gcra,
  type Limit,
  memoryStore,
  type Store,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '@sluice/core'
import { createLimiter } from '../../contract/create-limiter.js'
import { randomFrom } from '../../contract/policies.js'
import type { Check } from './check.js'

/** Limits in the order in which the store reports them. */
const POLICIES: Record<string, readonly Limit<string>[]> = {
  logs: [slidingLog({ limit: 4, window: 700 }), slidingLog({ limit: 9, window: 5000 })],
  gcra: [gcra({ limit: 7, window: 5000, burst: 5 })],
  interval: [tokenBucket({ capacity: 5, refill: 2, every: 900, style: 'interval' })],
  fixed: [fixedWindow({ limit: 5, window: 3000 })],
  weighted: [slidingWindow({ limit: 40, window: 4000 })],
  up: [slidingWindow({ limit: 6, window: 4000, segments: 2, rounding: 'up' })],
  strict: [slidingWindow({ limit: 6, window: 4000, segments: 5, edge: 'strict' })],
  permits: [concurrency({ limit: 5, ttl: 2500 })],
  none: [
    slidingLog({ limit: 0, window: 3000 }),
    gcra({ limit: 0, window: 3000 }),
    fixedWindow({ limit: 0, window: 3000 }),
  ],
  together: [
    slidingLog({ limit: 6, window: 4000 }),
    gcra({ limit: 9, window: 4000 }),
    concurrency({ limit: 9, ttl: 800 }),
  ],
}

/** In place of the receipt, a refusal reports the ms until more units are left, for the deny cache. */
export const refusalChecks: readonly Check[] = Object.entries(POLICIES).map(([name, limits]) => ({
  name: `refusals: ${name} say when there is more`,
  run: async ({ redis, store, clock }) => {
    await redis.call('FLUSHALL')
    const random = randomFrom(name.length)
    let reported: readonly number[] = []
    const watched: Pick<Store, 'decide'> = {
      async decide(ask) {
        const answer = await store.decide(ask)
        reported = answer.values.slice(answer.offset, answer.offset + 4 * limits.length)
        return answer
      },
    }
    const limiter = createLimiter({ name: 'refusals', store: watched as Store, limits })
    const oracle = createLimiter({ name: 'refusals', store: memoryStore({ clock: clock.read }), limits })
    for (let step = 0; step < 150; step++) {
      clock.now += random(3) === 0 ? random(900) : random(60)
      const cost = 1 + random(step % 7 === 0 ? 40 : 4)
      const expected = await oracle.consume('k', { cost })
      await limiter.consume('k', { cost })
      if (expected.allowed) continue
      for (const [i, { algorithm, allowed, remaining }] of expected.limits.entries()) {
        // A missing permit may be released at any moment.
        if (algorithm === 'concurrency' && !allowed) continue
        const next = (await oracle.peek('k', { cost: remaining + 1 })).limits[i]?.retryAfterMs ?? -1
        if (reported[4 * i + 3] !== next) return `step ${step}: ${reported[4 * i + 3]} instead of ${next}`
      }
    }
    return undefined
  },
}))
