const wholeNumbers = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const rates = new Intl.NumberFormat('en', { maximumFractionDigits: 1 })
const shares = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 1 })
const clock = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' })
const weekday = new Intl.DateTimeFormat('en-GB', { weekday: 'short' })
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' })
const year = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium' })
const precise = new Intl.DateTimeFormat('en-GB', { dateStyle: 'full', timeStyle: 'long' })

/** A block without an end ends 200 years later. */
const FOREVER_MS = 100 * 365 * 86_400_000

export const whole = (value: number): string => wholeNumbers.format(value)
export const rate = (value: number): string => (value >= 100 ? wholeNumbers : rates).format(value)
export const share = (value: number): string => shares.format(value)

export const preciseTime = (ms: number): string => precise.format(ms)
export const isForever = (ms: number): boolean => ms - Date.now() > FOREVER_MS

/** In the zone of the browser, which the foot of the page names. */
export function shortTime(ms: number): string {
  const at = new Date(ms)
  const now = new Date()
  if (at.toDateString() === now.toDateString()) return clock.format(at)
  const date = at.getFullYear() === now.getFullYear() ? day : year
  return `${weekday.format(at)} ${date.format(at)}, ${clock.format(at)}`
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
] as const

/** `1 h`, `2 min 30 s`: two units at most. */
export function duration(ms: number): string {
  if (ms <= 0) return '0 s'
  if (ms < 1000) return `${Math.ceil(ms)} ms`
  let rest = Math.ceil(ms / 1000) * 1000
  const parts: string[] = []
  for (const [name, unit] of UNITS) {
    const count = Math.floor(rest / unit)
    if (count > 0 && parts.length < 2) parts.push(`${count} ${name}`)
    else if (parts.length > 0) break
    rest -= count * unit
  }
  return parts.join(' ')
}

/** The zone of the browser, such as `Europe/Berlin (GMT+1)`. */
export function zone(): string {
  const { timeZone } = clock.resolvedOptions()
  const offset = new Intl.DateTimeFormat('en', { timeZoneName: 'shortOffset' })
    .formatToParts()
    .find(({ type }) => type === 'timeZoneName')?.value
  return offset && offset !== timeZone ? `${timeZone} (${offset})` : timeZone
}

interface LimitToShow {
  readonly limit: unknown
  readonly windowMs?: unknown
  readonly window?: unknown
  readonly algorithm?: string
  readonly unit?: string
  readonly capacity?: number
}

/** `5 per 10 s`; of a bucket `20 at once, then 5 per 10 s`; of a function, that is not known. */
export function limitText({ limit, windowMs, window = windowMs, algorithm, unit, capacity }: LimitToShow): string {
  const count = typeof limit === 'number' ? whole(limit) : 'by a function'
  if (algorithm === 'concurrency') return `${count} at once`
  const of = unit !== undefined && unit !== 'requests' ? ` ${unit}` : ''
  const span = typeof window === 'number' ? perText(window) : typeof window === 'string' ? window : '?'
  const burst = isBucket(algorithm) && capacity !== undefined ? `${whole(capacity)} at once, then ` : ''
  return `${burst}${count}${of} per ${span}`
}

/** A window after "per": `s`, `10 s`. */
export const perText = (ms: number): string => duration(ms).replace(/^1 (?=\w+$)/, '')

/** Whether a limit has a capacity beside its rate. */
export const isBucket = (algorithm: string | undefined): boolean =>
  algorithm === 'tokenBucket' || algorithm === 'leakyBucket' || algorithm === 'gcra'

/** `2 refusals`, `1 refusal`. */
export const counted = (count: number, thing: string, plural = `${thing}s`): string =>
  `${whole(count)} ${count === 1 ? thing : plural}`

/** The policy of a name that may end on a tier, as those of documents do. */
export const policyIn = (name: string): string => name.split('.', 1)[0] as string

/** The fields of a limit that are changed: `limit 30`. */
export const changedText = (limit: Readonly<Record<string, unknown>>): string =>
  Object.entries(limit)
    .map(([field, value]) => (field === 'name' ? `${value}:` : `${field} ${JSON.stringify(value)}`))
    .join(' ')
