import { grouped, instantText, timeLeft } from '@sluice/core/internal'
import type { Interval } from '../../report.js'

/** `1,234`, or `1,200–1,300` where the log's clock is coarse. */
export function intervalText({ min, max }: Interval): string {
  return min === max ? grouped(min) : `${grouped(min)}–${grouped(max)}`
}

/** The same in a sentence: `between 1,200 and 1,300`. */
export function intervalWords({ min, max }: Interval): string {
  return min === max ? grouped(min) : `between ${grouped(min)} and ${grouped(max)}`
}

/** An instant in UTC, to the second: `2026-11-25 23:59:59`. A log without requests has none. */
export function timeText(ms: number): string {
  return Math.abs(ms) <= 8.64e15 ? instantText(ms).replace('T', ' ').replace('Z', '') : 'never'
}

/** A duration: `under 1ms`, `120ms`, `2.4s`, or in two units, rounded up, `3m 20s`. */
export function spanText(ms: number): string {
  if (ms > 0 && ms < 1) return 'under 1ms'
  if (ms < 1000) return `${Math.round(ms)}ms`
  return ms < 60_000 ? `${Number((ms / 1000).toFixed(1))}s` : timeLeft(Math.round(ms))
}

/** An interval of durations or sizes, which shows no more digits than its spread has. */
export function rangeText({ min, max }: Interval, textOf: (number: number) => string): string {
  const [low, high] = [textOf(min), textOf(max)]
  return low === high ? low : `${low} to ${high}`
}
