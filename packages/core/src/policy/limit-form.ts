/**
 * The forms of limits: `limit` and `window`, `limits`, `tiers` and `tier`, or `policies`; one of them, and nothing of another.
 *
 * The types of options leave all of these optional, since plugins extend them and defaults may be partial. Functions that need
 * limits require this type beside the options. A function of your own that passes options on does the same: `(options:
 * ExpressRateLimitOptions & LimitForm) => rateLimit(options)`.
 */
export type LimitForm = Only<'limit' | 'window'> | Only<'limits'> | Only<'tiers' | 'tier'> | Only<'policies'>

type LimitOption = 'limit' | 'window' | 'limits' | 'tiers' | 'tier' | 'policies'

type Only<Given extends LimitOption> = { readonly [Name in Given]: unknown } & {
  readonly [Name in Exclude<LimitOption, Given>]?: undefined
}
