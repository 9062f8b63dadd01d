import { hasPermits } from '../../store/cell-kinds.js'
import type { LimitReport } from '../../verdict/limit-report.js'
import type { Verdict } from '../../verdict/verdict.js'
import {
  appended,
  binding,
  type HeaderWriter,
  integer,
  oncePerPlan,
  quota,
  retryAfterSeconds,
  seconds,
} from './writer.js'

/** Names are of letters, digits, `_` and `-` by construction, so quoting them is all their serialization takes. */
function policyMember(limit: LimitReport): string {
  const { q, w } = quota(limit)
  // Of bytes the draft knows one unit.
  const name = limit.unit === 'response-bytes' ? 'content-bytes' : limit.unit
  const unit = name === 'requests' ? '' : `;qu="${name}"`
  return `"${limit.name}";q=${q}${unit}${w === undefined ? '' : `;w=${w}`}`
}

const policies = oncePerPlan((limits) => limits.map(policyMember).join(', '))

/**
 * Both fields as Lists of Strings with parameters: drafts 8 and later, which differ in what `t` is.
 * `timeOf` is that, in seconds; undefined where it cannot be said. `waitMs`: `Retry-After` of the limit that it is of.
 */
function listWriter(timeOf: (limit: LimitReport, waitMs: number | undefined) => number | undefined): HeaderWriter {
  return {
    fields: ['RateLimit-Policy', 'RateLimit'],
    write(verdict: Verdict, present, out) {
      const bound = binding(verdict)
      let states = ''
      for (const limit of verdict.limits) {
        const t = timeOf(limit, limit === bound ? verdict.retryAfterMs : undefined)
        states += `${states && ', '}"${limit.name}";r=${integer(limit.remaining)}${t === undefined ? '' : `;t=${t}`}`
      }
      out.push(['RateLimit-Policy', appended(present.getResponseHeader('ratelimit-policy'), policies(verdict))])
      out.push(['RateLimit', appended(present.getResponseHeader('ratelimit'), states)])
    },
  }
}

/**
 * `t` is the effective window, in which a client that uses no more than `r` is not refused: until all is as good as new. Where units
 * come back one by one more can be used in it; when the next does is not known of a log without reading it.
 */
export const draft11 = listWriter((limit, waitMs) => {
  if (waitMs !== undefined) return retryAfterSeconds(waitMs)
  return hasPermits(limit.algorithm) ? undefined : seconds(limit.resetAfterMs)
})

/** `t` is the time until the quota resets. */
export const draft8 = listWriter((limit) => (hasPermits(limit.algorithm) ? undefined : seconds(limit.resetAfterMs)))
