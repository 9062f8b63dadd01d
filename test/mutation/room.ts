import { createLimiter, slidingLog } from '@sluice/core'
import type { Check } from './checks.js'

/** State takes no more room than it has to. */
export const roomChecks: readonly Check[] = [
  {
    name: 'room: a log holds some more than twice what counts, however long it is in use',
    run: async ({ redis, store, clock }) => {
      const limiter = createLimiter({ name: 'room', store, limits: [slidingLog({ limit: 20, window: 1000 })] })
      await redis.call('FLUSHALL')
      // At once, so that it all lapses at once, too.
      await limiter.consume('k', { cost: 20 })
      clock.now += 1000
      for (let i = 0; i < 120; i++) {
        clock.now += 60
        await limiter.consume('k')
        const bytes = Number(await redis.call('STRLEN', 'sluice:{k}:room:log.20.1000'))
        if (bytes > 6 * (2 * 20 + 1) + 40) return `${bytes} bytes after ${i + 1} requests`
      }
      return undefined
    },
  },
]
