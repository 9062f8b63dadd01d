import type { Calendar, CalendarWindow } from '../../store/algorithms.js'
import { zoneOf } from './zone.js'

/** Periods before and after the present one, whose bounds a store gets. */
const PERIODS_AROUND = 2

const DAY_MS = 86_400_000
/** 1970-01-01 was a Thursday. */
const FIRST_WEEKDAY = 3

/** The bounds of the periods around an instant, in ascending order: the starts of each, and the end of the last. */
export function boundsAt(calendar: Calendar, now: number): number[] {
  const zone = zoneOf(calendar.timeZone)
  const { numberOf, dateOf } = COUNTED[calendar.window]
  const present = numberOf(zone.localAt(now), calendar.startsOn)
  const bounds: number[] = []
  for (let n = present - PERIODS_AROUND; n <= present + PERIODS_AROUND + 1; n++) {
    bounds.push(zone.startOf(dateOf(n, calendar.startsOn)))
  }
  return bounds
}

/** Periods by number. Dates and local times are in ms as if they were UTC. */
interface Counted {
  /** The number of the period that contains a local time. */
  numberOf(local: number, startsOn: number): number
  /** The first date of a period. */
  dateOf(number: number, startsOn: number): number
}

const COUNTED: Readonly<Record<CalendarWindow, Counted>> = {
  day: {
    numberOf: (local) => Math.floor(local / DAY_MS),
    dateOf: (day) => day * DAY_MS,
  },
  week: {
    numberOf: (local, startsOn) => Math.floor((Math.floor(local / DAY_MS) + FIRST_WEEKDAY - startsOn) / 7),
    dateOf: (week, startsOn) => (7 * week - FIRST_WEEKDAY + startsOn) * DAY_MS,
  },
  month: {
    numberOf(local, startsOn) {
      const date = new Date(local)
      const month = 12 * date.getUTCFullYear() + date.getUTCMonth()
      return local < billingDate(month, startsOn) ? month - 1 : month
    },
    dateOf: billingDate,
  },
  year: {
    numberOf: (local) => new Date(local).getUTCFullYear(),
    dateOf: (year) => Date.UTC(year, 0),
  },
}

/** The billing day in a month, or the last day of one that is shorter. */
function billingDate(month: number, startsOn: number): number {
  const year = Math.floor(month / 12)
  const daysInMonth = new Date(Date.UTC(year, (month % 12) + 1, 0)).getUTCDate()
  return Date.UTC(year, month % 12, Math.min(startsOn, daysInMonth))
}
