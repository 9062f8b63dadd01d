/** No wait and no reset is longer: headers may name the year 9999. */
const MAX_WAIT_MS = 366 * 86_400_000

/** Beyond these, a number of seconds is an instant: a quota of 30 years, or the year 2001. */
const LEAST_EPOCH_SECONDS = 1e9
const LEAST_EPOCH_MS = 1e12

const NUMBER = /^\d{1,20}(\.\d{1,20})?$/
const GO_DURATION = /^(?:\d{1,12}(?:\.\d{1,12})?(?:h|m|s|ms|us|µs|ns))+$/
/** Between the parts of `6m0s`. */
const GO_PARTS = /(?<=[a-zµ])(?=\d)/
const GO_UNITS: Readonly<Record<string, number>> = {
  h: 3_600_000,
  m: 60_000,
  s: 1000,
  ms: 1,
  us: 1e-3,
  µs: 1e-3,
  ns: 1e-6,
}

/** A number of 0 or more; undefined for anything else, such as the -1 by which some say "unknown". */
export function numberIn(text: string | undefined): number | undefined {
  return text !== undefined && NUMBER.test(text) ? Number(text) : undefined
}

/** Units of a quota: whole, as part of a request is none. */
export function unitsIn(text: string | undefined): number | undefined {
  const number = numberIn(text)
  return number === undefined ? undefined : Math.min(Number.MAX_SAFE_INTEGER, Math.floor(number))
}

/** Whole milliseconds, rounded up, as earlier is too early; from 0 to a year. */
export function boundedMs(ms: number): number {
  return Math.min(MAX_WAIT_MS, Math.max(0, Math.ceil(ms)))
}

/**
 * Milliseconds until what a text says: seconds from now, seconds or milliseconds since 1970, a date, or a duration as Go writes
 * it (`6m0s`).
 *
 * @param now in ms since 1970, by the clock of the server that says it
 */
export function msUntil(text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined
  const number = numberIn(text)
  if (number !== undefined) {
    if (number >= LEAST_EPOCH_MS) return boundedMs(number - now)
    return boundedMs(number >= LEAST_EPOCH_SECONDS ? number * 1000 - now : number * 1000)
  }
  if (GO_DURATION.test(text)) {
    const parts = text.split(GO_PARTS).map((part) => {
      const unit = part.replace(/^[\d.]+/, '')
      return Number.parseFloat(part) * (GO_UNITS[unit] ?? 0)
    })
    return boundedMs(parts.reduce((sum, ms) => sum + ms, 0))
  }
  return msUntilDate(text, now)
}

/** Milliseconds until a date of HTTP or RFC 3339. */
function msUntilDate(text: string, now: number): number | undefined {
  const at = dateIn(text)
  return at === undefined ? undefined : boundedMs(at - now)
}

/** The instant of a date. Only texts with a month or a full date: `Date.parse` reads "7" and "-1", too. */
export function dateIn(text: string | undefined): number | undefined {
  if (text === undefined || !/^(?:\d{4}-\d\d-\d\dT|[A-Z][a-z]{2})/.test(text)) return undefined
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : at
}
