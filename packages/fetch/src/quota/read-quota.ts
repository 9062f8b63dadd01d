import { DIALECTS } from './dialects.js'
import { headersOf } from './headers.js'
import { boundedMs, dateIn, msUntil, numberIn } from './numbers.js'
import type { Quota, QuotaLimit, QuotaSource } from './quota-types.js'

/**
 * Reads the quotas that a response tells, in the dialects of `docs/calling-other-services.md`.
 *
 * Dates and instants count from the `Date` of the same response, so the clock of the client does not matter. Values that make
 * no sense are left out. Never throws, whatever the headers are.
 *
 * @example readQuota(await fetch('https://api.github.com/zen')).limits[0]?.remaining
 */
export function readQuota({ status, headers: given }: QuotaSource): Quota {
  const headers = headersOf(given)
  const now = dateIn(headers.get('date')) ?? Date.now()
  const limits = DIALECTS.flatMap((dialect) => dialect(headers, now)).map(consistent)
  const milliseconds = numberIn(headers.get('retry-after-ms'))
  const retryAfterMs = milliseconds === undefined ? msUntil(headers.get('retry-after'), now) : boundedMs(milliseconds)
  const isUsedUp = limits.some(({ remaining }) => remaining === 0)
  const isRefusal =
    status === 429 ||
    (status === 503 && retryAfterMs !== undefined) ||
    (status === 403 && (retryAfterMs !== undefined || isUsedUp))
  return { limits, retryAfterMs, isRefusal, holdMs: holdMs(limits, isRefusal ? retryAfterMs : undefined) }
}

/** A limit that says to have more left than it admits is taken at its smaller word. */
function consistent(limit: QuotaLimit): QuotaLimit {
  const { limit: most, remaining } = limit
  return most === undefined || remaining === undefined || remaining <= most ? limit : { ...limit, remaining: most }
}

/** `Retry-After` of a refusal takes precedence over resets, as the drafts of the IETF say. */
function holdMs(limits: readonly QuotaLimit[], retryAfterMs: number | undefined): number {
  if (retryAfterMs) return retryAfterMs
  return limits.reduce((longest, { remaining, resetAfterMs = 0, limit, isBucket }) => {
    if (remaining !== 0) return longest
    return Math.max(longest, isBucket ? Math.ceil(resetAfterMs / Math.max(1, limit ?? 1)) : resetAfterMs)
  }, 0)
}
