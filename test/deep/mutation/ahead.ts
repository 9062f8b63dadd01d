import { gcra } from '@sluice/core'
import { createLimiter } from '../../contract/create-limiter.js'
import type { Check, Venue } from './check.js'

/** The additional life of states in a store with a clock other than that of Redis, and of keys in use. */
const SLACK_MS = 3_600_000
const LINGER_MS = 10_000
/** More than passes between an execution and the reading of a key's remaining life. */
const PASSED_MS = 500

/** A state that is ahead of a clock that stepped back lives until its debt is paid off, by that clock. */
async function livesUntilPaidOff({ redis, store, clock }: Venue): Promise<string | undefined> {
  await redis.call('FLUSHALL')
  const limiter = createLimiter({ name: 'ahead', store, limits: [gcra<string>({ limit: 10, window: '10s' })] })
  await limiter.consume('k')
  clock.now -= 2000
  await limiter.consume('k')
  const [key] = (await redis.call('KEYS', '*:ahead:bucket.*')) as [string]
  const leftMs = Number(await redis.call('PTTL', key))
  const neededMs = 2000 + 2000
  return leftMs > SLACK_MS + LINGER_MS + neededMs - PASSED_MS ? undefined : `it lives ${leftMs} ms`
}

export const aheadChecks: readonly Check[] = [
  { name: 'ahead: a debt lives until it is paid off', run: livesUntilPaidOff },
]
