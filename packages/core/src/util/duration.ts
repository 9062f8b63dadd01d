import { invalidPolicy } from './errors.js'
import { FORMS } from './option-hints.js'
import { emitWarning } from './warnings.js'

/** Whole milliseconds, or a number with a unit: `'250ms'`, `'10s'`, `'15m'`, `'1h'`, `'1d'`, `'1.5s'`. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

const UNIT_MS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
/** The largest first. */
const UNITS = Object.entries(UNIT_MS).reverse()

/** A hundred years: any instant plus any window then fits the six bytes that a stored instant takes. */
export const MAX_DURATION_MS = 100 * 365 * 86_400_000

/** Stands for "for ever" in stores, which hold whole milliseconds: longer than any duration that can be given. */
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
  return invalidPolicy(where, field, `${FORMS.window}${range}${alternative}`, value)
}

/**
 * As `durationMs`, for windows, blocks and bans, which last from a second to months. Warns of a number that is none in ms, and a
 * common one in seconds: `60`, `3600`.
 */
export function spanMs(where: string, field: string, value: unknown, alternative = ''): number {
  const ms = durationMs(where, field, value, alternative)
  if (ms < 1000 || COMMON_SPANS_IN_SECONDS.has(ms)) warnOfSeconds(where, field, value)
  return ms
}

/** As `durationMs`, for what requests, permits and leases wait for. Warns of a number below 100, which is next to nothing in ms. */
export function waitMs(where: string, field: string, value: unknown, alternative = ''): number {
  const ms = durationMs(where, field, value, alternative)
  if (ms < 100) warnOfSeconds(where, field, value)
  return ms
}

/** As `waitMs`, or infinite: a wait without an end. */
export function waitOrNever(where: string, field: string, value: unknown): number {
  return value === Number.POSITIVE_INFINITY ? value : waitMs(where, field, value, OR_INFINITY)
}

/** As `spanMs`, or infinite: what a store keeps for ever, in milliseconds that it can keep. */
export function spanOrForEver(where: string, field: string, value: unknown): number {
  return value === Number.POSITIVE_INFINITY ? FOR_EVER_MS : spanMs(where, field, value, OR_INFINITY)
}

const HOUR_S = 3600
const DAY_S = 86_400
/** From 20 minutes to a year; shorter ones are below 1,000. */
const COMMON_SPANS_IN_SECONDS: ReadonlySet<number> = new Set([
  ...[1200, 1800, 2700, 5400],
  ...[1, 2, 3, 4, 6, 8, 12].map((hours) => hours * HOUR_S),
  ...[1, 2, 3, 4, 5, 6, 7, 14, 28, 30, 31, 60, 90, 180, 365].map((days) => days * DAY_S),
])

/** Values that have been warned of: there are no more than a thousand. */
const warned = new Set<number>()

/** Other libraries take numbers as seconds. A value with a unit is meant as it is. */
function warnOfSeconds(where: string, field: string, value: unknown): void {
  if (typeof value !== 'number' || warned.has(value)) return
  warned.add(value)
  const message = `${where}: ${field}: ${value} is ${value} ms: write '${value}s' for seconds, or '${value}ms' if that is meant`
  emitWarning('SLUICE_SHORT_WINDOW', message)
}

/** Whether a remaining time in ms stands for "for ever". */
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
  const [unit, size] = UNITS.find(([, size]) => ms >= size && ms % size === 0) ?? ['ms', 1]
  return `${ms / size}${unit}`
}

/** For how long something takes from now on, in one or two units, rounded up: `3m 20s`. */
export function timeLeft(ms: number): string {
  if (ms < 1000) return `${ms}ms`
  const i = UNITS.findIndex(([, size]) => ms >= size)
  const [[unit, size], below] = [UNITS[i] as (typeof UNITS)[number], UNITS[i + 1]]
  if (!below || below[0] === 'ms') return `${Math.ceil(ms / size)}${unit}`
  const parts = Math.ceil(ms / below[1])
  const perUnit = size / below[1]
  const rest = parts % perUnit
  return `${Math.floor(parts / perUnit)}${unit}${rest > 0 ? ` ${rest}${below[0]}` : ''}`
}
