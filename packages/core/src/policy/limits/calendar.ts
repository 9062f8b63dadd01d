import { zoneOf } from '../../kinds/calendar/zone.js'
import { CALENDAR_MS, type CalendarWindow } from '../../store/algorithms.js'
import { invalidPolicy, neverBeside } from '../../util/errors.js'
import type { LimitCalendar, Weekday } from './limit.js'

export function isCalendarWindow(window: unknown): window is CalendarWindow {
  return typeof window === 'string' && Object.hasOwn(CALENDAR_MS, window)
}

/** Names `fixedWindow` where another limit has a window of the calendar. */
export function refuseCalendar(where: string, field: string, window: unknown): void {
  if (!isCalendarWindow(window)) return
  const remedy = `a window of the calendar is fixedWindow({ limit, window: "${window}" })`
  invalidPolicy(where, field, 'whole milliseconds or a duration such as "30s"', window, remedy)
}

const WEEKDAYS: readonly Weekday[] = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday']

const BY_DEFAULT: Readonly<Record<CalendarWindow, Weekday | number>> = { day: 1, week: 'monday', month: 1, year: 1 }

/**
 * The first day of a window as a number: of a week from 0 for Monday, of a month from 1.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function firstDay(where: string, window: CalendarWindow, startsOn: unknown): number {
  if (window === 'week') {
    const day = WEEKDAYS.indexOf(startsOn as Weekday)
    return day < 0 ? invalidPolicy(where, 'startsOn', 'a day of the week such as "monday"', startsOn) : day
  }
  const isDay = Number.isInteger(startsOn) && (startsOn as number) >= 1 && (startsOn as number) <= 31
  return isDay ? (startsOn as number) : invalidPolicy(where, 'startsOn', 'a billing day, 1 to 31', startsOn)
}

/**
 * The calendar of a limit, checked as far as it is known.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function limitCalendar(
  where: string,
  window: CalendarWindow,
  timeZone: unknown,
  given: LimitCalendar['startsOn'] | undefined,
): LimitCalendar {
  if (given !== undefined && (window === 'day' || window === 'year')) {
    neverBeside(where, 'startsOn', `window "${window}"`, given)
  }
  const startsOn = given === undefined ? BY_DEFAULT[window] : given
  if (typeof startsOn !== 'function') firstDay(where, window, startsOn)
  return { window, timeZone: checkedZone(where, timeZone), startsOn }
}

function checkedZone(where: string, timeZone: unknown = 'UTC'): string {
  try {
    if (typeof timeZone === 'string') {
      zoneOf(timeZone)
      return timeZone
    }
  } catch {
    // An unknown name.
  }
  return invalidPolicy(where, 'timeZone', 'the IANA name of a time zone such as "Europe/Berlin"', timeZone)
}
