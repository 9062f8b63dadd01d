import type { HttpContext } from '../../request/context.js'
import type { Plan } from '../../store/store.js'
import { arePermits } from '../../store/units.js'
import { type LimitReport, longestRefusal } from '../../verdict/limit-report.js'
import { DECISION, type Verdict } from '../../verdict/verdict.js'

export type HeaderField = readonly [name: string, value: string]

/** The header fields that the response already has. */
export type Present = Pick<HttpContext, 'getResponseHeader'>

/** One wire form of the quota: the fields that it owns, and their values for a verdict. */
export interface HeaderWriter {
  readonly fields: readonly string[]
  /** Adds fields that replace those of the response, merged with the earlier values. `maxRetryAfterMs`: for `Retry-After-Ms`. */
  write(verdict: Verdict, present: Present, out: HeaderField[], maxRetryAfterMs: number): void
}

/** Structured fields (RFC 9651 §3.3.1) allow no larger integer. */
const LARGEST_INTEGER = 999_999_999_999_999

/** A value for an Integer of a structured field. The given number is whole and not negative. */
export function integer(value: number): number {
  return Math.min(value, LARGEST_INTEGER)
}

/** Remaining time, in whole seconds, rounded up: never a second short. */
export function seconds(ms: number): number {
  return integer(Math.ceil(ms / 1000))
}

/** `Retry-After` is at least a second: 0 would invite a client to hammer. */
export function retryAfterSeconds(retryAfterMs: number): number {
  return Math.max(1, seconds(retryAfterMs))
}

/**
 * The quota of a limit in the terms of the fields: `q` units in `w` seconds. A bucket that holds more
 * than its limit shows its capacity and the time that restores it. `w` is undefined for requests in
 * flight, which time does not restore, and below a second.
 */
export function quota({ unit, limit, windowMs, capacity }: LimitReport): { q: number; w: number | undefined } {
  const isBucket = capacity > limit && limit > 0
  const q = isBucket ? capacity : limit
  const ms = isBucket ? Math.ceil((capacity * windowMs) / limit) : windowMs
  return { q: integer(q), w: arePermits(unit) || ms < 1000 ? undefined : seconds(ms) }
}

/** The limit with the longest wait of a refused request; undefined if no wait helps, or where only other waiters are ahead. */
export function binding({ allowed, retryAfterMs, limits }: Verdict): LimitReport | undefined {
  if (allowed || retryAfterMs === undefined) return undefined
  return limits[longestRefusal(limits)]
}

/**
 * The limit shown by forms with room for one: the one that refused, else that of requests with the fewest left. Where none counts
 * requests, the one with the smallest share left.
 */
export function tightest(verdict: Verdict): LimitReport {
  return tightestOf(verdict, verdict.limits)
}

/** Whether a limit is shown in place of the one that an earlier limiter of the route has shown: the tightest is. */
export function isTighter({ remaining }: LimitReport, allowed: boolean, shown: string | undefined): boolean {
  return !allowed || shown === undefined || !(Number(shown) <= remaining)
}

/** The same of some limits of a verdict. */
export function tightestOf(verdict: Verdict, limits: readonly LimitReport[]): LimitReport {
  const bound = binding(verdict)
  if (bound && limits.includes(bound)) return bound
  const refusing = limits.find((limit) => !limit.allowed)
  if (refusing) return refusing
  const ofRequests = limits.filter(({ unit }) => unit === 'requests')
  const share = ({ remaining, capacity }: LimitReport) =>
    ofRequests.length > 0 ? remaining : remaining / Math.max(1, capacity)
  // Equal ones by the fewest units, and then by the longest wait for all of them.
  const slack = (a: LimitReport, b: LimitReport) =>
    share(a) - share(b) || a.remaining - b.remaining || b.resetAfterMs - a.resetAfterMs
  return (ofRequests.length > 0 ? ofRequests : limits).reduce((least, limit) =>
    slack(limit, least) < 0 ? limit : least,
  )
}

/** A list field with `members` after those of another limiter on the route. */
export function appended(present: string | undefined, members: string): string {
  return present ? `${present}, ${members}` : members
}

/** A text about limits that does not depend on their remaining units. It is made once per plan, not per request. */
export function oncePerPlan(textOf: (limits: readonly LimitReport[]) => string): (verdict: Verdict) => string {
  const texts = new WeakMap<Plan, string>()
  return (verdict) => {
    const { plan } = verdict[DECISION].request
    let text = texts.get(plan)
    if (text === undefined) {
      text = textOf(verdict.limits)
      texts.set(plan, text)
    }
    return text
  }
}

/** `Retry-After`, unless the field already requests as long a wait: it is only ever raised. */
export function retryAfter(retryAfterMs: number, present: Present, out: HeaderField[]): void {
  const wait = retryAfterSeconds(retryAfterMs)
  const there = present.getResponseHeader('retry-after')
  if (there !== undefined && presentSeconds(there) >= wait) return
  out.push(['Retry-After', String(wait)])
}

/** RFC 9110 §10.2.3: seconds or a date. */
function presentSeconds(value: string): number {
  return /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1000
}
