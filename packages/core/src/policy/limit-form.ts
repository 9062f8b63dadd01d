/**
 * The forms of limits: `limit` and `window`, `limits`, `tiers` and `tier`, or `policies`; one of them, and nothing of another.
 *
 * The types of options leave all of these optional, since plugins extend them and defaults may be partial. Functions that need
 * limits require this type beside the options. A function of your own that passes options on does the same: `(options:
 * ExpressRateLimitOptions & LimitForm) => rateLimit(options)`.
 */
// The usual form is the last, also by its name, as TypeScript 7 sorts them: of options without limits, compilers report what they
// lack of the last one.
export type LimitForm = LimitsOfPolicies | LimitsByTier | SeveralLimits | SingleLimit

// Interfaces, as compilers name them in their errors, where they would write out other types.

/** One limit. */
interface SingleLimit {
  readonly limit: unknown
  readonly window: unknown
  readonly limits?: undefined
  readonly tiers?: undefined
  readonly tier?: undefined
  readonly policies?: undefined
}

interface SeveralLimits {
  readonly limits: unknown
  readonly limit?: undefined
  readonly window?: undefined
  readonly tiers?: undefined
  readonly tier?: undefined
  readonly policies?: undefined
}

interface LimitsByTier {
  readonly tiers: unknown
  readonly tier: unknown
  readonly limit?: undefined
  readonly window?: undefined
  readonly limits?: undefined
  readonly policies?: undefined
}

interface LimitsOfPolicies {
  readonly policies: unknown
  readonly limit?: undefined
  readonly window?: undefined
  readonly limits?: undefined
  readonly tiers?: undefined
  readonly tier?: undefined
}
