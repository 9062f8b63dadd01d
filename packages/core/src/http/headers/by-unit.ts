import { sentWaitMs } from './sent-wait.js'
import { type HeaderWriter, integer, isTighter, type Present, quota, retryAfterSeconds, tightestOf } from './writer.js'

/** The units that these forms have fields for. */
const UNITS = ['requests', 'tokens'] as const
const FIELDS = ['limit', 'remaining', 'reset'] as const

type Unit = (typeof UNITS)[number]
type Field = (typeof FIELDS)[number]

/**
 * Three fields for requests and three for tokens, as services of language models send them. Where several limits count a unit, the
 * tightest is shown, also over several limiters on a route. On a refusal, `Retry-After-Ms` has the wait in ms.
 */
export function byUnit(
  nameOf: (unit: Unit, field: Field) => string,
  resetOf: (resetMs: number) => string,
): HeaderWriter {
  return {
    fields: UNITS.flatMap((unit) => FIELDS.map((field) => nameOf(unit, field))),
    write(verdict, present, out, maxRetryAfterMs) {
      for (const unit of UNITS) {
        const limits = verdict.limits.filter((limit) => limit.unit === unit)
        if (limits.length === 0) continue
        const limit = tightestOf(verdict, limits)
        if (!isTighter(limit, limit.allowed, present.getResponseHeader(nameOf(unit, 'remaining')))) continue
        const values = {
          limit: quota(limit).q,
          remaining: integer(limit.remaining),
          reset: resetOf(limit.resetAfterMs),
        }
        for (const field of FIELDS) out.push([nameOf(unit, field), String(values[field])])
      }
      const waitMs = verdict.allowed ? undefined : sentWaitMs(verdict)
      if (waitMs !== undefined) pushRetryAfterMs(Math.max(1, Math.min(waitMs, maxRetryAfterMs)), present, out)
    },
  }
}

/** Only ever raised, as `Retry-After`. */
function pushRetryAfterMs(ms: number, present: Present, out: (readonly [string, string])[]): void {
  const there = Number(present.getResponseHeader('retry-after-ms') ?? 0)
  // Another limiter may have asked for a longer wait, in seconds alone.
  const seconds = Number(present.getResponseHeader('retry-after') ?? 0)
  const other = seconds > retryAfterSeconds(ms) ? seconds * 1000 : 0
  if (there < Math.max(ms, other)) out.push(['Retry-After-Ms', String(Math.max(ms, other))])
}

/** A duration such as `6m0s`, `1.5s` or `20ms`. */
export function shortDuration(ms: number): string {
  if (ms < 1000) return `${ms}ms`
  const [hours, minutes, seconds] = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60, (ms % 60_000) / 1000]
  return `${hours > 0 ? `${hours}h` : ''}${ms >= 60_000 ? `${minutes}m` : ''}${seconds}s`
}

/** The end of a time from now, in RFC 3339. */
export function instant(ms: number): string {
  return new Date(Math.ceil((Date.now() + ms) / 1000) * 1000).toISOString().replace('.000', '')
}
