const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const CLF = /^(\d\d)\/([A-Z][a-z]{2})\/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)$/

/** The length of `10/Oct/2000:13:55:36 -0700`. */
export const CLF_LENGTH = 26

/** An instant of `10/Oct/2000:13:55:36 -0700`, in ms since the epoch. NaN for another text. */
function clfTime(text: string): number {
  const [, day, month, year, hour, minute, second, sign, offsetHours, offsetMinutes] = CLF.exec(text) ?? []
  const index = MONTHS.indexOf(String(month))
  if (index < 0 || Number(hour) > 23 || Number(minute) > 59) return Number.NaN
  const days = Date.UTC(Number(year), index, Number(day))
  // 31 February.
  if (new Date(days).getUTCMonth() !== index) return Number.NaN
  const offset = Number(offsetHours) * 60 + Number(offsetMinutes)
  const minutes = Number(hour) * 60 + Number(minute) - (sign === '-' ? -offset : offset)
  return days + minutes * 60_000 + Number(second) * 1000
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
  if (Number.isNaN(ms)) return undefined
  if (fraction === undefined) return { ms, resolutionMs: 1000 }
  return { ms: ms + Number(`0.${fraction}`) * 1000, resolutionMs: resolutionOf(fraction.length) }
}

/** An instant of any text that logs have. */
export function instantOf(text: string): Instant | undefined {
  const clf = clfTime(text)
  if (!Number.isNaN(clf)) return { ms: clf, resolutionMs: 1000 }
  return isoTime(text) ?? secondsText(text)
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

/** An instant of a number of seconds, ms, µs or ns since the epoch: no log is from the years that the others would mean. */
export function epochTime(number: number): Instant | undefined {
  if (!(number > 1e8 && number < 1e20)) return undefined
  if (number < 1e11) return { ms: number * 1000, resolutionMs: Number.isInteger(number) ? 1000 : 1 }
  const ms = number < 1e14 ? number : number < 1e17 ? number / 1000 : number / 1e6
  return { ms, resolutionMs: 1 }
}
