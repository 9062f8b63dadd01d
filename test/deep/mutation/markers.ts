import { createLimiter, redisStore, type Store } from '@sluice/core'
import { insist } from '../../support/outages.js'
import type { Check, Venue } from './check.js'

/** Checks with a store that has seen no block, and therefore reads the marker first. */
async function withNewStore(
  { redis }: Venue,
  check: (store: Store) => Promise<string | undefined>,
): Promise<string | undefined> {
  const store = insist(redisStore(redis.client(), { timeout: 5000 }))
  try {
    return await check(store)
  } finally {
    redis.onRun = undefined
    await store.close()
  }
}

/** The marker that stands for all block keys. */
export const markerChecks: readonly Check[] = [
  {
    name: 'marker: a decision takes one script and two keys while no identity is blocked',
    run: (venue) =>
      withNewStore(venue, async (store) => {
        await venue.redis.call('FLUSHALL')
        const runs: number[] = []
        venue.redis.onRun = (keys) => runs.push(keys.length)
        await createLimiter({ name: 'marker', store, limit: 5, window: '1m' }).consume('k')
        return runs.join() === '2' ? undefined : `runs of ${runs.join(' and ')} keys`
      }),
  },
  {
    name: 'marker: the marker lives as long as the longest block, and takes effect at once',
    run: async (venue) => {
      await venue.redis.call('FLUSHALL')
      const blocking = createLimiter({ name: 'marker', store: venue.timed, limit: 5, window: '1m' })
      await blocking.block('long', { for: '1h' })
      await blocking.block('short', { for: '1m' })
      const left = Number(await venue.redis.call('PTTL', 'sluice:v1:blocked'))
      if (left < 3_500_000 || left > 3_600_000) return `the marker stays ${left} ms`
      return withNewStore(venue, async (store) => {
        const limiter = createLimiter({ name: 'marker', store, limit: 5, window: '1m' })
        const { reason } = await limiter.consume('long')
        return reason === 'blocked' ? undefined : `${reason}`
      })
    },
  },
]
