/**
 * How limits are given: as `limit` and `window`, as `limits`, as `tiers` and `tier`, or as `policies`; one of them, and nothing
 * of another.
 *
 * The types of options leave all of these optional, since plugins extend them and defaults may be partial. Functions that
 * cannot do without limits ask for this beside the options. A function of your own that passes options on does the same:
 * `(options: ExpressRateLimitOptions & LimitForm) => rateLimit(options)`.
 */
export type LimitForm =
  | {
      readonly limit: unknown
      readonly window: unknown
      readonly policies?: undefined
      readonly limits?: undefined
      readonly tiers?: undefined
      readonly tier?: undefined
    }
  | {
      readonly limits: unknown
      readonly policies?: undefined
      readonly limit?: undefined
      readonly window?: undefined
      readonly tiers?: undefined
      readonly tier?: undefined
    }
  | {
      readonly tiers: unknown
      readonly tier: unknown
      readonly policies?: undefined
      readonly limit?: undefined
      readonly window?: undefined
      readonly limits?: undefined
    }
  | {
      readonly policies: unknown
      readonly limit?: undefined
      readonly window?: undefined
      readonly limits?: undefined
      readonly tiers?: undefined
      readonly tier?: undefined
    }
