import { createLimiter, type Limit, slidingLog } from '@sluice/core'
import { algorithms } from '../support/algorithms.js'
import type { Check } from './checks.js'
import type { MutatedRedis } from './mutated-redis.js'

const WINDOW_MS = 60_000
const REQUESTS = 60

/** Commands that the scripts called since the last reset, by name. */
async function commandsSince(redis: MutatedRedis): Promise<Map<string, number>> {
  const text = String(await redis.call('INFO', 'commandstats'))
  return new Map([...text.matchAll(/cmdstat_(\w+):calls=(\d+)/g)].map(([, name = '', calls]) => [name, Number(calls)]))
}

const NOT_OURS = /^(eval|evalsha|info|config|flushall|script)/

interface Effort {
  readonly name: string
  readonly limits: readonly Limit<string>[]
  /** Between two requests. */
  readonly everyMs: number
  /** Most commands per admitted request in the long run. */
  readonly most: number
}

const EFFORTS: readonly Effort[] = [
  ...Object.entries(algorithms).map(([name, limit]): Effort => {
    const most = { slidingLog: 5.1, concurrency: 7 }[name] ?? 3
    return { name, limits: [limit(REQUESTS, WINDOW_MS)], everyMs: (1.3 * WINDOW_MS) / REQUESTS, most }
  }),
  {
    name: 'two logs in one',
    limits: [slidingLog({ limit: 5, window: 6000 }), slidingLog({ limit: 60, window: WINDOW_MS })],
    everyMs: 1500,
    most: 6.1,
  },
]

/** Decisions take no more commands than they need, however long a key is in use, and refusals write nothing. */
export const effortChecks: readonly Check[] = EFFORTS.map(({ name, limits, everyMs, most }) => ({
  name: `effort: ${name}`,
  run: async ({ redis, store, clock }) => {
    const limiter = createLimiter({ name: 'effort', store, limits })
    await redis.call('FLUSHALL')
    for (let i = 0; i < 4 * REQUESTS; i++) {
      // The first round is not the long run.
      if (i === REQUESTS) await redis.call('CONFIG', 'RESETSTAT')
      clock.now += everyMs
      const { allowed } = await limiter.consume('k')
      if (!allowed) return 'refused'
    }
    const commands = [...(await commandsSince(redis))].filter(([command]) => !NOT_OURS.test(command))
    const calls = commands.reduce((sum, [, calls]) => sum + calls, 0) / (3 * REQUESTS)
    if (calls > most + 0.05) return `${calls} commands per request, ${JSON.stringify(commands)}`

    await limiter.consume('full', { cost: limits.length > 1 ? 5 : REQUESTS })
    await redis.call('CONFIG', 'RESETSTAT')
    for (let i = 0; i < 5; i++) await limiter.consume('full')
    const writes = [...(await commandsSince(redis))].filter(([command]) =>
      /^(set|setrange|append|del|pexpire|z(add|rem).*)$/.test(command),
    )
    return writes.length > 0 ? `refusals write: ${JSON.stringify(writes)}` : undefined
  },
}))
