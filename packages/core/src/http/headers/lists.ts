import { arePermits } from '../../store/units.js'
import type { LimitReport } from '../../verdict/limit-report.js'
import type { Verdict } from '../../verdict/verdict.js'
import { sentWaitMs } from './sent-wait.js'
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

/** Names consist of letters, digits, `_` and `-` by construction, so their serialization only needs quotes. */
function policyMember(limit: LimitReport): string {
  const { q, w } = quota(limit)
  // The draft has one unit for bytes.
  const name = limit.unit === 'response-bytes' ? 'content-bytes' : limit.unit
  const unit = name === 'requests' ? '' : `;qu="${name}"`
  return `"${limit.name}";q=${q}${unit}${w === undefined ? '' : `;w=${w}`}`
}

const policies = oncePerPlan((limits) => limits.map(policyMember).join(', '))

/**
 * Both fields as Lists of Strings with parameters: drafts 8 and later, which differ in the meaning of `t`.
 * `timeOf` returns `t` in seconds; undefined if it is unknown. `waitMs`: the `Retry-After` of the binding limit.
 */
function listWriter(timeOf: (limit: LimitReport, waitMs: number | undefined) => number | undefined): HeaderWriter {
  return {
    fields: ['RateLimit-Policy', 'RateLimit'],
    write(verdict: Verdict, present, out) {
      const bound = binding(verdict)
      let states = ''
      for (const limit of verdict.limits) {
        const t = timeOf(limit, limit === bound ? sentWaitMs(verdict) : undefined)
        states += `${states && ', '}"${limit.name}";r=${integer(limit.remaining)}${t === undefined ? '' : `;t=${t}`}`
      }
      out.push(['RateLimit-Policy', appended(present.getResponseHeader('ratelimit-policy'), policies(verdict))])
      out.push(['RateLimit', appended(present.getResponseHeader('ratelimit'), states)])
    },
  }
}

/**
 * `t` is the effective window, until the limit is completely restored: a client that uses no more than `r` in it is not refused.
 * Where units return one by one, more can be used in it. The time of the next unit in a log is unknown without reading the log.
 */
export const draft11 = listWriter((limit, waitMs) => {
  if (waitMs !== undefined) return retryAfterSeconds(waitMs)
  return arePermits(limit.unit) ? undefined : seconds(limit.resetAfterMs)
})

/** `t` is the time until the quota resets. */
export const draft8 = listWriter((limit) => (arePermits(limit.unit) ? undefined : seconds(limit.resetAfterMs)))
