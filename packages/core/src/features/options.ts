// The options of limiters, with those of all features.
import { BASIC_RATE_LIMIT_OPTIONS, type BasicRateLimitOptions } from '../http/guard/options.js'
import type { BASIC_LIMITER_OPTIONS, BasicLimiterOptions } from '../limiter/options.js'
import type { OtherNames } from '../util/option-hints.js'
import type { ResponseBytesOptions } from './bodies/response-bytes.js'
import type { PolicySource } from './documents/policy-source.js'
import { FEATURE_OF } from './lean/lean-feature.js'
import type { ListOptions } from './lists/options.js'
import type { ChargingOptions } from './outcomes/charging.js'
import type { AddedPolicyOptions } from './policy-options.js'

/** Those that features add to limiters, and to limiters of requests. */
type AddedOption = keyof AddedPolicyOptions<never> | keyof ListOptions<never>
type AddedRequestOption = AddedOption | keyof ChargingOptions<never> | keyof ResponseBytesOptions

export interface LimiterOptions<Subject>
  extends BasicLimiterOptions<Subject>,
    AddedPolicyOptions<Subject>,
    ListOptions<Subject>,
    OtherNames<(typeof BASIC_LIMITER_OPTIONS)[number] | AddedOption> {}

export const RATE_LIMIT_OPTIONS = [
  ...BASIC_RATE_LIMIT_OPTIONS,
  ...(Object.keys(FEATURE_OF satisfies Readonly<Record<AddedRequestOption, string>>) as AddedRequestOption[]),
  'policies',
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
