/** A value's place on an axis, from 0 to 1, and the values to name. */
export interface Scale {
  at(value: number): number
  readonly ticks: readonly { readonly value: number; readonly text: string }[]
}

const short = new Intl.NumberFormat('en-US', { notation: 'compact', maximumSignificantDigits: 3 })

/** A number for the label of an axis: `1.5K`. */
function shortNumber(value: number): string {
  return short.format(value)
}

/** From 0 to a round number above `max`. */
export function linearScale(max: number): Scale {
  const step = roundStep(Math.max(max, 1) / 4)
  const end = Math.ceil(Math.max(max, 1) / step) * step
  const ticks = Array.from({ length: Math.round(end / step) + 1 }, (_, i) => i * step)
  return { at: (value) => value / end, ticks: ticks.map((value) => ({ value, text: shortNumber(value) })) }
}

/** The round number at or above: 1, 2 or 5 times a power of ten, at least 1. */
function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)))
  return ([1, 2, 5, 10].find((factor) => factor * power >= least) ?? 10) * power
}

/**
 * Of positive numbers, in which each doubling takes the same room. Values below `min` stand at 0.
 *
 * @param textOf names a tick
 */
export function logScale(min: number, max: number, textOf = shortNumber): Scale {
  const [low, high] = min < max ? [min, max] : [min / 2, min * 2]
  const at = (value: number) => Math.min(1, Math.max(0, Math.log(value / low) / Math.log(high / low)))
  return { at, ticks: logTicks(low, high).map((value) => ({ value, text: textOf(value) })) }
}

/** Powers of ten, with numbers between them where these are few. */
function logTicks(low: number, high: number): number[] {
  const decades = Math.log10(high / low)
  const every = Math.ceil(decades / 6)
  const factors = decades > 3 ? [1] : decades > 1.5 ? [1, 3] : [1, 2, 5]
  const ticks: number[] = []
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power += every) {
    for (const factor of factors) {
      // Of powers below zero, the quotient is the nearest number.
      const value = power < 0 ? factor / 10 ** -power : factor * 10 ** power
      if (value >= low * 0.999 && value <= high * 1.001) ticks.push(value)
    }
  }
  return ticks
}

const SECOND_MS = 1000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
const TIME_STEPS_MS = [
  ...[1, 2, 5, 10, 15, 30].map((count) => count * SECOND_MS),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * MINUTE_MS),
  ...[1, 2, 3, 6, 12].map((count) => count * HOUR_MS),
  ...[1, 2, 7, 14, 28, 91, 182, 364].map((count) => count * DAY_MS),
]

/** Instants in UTC, `toMs` after `fromMs`. The time stands at a tick, and the day where one begins. */
export function timeScale(fromMs: number, toMs: number): Scale {
  const length = toMs - fromMs
  const step = TIME_STEPS_MS.find((ms) => length / ms <= 5) ?? 364 * DAY_MS * Math.ceil(length / (5 * 364 * DAY_MS))
  const ticks = []
  for (let ms = Math.ceil(fromMs / step) * step; ms <= toMs; ms += step) {
    ticks.push({ value: ms, text: tickTime(ms, step) })
  }
  return { at: (ms) => (ms - fromMs) / length, ticks }
}

function tickTime(ms: number, stepMs: number): string {
  const text = new Date(ms).toISOString()
  if (stepMs > 180 * DAY_MS) return text.slice(0, 7)
  if (ms % DAY_MS === 0) return text.slice(5, 10)
  return stepMs < MINUTE_MS ? text.slice(11, 19) : text.slice(11, 16)
}
