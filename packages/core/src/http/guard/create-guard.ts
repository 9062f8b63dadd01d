import type { Limiter } from '../../limiter/limiter.js'
import type { HttpContext } from '../../request/context.js'
import type { IdentityByKind } from '../../store/identity.js'
import { passThroughGuard } from './guard.js'
import type { RateLimitOptions } from './options.js'
import type { Outcome } from './outcome.js'
import { guardParts } from './parts.js'
import { guardByPolicies } from './policies-guard.js'

/**
 * Decides on requests of any framework. Returns a promise only where it has to wait. Throws or rejects with the error of a user
 * function or the store; nothing is charged then.
 */
export interface Guard<Request> {
  (context: HttpContext<Request>): Outcome | Promise<Outcome>
  /** The guard's limiter: to peek, reset, block and unblock. */
  readonly limiter: Limiter<Request | string | IdentityByKind>
  /** The property that holds verdicts: the option `requestProperty`. */
  readonly requestProperty: string
  /** Whether its verdicts take permits of `concurrency` limits, which are held until the handler is done. */
  readonly holdsPermits: boolean
}

/**
 * Makes the guard behind a framework's `rateLimit`.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function createGuard<Request>(options: RateLimitOptions<Request>): Guard<Request> {
  if (options?.policies !== undefined) return guardByPolicies(options) as Guard<Request>
  const parts = guardParts(options)
  return Object.assign((context: HttpContext<Request>) => passThroughGuard(parts, context), {
    limiter: parts.limiter as Limiter<Request | string | IdentityByKind>,
    requestProperty: parts.requestProperty,
    holdsPermits: parts.permits !== undefined,
  })
}
