import type { BasicGuard } from '../../http/guard/guard.js'
import type { GuardFeature } from '../../http/guard/guard-feature.js'
import { invalidPolicy, show } from '../../util/errors.js'
import { knownOptions } from '../../util/validate.js'
import { RATE_LIMIT_OPTIONS, type RateLimitOptions } from '../options.js'

/** Policies that are data: `policies`. They have a guard of their own, `policies-guard.ts`. */
export const documents: GuardFeature = { guardOptions: ['policies'] }

/** Policies bring their guard: most limiters have none, and bundles of these do without it. */
export function broughtGuard<Request>(options: RateLimitOptions<Request>): BasicGuard<Request> {
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
  return policies.makeGuard(options as never) as BasicGuard<Request>
}
