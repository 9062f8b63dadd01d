import { createLimiter } from '../../contract/create-limiter.js'
import { algorithms } from '../../support/algorithms.js'
import type { Check } from './check.js'
import type { MutatedRedis } from './mutated-redis.js'

type Put = (redis: MutatedRedis, key: string, length: number) => Promise<unknown>

const STRANGERS: Record<string, Put> = {
  'a byte': (redis, key) => redis.call('SET', key, 'x'),
  'text a byte short': (redis, key, length) => redis.call('SET', key, 'x'.repeat(Math.max(1, length - 1))),
  'a hash': (redis, key) => redis.call('HSET', key, 'some', 'one'),
}

/** A log has no fixed length, so a foreign value is recognised by its content. */
const NO_LOGS: Record<string, Put> = {
  'as much text': (redis, key, length) => redis.call('SET', key, 'x'.repeat(length)),
  'longer text': (redis, key, length) => redis.call('SET', key, 'Strangely enough, '.repeat(length)),
  'text that goes up': (redis, key, length) => redis.call('SET', key, 'abcdefghijkl'.repeat(length)),
  'text that goes down': (redis, key, length) => redis.call('SET', key, 'lkjihgfedcba'.repeat(length)),
  zeros: (redis, key, length) => redis.call('SETRANGE', key, length - 1, '\0'),
  'zeros, and some bits': (redis, key, length) => redis.call('SETBIT', key, 8 * length - 20, 1),
}

/** A foreign value under a key is read as no state, and overwritten. */
export const strangerChecks: readonly Check[] = Object.entries(algorithms).map(([name, limit]) => ({
  name: `strangers: under the key of ${name}`,
  run: async ({ redis, store, clock }) => {
    const limiter = createLimiter({ name: 'strange', store, limits: [limit(6, 60_000)] })
    for (const [what, put] of Object.entries(name === 'slidingLog' ? { ...STRANGERS, ...NO_LOGS } : STRANGERS)) {
      await redis.call('FLUSHALL')
      await limiter.consume('k', { cost: 4 })
      const [key] = (await redis.call('KEYS', '*')) as [string]
      const length = name === 'concurrency' ? 0 : Number(await redis.call('STRLEN', key))
      await redis.call('DEL', key)
      await put(redis, key, length)
      const looked = await limiter.peek('k', { cost: 3 })
      if (looked.remaining !== 6 || !looked.allowed) return `${what}: ${JSON.stringify(looked)}`
      await redis.call('DEL', key)
      await put(redis, key, length)
      await limiter.consume('k', { cost: 2 })
      const verdict = await limiter.consume('k', { cost: 3 })
      if (verdict.remaining !== 1) return `after ${what}: ${JSON.stringify(verdict)}`
      clock.now += 1
    }
    return undefined
  },
}))
