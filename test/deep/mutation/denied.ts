import { concurrency, createLimiter } from '@sluice/core'
import type { Check } from './check.js'
import type { MutatedRedis } from './mutated-redis.js'

const NOW = 1_760_000_000_000

/** Runs while the server denies a command; resolves to the failure if that does not fail, or leaves a key. */
async function denied(redis: MutatedRedis, command: string, run: () => Promise<unknown>): Promise<string | undefined> {
  await redis.call('FLUSHALL')
  await redis.call('ACL', 'SETUSER', 'default', `-${command}`)
  try {
    await run()
    return `does without ${command}`
  } catch {
    const left = (await redis.call('KEYS', '*:denied:*')) as unknown[]
    return left.length === 0 ? undefined : `leaves ${left.join()}`
  } finally {
    await redis.call('ACL', 'SETUSER', 'default', `+${command}`)
  }
}

const INDEX = ['{s}:denied:entries', '{s}:denied:changes']
const SCRIPTS: Readonly<Record<string, { keys: readonly string[]; args: readonly (string | number)[] }>> = {
  index: { keys: INDEX, args: [NOW, 'i', 0, 'field', 'BLOCK', 60_000, 0, 0, 'why'] },
  'index-clear': { keys: INDEX, args: [NOW, 'i', 1] },
  refusals: { keys: ['{s}:denied:counts', '{s}:denied:sums'], args: [5, 3, 0, 60_000, 'ann', 3] },
}

/** A script that may not set an expiry fails before it writes, or leaves nothing: its keys would stay for ever. */
export const deniedChecks: readonly Check[] = [
  ...Object.entries(SCRIPTS).map(
    ([name, { keys, args }]): Check => ({
      name: `denied: ${name}, without PEXPIRE`,
      run: ({ redis }) => denied(redis, 'pexpire', () => redis.runNamed(name, keys, args)),
    }),
  ),
  {
    name: 'denied: permits, without PEXPIRE',
    run: ({ redis, store }) => {
      const limiter = createLimiter({ name: 'denied', store, limits: [concurrency({ limit: 3, ttl: '1m' })] })
      return denied(redis, 'pexpire', () => limiter.consume('k', { cost: 3 }))
    },
  },
]
