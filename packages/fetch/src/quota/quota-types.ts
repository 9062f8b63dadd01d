import type { HeadersLike } from './headers.js'

/** One limit of a service, as a response tells it. Whole numbers of 0 or more; undefined: not told. */
export interface QuotaLimit {
  /** As the service names it, such as `core` or `input-tokens`; `default` if it has no name. */
  readonly name: string
  /** What it counts: `requests`, `tokens`, `content-bytes` or another word of the service. */
  readonly unit: string
  /** Units per window. */
  readonly limit: number | undefined
  /** Units left, at most `limit`. */
  readonly remaining: number | undefined
  /** Milliseconds from the response until the units are back, up to 366 days. */
  readonly resetAfterMs: number | undefined
  /** The length of the window in ms. */
  readonly windowMs: number | undefined
  /** Whether units come back one by one until `resetAfterMs`, as in a bucket, and not all of them then. */
  readonly isBucket: boolean
}

/** What a response says about the quotas of its service. */
export interface Quota {
  readonly limits: readonly QuotaLimit[]
  /** Milliseconds after which the service wants to be asked again, by `retry-after-ms` or `Retry-After`: up to 366 days. */
  readonly retryAfterMs: number | undefined
  /**
   * Whether the response refuses its request because of a rate limit: a 429, a 503 with `Retry-After`, or a 403 with
   * `Retry-After` or with nothing left, as of GitHub.
   */
  readonly isRefusal: boolean
  /** Milliseconds for which the service would refuse further requests. 0 if there are units left, or nothing is told. */
  readonly holdMs: number
}

/** A response of any client. */
export interface QuotaSource {
  readonly status: number
  readonly headers: HeadersLike
}
