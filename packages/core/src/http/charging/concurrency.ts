import { type ConcurrencyOptions, permitLimit } from '../../policy/limits/concurrency.js'
import type { Limit } from '../../policy/limits/limit.js'
import { holdPermits } from './permits.js'

/**
 * Requests in flight. A permit is taken when a request starts and released when its handler is done; one whose
 * holder died is free `ttl` later, by the store's clock.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function concurrency<Subject>(options: ConcurrencyOptions<Subject>): Limit<Subject> {
  return permitLimit(options, holdPermits)
}
