const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const CLF = /^(\d\d)\/([A-Z][a-z]{2})\/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)$/

/** The length of `10/Oct/2000:13:55:36 -0700`. */
export const CLF_LENGTH = 26

/** From 1973 to 5138: no log is from another year. The numbers of seconds, ms, µs and ns of this time do not overlap. */
const FROM_MS = 1e11
const TO_MS = 1e14
/** No request lasts longer. */
const MAX_DURATION_MS = 366 * 86_400_000

export function isPlausibleDuration(ms: number): boolean {
  return ms >= 0 && ms <= MAX_DURATION_MS
}

function isPlausible(ms: number): boolean {
  return ms > FROM_MS && ms < TO_MS
}

/** Whether the calendar has a day. `month`: from 1. */
function isDay(year: string | undefined, month: number, day: string | undefined): boolean {
  return new Date(Date.UTC(Number(year), month - 1, Number(day))).getUTCMonth() === month - 1
}

/** An instant of `10/Oct/2000:13:55:36 -0700`, in ms since the epoch. NaN for another text. */
function clfTime(text: string): number {
  const [, day, month, year, hour, minute, second, sign, offsetHours, offsetMinutes] = CLF.exec(text) ?? []
  const index = MONTHS.indexOf(String(month))
  // A leap second is the second 60.
  if (index < 0 || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 60) return Number.NaN
  if (!isDay(year, index + 1, day)) return Number.NaN
  const days = Date.UTC(Number(year), index, Number(day))
  const offset = Number(offsetHours) * 60 + Number(offsetMinutes)
  const minutes = Number(hour) * 60 + Number(minute) - (sign === '-' ? -offset : offset)
  const ms = days + minutes * 60_000 + Number(second) * 1000
  return isPlausible(ms) ? ms : Number.NaN
}

/** Dates of a log: lines of one second have the same text, which is read once. */
export class ClfClock {
  #text = ''
  #ms = Number.NaN

  /** As `clfTime`, of a part of a line. */
  at(line: string, start: number, end: number): number {
    if (end - start !== CLF_LENGTH) return Number.NaN
    if (!line.startsWith(this.#text, start) || this.#text === '') {
      this.#ms = clfTime(line.slice(start, end))
      this.#text = Number.isNaN(this.#ms) ? '' : line.slice(start, end)
    }
    return this.#ms
  }
}

export interface Instant {
  /** Since the epoch, with what the log has of a ms. */
  readonly ms: number
  readonly resolutionMs: number
}

const ISO = /^(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?$/

/** An instant of ISO 8601, in UTC where it names no zone. Undefined for another text. */
export function isoTime(text: string): Instant | undefined {
  const [, year, month, day, time, fraction, zone = 'Z'] = ISO.exec(text) ?? []
  const ms = Date.parse(`${year}-${month}-${day}T${time}${zone.replace(/(\d\d)(\d\d)$/, '$1:$2')}`)
  // `Date.parse` takes 30 February for 2 March.
  if (!isPlausible(ms) || !isDay(year, Number(month), day)) return undefined
  if (fraction === undefined) return { ms, resolutionMs: 1000 }
  return { ms: ms + Number(`0.${fraction}`) * 1000, resolutionMs: resolutionOf(fraction.length) }
}

/** `06/Feb/2009:12:14:14.655` of HAProxy, in a zone that it does not name. */
const CLF_MS = /^(\d\d\/[A-Z][a-z]{2}\/\d{4}:\d\d:\d\d:\d\d)\.(\d{3})$/
/** `Wed Jan 14 11:44:29 2015`, as C writes it, in a zone that it does not name. */
const CTIME = /^[A-Z][a-z]{2} ([A-Z][a-z]{2}) ([ \d]\d) (\d\d:\d\d:\d\d) (\d{4})$/

/** An instant without its zone: times of one log remain in order as those of UTC. */
function localTime(text: string): Instant | undefined {
  const [, seconds, fraction] = CLF_MS.exec(text) ?? []
  const [, month, day = '', time, year] = CTIME.exec(text) ?? []
  const clf = seconds ?? `${day.trim().padStart(2, '0')}/${month}/${year}:${time}`
  const ms = clfTime(`${clf} +0000`)
  if (Number.isNaN(ms)) return undefined
  return { ms: ms + Number(fraction ?? 0), resolutionMs: fraction === undefined ? 1000 : 1 }
}

/** An instant of any text that logs have. */
export function instantOf(text: string): Instant | undefined {
  const clf = clfTime(text)
  if (!Number.isNaN(clf)) return { ms: clf, resolutionMs: 1000 }
  return isoTime(text) ?? secondsText(text) ?? localTime(text)
}

/** An instant of a number as text, whose decimals show how exact it is: `1795692644.000` is to the ms. */
export function secondsText(text: string): Instant | undefined {
  const instant = text === '' ? undefined : epochTime(Number(text))
  const decimals = text.length - 1 - text.lastIndexOf('.')
  if (instant === undefined || decimals >= text.length) return instant
  return { ms: instant.ms, resolutionMs: resolutionOf(decimals) }
}

function resolutionOf(decimals: number): number {
  return 10 ** Math.max(0, 3 - decimals)
}

/** An instant of a number of seconds, ms, µs or ns since the epoch. */
export function epochTime(number: number): Instant | undefined {
  if (!(number > FROM_MS / 1000 && number < TO_MS * 1e6)) return undefined
  if (number < TO_MS / 1000) return { ms: number * 1000, resolutionMs: Number.isInteger(number) ? 1000 : 1 }
  const ms = number < TO_MS ? number : number < TO_MS * 1000 ? number / 1000 : number / 1e6
  return { ms, resolutionMs: 1 }
}
