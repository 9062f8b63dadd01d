import { invalidPolicy } from './errors.js'

/** Whole milliseconds, or a number with a unit: `'250ms'`, `'10s'`, `'15m'`, `'1h'`, `'1d'`, `'1.5s'`. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

const UNIT_MS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A hundred years: any instant plus any window then fits the six bytes that a stored instant takes. */
export const MAX_DURATION_MS = 100 * 365 * 86_400_000

/** What stands for ever in stores, which keep whole milliseconds: longer than any duration that can be given. */
const FOR_EVER_MS = 2 * MAX_DURATION_MS

/**
 * A duration in whole milliseconds, from 1 to a hundred years.
 *
 * @throws SluiceError `INVALID_POLICY`, naming `where` and `field`.
 */
export function durationMs(where: string, field: string, value: unknown, alternative = ''): number {
  const ms = typeof value === 'string' ? parse(value) : value
  if (typeof ms === 'number' && Number.isInteger(ms) && ms >= 1 && ms <= MAX_DURATION_MS) return ms
  const isOutOfRange = typeof ms === 'number' && (ms < 1 || ms > MAX_DURATION_MS)
  const range = isOutOfRange ? ', from 1 ms to 100 years (36500d)' : ''
  return invalidPolicy(
    where,
    field,
    `whole milliseconds or a duration such as "30s" (units: ms, s, m, h, d)${range}${alternative}`,
    value,
  )
}

/** As `durationMs`, or infinite: a wait without an end. */
export function durationOrNever(where: string, field: string, value: unknown): number {
  return value === Number.POSITIVE_INFINITY ? value : durationMs(where, field, value, OR_INFINITY)
}

/** As `durationMs`, or infinite: what a store keeps for ever, in milliseconds that it can keep. */
export function durationOrForEver(where: string, field: string, value: unknown): number {
  return value === Number.POSITIVE_INFINITY ? FOR_EVER_MS : durationMs(where, field, value, OR_INFINITY)
}

/** Whether so many ms are left of something that is kept for ever. */
export function isForEver(ms: number): boolean {
  return ms > MAX_DURATION_MS
}

const OR_INFINITY = ', or Infinity'

function parse(text: string): number {
  const [, amount, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text) ?? []
  const ms = Number(amount) * (UNIT_MS[unit ?? ''] ?? Number.NaN)
  // Decimal fractions such as 1.1 are not exact in binary; a result a hair off a whole number is that number.
  return Math.abs(ms - Math.round(ms)) < 1e-6 ? Math.round(ms) : Number.NaN
}

/** The shortest spelling: 60000 is `1m`, 1500 is `1500ms`. Used in default names. */
export function durationText(ms: number): string {
  for (const unit of ['d', 'h', 'm', 's']) {
    const size = UNIT_MS[unit] as number
    if (ms % size === 0) return `${ms / size}${unit}`
  }
  return `${ms}ms`
}
