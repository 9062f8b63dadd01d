import { createLimiter, memoryStore } from '@sluice/core'
import { CONSOLE_LIMITER, identityText } from '@sluice/core/internal'
import { Problem } from '../problem.js'

/** The name of the limiter before the console, in metrics and events. */
export const OWN_LIMITER = CONSOLE_LIMITER
/** Requests of one client in any minute. */
const REQUESTS_A_MINUTE = 600
const MAX_ADDRESSES = 10_000

/** Refuses clients that ask too often, as limiters by address count them: to guess a credential, or to keep Redis busy. @throws Problem */
export function makeOwnLimiter(): (ip: string | undefined) => Promise<void> {
  const limiter = createLimiter({
    name: OWN_LIMITER,
    store: memoryStore({ maxKeys: MAX_ADDRESSES }),
    limit: REQUESTS_A_MINUTE,
    window: '1m',
  })
  return async (ip = 'unknown') => {
    const { allowed, retryAfterMs = 0 } = await limiter.consume(clientOf(ip))
    if (allowed) return
    throw new Problem(429, `the console serves ${REQUESTS_A_MINUTE} requests a minute of one client`, { retryAfterMs })
  }
}

/** IPv6 by /64, mapped addresses as IPv4. */
function clientOf(ip: string): string {
  try {
    return identityText('console', { ip })
  } catch {
    // No address, as of a Unix socket.
    return ip
  }
}
