import type { Limiter } from '../../limiter/limiter.js'
import type { HttpContext } from '../../request/context.js'
import type { IdentityByKind } from '../../store/identity.js'
import { type Guard, passThroughGuard } from './guard.js'
import type { RateLimitOptions } from './options.js'
import { guardParts } from './parts.js'
import { guardByPolicies } from './policies-guard.js'

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
