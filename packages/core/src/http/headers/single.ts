import {
  appended,
  type HeaderWriter,
  integer,
  isTighter,
  oncePerPlan,
  type Present,
  quota,
  seconds,
  tightest,
} from './writer.js'

/** The meaning of `Reset`: seconds or milliseconds since 1970, or seconds from now. */
export type LegacyReset = 'epoch-seconds' | 'epoch-ms' | 'delta-seconds'

/** Quotas as bare numbers, `100;w=60`. */
const policies = oncePerPlan((limits) => {
  const members = limits.map((limit) => {
    const { q, w } = quota(limit)
    return w === undefined ? `${q}` : `${q};w=${w}`
  })
  return members.join(', ')
})

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

/** The names of the fields of the legacy form; `false` omits a field. */
export interface LegacyNames {
  /** @default 'X-RateLimit-Limit' */
  readonly limit?: string | false
  /** @default 'X-RateLimit-Remaining' */
  readonly remaining?: string | false
  /** @default 'X-RateLimit-Reset' */
  readonly reset?: string | false
}

/** Three fields from before the drafts, as many services still send them. */
export function legacy(reset: LegacyReset, names: LegacyNames = {}): HeaderWriter {
  const {
    limit: quotaName = 'X-RateLimit-Limit',
    remaining: remainingName = 'X-RateLimit-Remaining',
    reset: resetName = 'X-RateLimit-Reset',
  } = names
  return {
    fields: [quotaName, remainingName, resetName].filter((name) => name !== false),
    write(verdict, present: Present, out) {
      const limit = tightest(verdict)
      // Without the field it is unknown which limit was tighter: the last limiter wins.
      const shown = remainingName === false ? undefined : present.getResponseHeader(remainingName.toLowerCase())
      if (!isTighter(limit, verdict.allowed, shown)) return
      if (quotaName !== false) out.push([quotaName, String(quota(limit).q)])
      if (remainingName !== false) out.push([remainingName, String(integer(limit.remaining))])
      if (resetName !== false) out.push([resetName, String(RESET[reset](limit.resetAfterMs))])
    },
  }
}
