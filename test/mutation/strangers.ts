import { createLimiter } from '@sluice/core'
import { algorithms } from '../support/algorithms.js'
import type { Check } from './checks.js'

/** What someone else wrote under a key is read as nothing, and written over. */
export const strangerChecks: readonly Check[] = Object.entries(algorithms)
  .filter(([name]) => name !== 'concurrency')
  .map(([name, limit]) => ({
    name: `strangers: text under the key of ${name}`,
    run: async ({ redis, store, clock }) => {
      const limiter = createLimiter({ name: 'strange', store, limits: [limit(6, 60_000)] })
      await redis.call('FLUSHALL')
      await limiter.consume('k', { cost: 4 })
      const keys = (await redis.call('KEYS', '*')) as string[]
      const own = await Promise.all(keys.map((key) => redis.call('STRLEN', key)))
      for (const length of [1, Math.min(...own.map(Number)) - 1]) {
        for (const key of keys) await redis.call('SET', key, 'x'.repeat(length))
        const looked = await limiter.peek('k', { cost: 3 })
        if (looked.remaining !== 6 || !looked.allowed) return `${length} bytes: ${JSON.stringify(looked)}`
        await limiter.consume('k', { cost: 2 })
        const verdict = await limiter.consume('k', { cost: 3 })
        if (verdict.remaining !== 1) return `after ${length} bytes: ${JSON.stringify(verdict)}`
        clock.now += 1
      }
      return undefined
    },
  }))
