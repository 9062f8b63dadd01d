import type { LimitReport } from '../../verdict/verdict.js'
import { appended, type HeaderWriter, integer, oncePerPlan, type Present, quota, seconds, tightest } from './writer.js'

/** What `Reset` counts: seconds or milliseconds since 1970, or seconds from now. */
export type LegacyReset = 'epoch-seconds' | 'epoch-ms' | 'delta-seconds'

/** Quotas as bare numbers, `100;w=60`. */
const policies = oncePerPlan((limits) => {
  const members = limits.map((limit) => {
    const { q, w } = quota(limit)
    return w === undefined ? `${q}` : `${q};w=${w}`
  })
  return members.join(', ')
})

/** These forms have room for one limit, so of several limiters on a route the tightest is shown. */
function isTighter(limit: LimitReport, allowed: boolean, shown: string | undefined): boolean {
  return !allowed || shown === undefined || !(Number(shown) <= limit.remaining)
}

/** One `RateLimit` Dictionary. */
export const draft7: HeaderWriter = {
  fields: ['RateLimit-Policy', 'RateLimit'],
  write(verdict, present, out) {
    out.push(['RateLimit-Policy', appended(present.getResponseHeader('ratelimit-policy'), policies(verdict))])
    const limit = tightest(verdict)
    const [, shown] = /\bremaining=(\d+)/.exec(present.getResponseHeader('ratelimit') ?? '') ?? []
    if (!isTighter(limit, verdict.allowed, shown)) return
    const reset = seconds(limit.resetAfterMs)
    out.push(['RateLimit', `limit=${quota(limit).q}, remaining=${integer(limit.remaining)}, reset=${reset}`])
  },
}

/** Three fields. */
export const draft6: HeaderWriter = {
  fields: ['RateLimit-Policy', 'RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'],
  write(verdict, present, out) {
    out.push(['RateLimit-Policy', appended(present.getResponseHeader('ratelimit-policy'), policies(verdict))])
    const limit = tightest(verdict)
    if (!isTighter(limit, verdict.allowed, present.getResponseHeader('ratelimit-remaining'))) return
    out.push(['RateLimit-Limit', String(quota(limit).q)])
    out.push(['RateLimit-Remaining', String(integer(limit.remaining))])
    out.push(['RateLimit-Reset', String(seconds(limit.resetAfterMs))])
  },
}

const RESET: Record<LegacyReset, (resetAfterMs: number) => number> = {
  'epoch-seconds': (ms) => Math.ceil((Date.now() + ms) / 1000),
  'epoch-ms': (ms) => Math.ceil(Date.now() + ms),
  'delta-seconds': seconds,
}

export const LEGACY_RESETS = Object.keys(RESET) as LegacyReset[]

/** Three fields from before any draft, as many services still send them. */
export function legacy(reset: LegacyReset): HeaderWriter {
  return {
    fields: ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'],
    write(verdict, present: Present, out) {
      const limit = tightest(verdict)
      if (!isTighter(limit, verdict.allowed, present.getResponseHeader('x-ratelimit-remaining'))) return
      out.push(['X-RateLimit-Limit', String(quota(limit).q)])
      out.push(['X-RateLimit-Remaining', String(integer(limit.remaining))])
      out.push(['X-RateLimit-Reset', String(RESET[reset](limit.resetAfterMs))])
    },
  }
}
