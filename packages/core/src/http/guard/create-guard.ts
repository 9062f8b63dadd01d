import type { Limiter } from '../../limiter/limiter.js'
import type { HttpContext } from '../../request/context.js'
import type { IdentityByKind } from '../../store/identity.js'
import { invalidPolicy, show } from '../../util/errors.js'
import { knownOptions } from '../../util/validate.js'
import { type Guard, passThroughGuard } from './guard.js'
import { RATE_LIMIT_OPTIONS, type RateLimitOptions } from './options.js'
import { guardParts } from './parts.js'

/**
 * Makes the guard behind a framework's `rateLimit`.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function createGuard<Request>(options: RateLimitOptions<Request>): Guard<Request> {
  if (options?.policies !== undefined) return guardOfPolicies(options)
  const parts = guardParts(options)
  return Object.assign((context: HttpContext<Request>) => passThroughGuard(parts, context), {
    limiter: parts.limiter as Limiter<Request | string | IdentityByKind>,
    requestProperty: parts.requestProperty,
    holdsPermits: parts.permits !== undefined,
    responders: parts.responders,
  })
}

/** Policies bring their guard: most limiters have none, and bundles of these do without it. */
function guardOfPolicies<Request>(options: RateLimitOptions<Request>): Guard<Request> {
  knownOptions('rateLimit', options, RATE_LIMIT_OPTIONS)
  const { policies, name = 'default' } = options
  if (typeof policies?.makeGuard !== 'function') {
    invalidPolicy(
      `policies ${show(name)}`,
      'policies',
      'what `await policies.from(…)` of @sluice/policies returns',
      policies,
    )
  }
  return policies.makeGuard(options as never) as Guard<Request>
}
