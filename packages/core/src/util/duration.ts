import { invalidPolicy } from './errors.js'

/** Whole milliseconds, or a number with a unit: `'250ms'`, `'10s'`, `'15m'`, `'1h'`, `'1d'`, `'1.5s'`. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

const UNIT_MS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A hundred years: any instant plus any window then fits the six bytes that a stored instant takes. */
export const MAX_DURATION_MS = 100 * 365 * 86_400_000

/**
 * A duration in whole milliseconds, from 1 to a hundred years.
 *
 * @throws SluiceError `INVALID_POLICY`, naming `where` and `field`.
 */
export function durationMs(where: string, field: string, value: unknown): number {
  const ms = typeof value === 'string' ? parse(value) : value
  if (typeof ms === 'number' && Number.isInteger(ms) && ms >= 1 && ms <= MAX_DURATION_MS) return ms
  const isOutOfRange = typeof ms === 'number' && (ms < 1 || ms > MAX_DURATION_MS)
  const range = isOutOfRange ? ', from 1 ms to 100 years (36500d)' : ''
  return invalidPolicy(
    where,
    field,
    `whole milliseconds or a duration such as "30s" (units: ms, s, m, h, d)${range}`,
    value,
  )
}

/** As `durationMs`, or infinite: a wait without an end. */
export function durationOrNever(where: string, field: string, value: unknown): number {
  return value === Number.POSITIVE_INFINITY ? value : durationMs(where, field, value)
}

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
