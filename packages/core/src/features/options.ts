// The options of limiters, with those of all features.
import { BASIC_RATE_LIMIT_OPTIONS, type BasicRateLimitOptions } from '../http/guard/options.js'
import { BASIC_LIMITER_OPTIONS, type BasicLimiterOptions } from '../limiter/options.js'
import type { OtherNames } from '../util/option-hints.js'
import type { ResponseBytesOptions } from './bodies/response-bytes.js'
import type { PolicySource } from './documents/policy-source.js'
import type { ListOptions } from './lists/options.js'
import type { ChargingOptions } from './outcomes/charging.js'
import type { AddedPolicyOptions } from './policy-options.js'

const ADDED_POLICY_OPTIONS = ['sharedTurns', 'consistency', 'charges', 'ban'] as const
const LIST_OPTIONS = ['allow', 'deny'] as const

const LIMITER_OPTIONS = [...BASIC_LIMITER_OPTIONS, ...ADDED_POLICY_OPTIONS, ...LIST_OPTIONS] as const

export interface LimiterOptions<Subject>
  extends BasicLimiterOptions<Subject>,
    AddedPolicyOptions<Subject>,
    ListOptions<Subject>,
    OtherNames<(typeof LIMITER_OPTIONS)[number]> {}

export const RATE_LIMIT_OPTIONS = [
  ...BASIC_RATE_LIMIT_OPTIONS,
  ...ADDED_POLICY_OPTIONS,
  ...LIST_OPTIONS,
  'policies',
  'count',
  'body',
  'onExhausted',
] as const

/** The options of `rateLimit` in every framework. `Request` is the framework's object that its handlers get. */
export interface RateLimitOptions<Request>
  extends BasicRateLimitOptions<Request>,
    AddedPolicyOptions<Request>,
    ListOptions<Request>,
    ChargingOptions<Request>,
    ResponseBytesOptions,
    OtherNames<(typeof RATE_LIMIT_OPTIONS)[number]> {
  /**
   * Policies that are data, as `policies.from()` of `@sluice/policies` makes them, instead of limits in code.
   *
   * All that match a request are decided together, all or none. See docs/policies.md.
   * @default none
   */
  readonly policies?: PolicySource<Request>
}
