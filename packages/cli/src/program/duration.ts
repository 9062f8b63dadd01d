const UNITS: readonly (readonly [ms: number, unit: string])[] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'm'],
  [1000, 's'],
  [1, 'ms'],
]

/** As limits are written: the largest unit of which it is a whole number, `90s` or `1d`. */
export function exactDuration(ms: number): string {
  const [size, unit] = UNITS.find(([size]) => ms >= size && ms % size === 0) ?? [1, 'ms']
  return `${ms / size}${unit}`
}

/** For how long something takes from now on, in one or two units, rounded up: `3m 20s`. */
export function timeLeft(ms: number): string {
  if (ms < 1000) return `${ms}ms`
  const i = UNITS.findIndex(([size]) => ms >= size)
  const [[size, unit], below] = [UNITS[i] as (typeof UNITS)[number], UNITS[i + 1]]
  if (!below || below[1] === 'ms') return `${Math.ceil(ms / size)}${unit}`
  const parts = Math.ceil(ms / below[0])
  const perUnit = size / below[0]
  const rest = parts % perUnit
  return `${Math.floor(parts / perUnit)}${unit}${rest > 0 ? ` ${rest}${below[1]}` : ''}`
}
