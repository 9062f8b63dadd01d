import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter, redisStore, slidingLog, tokenBucket, type Verdict } from '@sluice/core'
import { insist } from '../../support/outages.js'
import type { Check } from './check.js'

/** Cells of two kinds, so that the store composes their script of parts. */
const LIMITS = [
  slidingLog<string>({ limit: 1, window: '1h' }),
  tokenBucket<string>({ capacity: 9, refill: 1, every: '1h' }),
]

const wordOf = ({ allowed, reason }: Verdict) => (allowed ? 'admitted' : reason)

/** Decisions whose refusals are strikes. */
export const banChecks: readonly Check[] = [
  {
    name: 'bans: a refusal in a batch starts a ban, which refuses the next decisions of the batch and sets the marker',
    run: async ({ redis }) => {
      await redis.call('FLUSHALL')
      const store = insist(redisStore(redis.client(), { timeout: 5000 }))
      try {
        const ban = { by: 'key', after: 2, within: '1h', for: ['2h'] } as const
        const limiter = createLimiter<string>({ name: 'bans', store, limits: LIMITS, ban })
        const plain = createLimiter<string>({ name: 'plain', store, limits: LIMITS })
        // First a script that cannot count strikes decides; for a second after it, one that counts them at once.
        for (const [first, second] of [
          ['a', 'b'],
          ['d', 'e'],
        ] as const) {
          const verdicts = await Promise.all([
            ...[first, second, first, first, first, second].map((key) => limiter.consume(key)),
            ...[first, second, first].map((key, i) => plain.consume(key, { cost: 1 + i })),
          ])
          const outcomes = verdicts.map(wordOf).join()
          if (outcomes !== 'admitted,admitted,limited,banned,banned,limited,admitted,impossible,impossible')
            return outcomes
        }
        if ((await redis.call('EXISTS', 'sluice:v1:blocked')) !== 1) return 'there is no marker'
        // The marker lives as long as the longest block, in any order of blocks.
        for (const [blockedMs, staysMs] of [
          [0, 7_200_000],
          [60_000, 7_200_000],
          [10_800_000, 10_800_000],
        ] as const) {
          await redis.call('FLUSHALL')
          if (blockedMs > 0) await limiter.block('other', { for: blockedMs })
          await limiter.strike('c', { weight: 2 })
          const left = Number(await redis.call('PTTL', 'sluice:v1:blocked'))
          if (left <= staysMs - 60_000 || left > staysMs) return `the marker stays ${left} ms, not ${staysMs}`
        }
        return undefined
      } finally {
        await store.close()
      }
    },
  },
  {
    name: 'bans: charged refusals start a ban, and all bans after the last rung repeat it',
    run: async ({ redis }) => {
      await redis.call('FLUSHALL')
      const store = insist(redisStore(redis.client(), { timeout: 5000 }))
      try {
        const ban = { by: 'key', after: 1, within: '1h', for: ['100ms', '150ms'] } as const
        const limiter = createLimiter<string>({ name: 'bans', store, limits: LIMITS, ban, onDeny: 'charge' })
        const [first, ...later] = await Promise.all(['a', 'a', 'a'].map((key) => limiter.consume(key)))
        for (const waitMs of [120, 170]) {
          await sleep(waitMs)
          later.push(await limiter.consume('a'))
        }
        const rungs = later.map(({ ban }) => ban?.rung).join()
        return first?.allowed && rungs === '1,1,2,2' ? undefined : `of rungs ${rungs}`
      } finally {
        await store.close()
      }
    },
  },
]
