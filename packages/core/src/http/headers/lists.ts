import type { LimitReport, Verdict } from '../../verdict.js'
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
  const unit = limit.unit === 'requests' ? '' : `;qu="${limit.unit}"`
  return `"${limit.name}";q=${q}${unit}${w === undefined ? '' : `;w=${w}`}`
}

const policies = oncePerPlan((limits) => limits.map(policyMember).join(', '))

/**
 * Both fields as Lists of Strings with parameters: drafts 8 and later, which differ in what `t` is.
 * `timeOf` is that, in seconds; undefined where it cannot be said.
 */
function listWriter(timeOf: (limit: LimitReport, isBinding: boolean) => number | undefined): HeaderWriter {
  return {
    fields: ['RateLimit-Policy', 'RateLimit'],
    write(verdict: Verdict, present, out) {
      const bound = binding(verdict)
      let states = ''
      for (const limit of verdict.limits) {
        const t = timeOf(limit, limit === bound)
        states += `${states && ', '}"${limit.name}";r=${integer(limit.remaining)}${t === undefined ? '' : `;t=${t}`}`
      }
      out.push(['RateLimit-Policy', appended(present.getResponseHeader('ratelimit-policy'), policies(verdict))])
      out.push(['RateLimit', appended(present.getResponseHeader('ratelimit'), states)])
    },
  }
}

/** `t` is the effective window: the time in which no more than `r` can be used. */
export const draft11 = listWriter((limit, isBinding) => {
  if (isBinding) return retryAfterSeconds(limit.retryAfterMs as number)
  return limit.algorithm === 'concurrency' ? undefined : seconds(limit.resetAfterMs)
})

/** `t` is the time until the quota resets. */
export const draft8 = listWriter((limit) =>
  limit.algorithm === 'concurrency' ? undefined : seconds(limit.resetAfterMs),
)
