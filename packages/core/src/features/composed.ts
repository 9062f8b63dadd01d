// What users and our other packages call, with all features.
import { type BasicGuard, createGuardOf } from '../http/guard/guard.js'
import { makeLimiterOf } from '../limiter/limiter.js'
import type { LimitForm } from '../policy/limit-form.js'
import type { Limit } from '../policy/limits/limit.js'
import { Policy } from '../policy/policy.js'
import { type StateName, stateNamesIn } from '../policy/state-names.js'
import type { IdentityByKind } from '../store/identity.js'
import { ALL } from './all.js'
import { ALL_OF_REQUESTS } from './all-of-requests.js'
import { broughtGuard } from './documents/brought-guard.js'
import { guardOfDocuments, type Simulated } from './documents/policies-guard.js'
import type { Limiter } from './limiter.js'
import type { LimiterOptions, RateLimitOptions } from './options.js'
import type { PolicyOptions } from './policy-options.js'

/**
 * A limiter: one policy on one store.
 *
 * ```ts
 * const limiter = createLimiter({ name: 'mail', store, limit: 20, window: '1m' })
 * const verdict = await limiter.consume('user:42', { cost: 3 })
 * ```
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function createLimiter<Subject = string>(options: LimiterOptions<Subject> & LimitForm): Limiter<Subject> {
  return makeLimiter(options).limiter
}

/** The limiter, and its engine. */
export function makeLimiter<Subject = string>(options: LimiterOptions<Subject> & LimitForm) {
  const { limiter, engine } = makeLimiterOf(options, ALL)
  return { limiter: limiter as Limiter<Subject>, engine }
}

/**
 * Decides on requests of any framework. Returns a promise only where it has to wait. Throws or rejects with the error of a user
 * function or the store; nothing is charged then.
 */
export interface Guard<Request> extends BasicGuard<Request> {
  /** The guard's limiter: to peek, reset, block and unblock. */
  readonly limiter: Limiter<Request | string | IdentityByKind>
}

/**
 * Makes the guard behind a framework's `rateLimit`.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function createGuard<Request>(options: RateLimitOptions<Request>): Guard<Request> {
  const hasPolicies = options?.policies !== undefined
  return (hasPolicies ? broughtGuard(options) : createGuardOf(options, ALL_OF_REQUESTS)) as Guard<Request>
}

/**
 * The guard for policies that are data.
 *
 * @param simulated replaces parts, for requests of another time
 * @throws SluiceError `INVALID_POLICY`
 */
export function guardByPolicies<Request>(options: RateLimitOptions<Request>, simulated?: Simulated<Request>) {
  return guardOfDocuments(options, ALL_OF_REQUESTS, simulated)
}

/** @throws SluiceError `INVALID_POLICY` */
export function policyOf<Subject>(options: PolicyOptions<Subject>): Policy<Subject> {
  return new Policy(options, ALL.features)
}

/**
 * The names of the counts of limits that are decided together. Where both names stay the same, used units still count. For
 * limits that name their keys, and whose numbers are known.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function stateNamesOf(
  limits: readonly Limit[],
  consistency?: PolicyOptions<unknown>['consistency'],
): readonly StateName[] {
  return stateNamesIn(policyOf({ limits, ...(consistency && { consistency }) }))
}
