import { COUNTER, calendarParams } from '../../kinds/counter.js'
import { CALENDAR_MS, type CalendarWindow } from '../../store/algorithms.js'
import type { Duration } from '../../util/duration.js'
import { neverBeside, neverWithout, wrongPolicy } from '../../util/errors.js'
import { oneOf } from '../../util/validate.js'
import { firstDay, isCalendarWindow, limitCalendar } from './calendar.js'
import { makeLimit, type RateOptions } from './common.js'
import type { CommonOptions, LeasableOptions, Limit, OrFunction, UnitOptions, Weekday } from './limit.js'
import { type SpreadOptions, spreadOver } from './spread.js'

export interface FixedWindowOptions<Subject>
  extends Omit<RateOptions<Subject>, 'window'>,
    UnitOptions,
    LeasableOptions,
    SpreadOptions,
    CalendarOptions<Subject> {
  /**
   * Whole milliseconds or a duration such as `'1m'`, or a window of the calendar.
   *
   * `'day'`, `'week'`, `'month'` and `'year'` follow the calendar of `timeZone`.
   */
  readonly window: OrFunction<Duration, Subject> | CalendarWindow
  /**
   * Where windows start: at multiples of the window on the store's clock (UTC), or at a key's first request.
   *
   * By the first request, keys do not all reset at once. Not beside windows of the calendar.
   * @default 'clock'
   */
  readonly anchor?: 'clock' | 'first-request'
}

/** For windows of the calendar. */
export interface CalendarOptions<Subject> {
  /** The IANA name of the time zone, such as `'Europe/Berlin'`. Its rules are those of this Node's data. @default 'UTC' */
  readonly timeZone?: string
  /**
   * The first day of a week, such as `'sunday'`, or of a month, from 1 to 31.
   *
   * A billing day beyond the end of a month is its last day. May be a function of the request. A window that runs
   * keeps its end, whatever the day becomes.
   * @default 'monday', or 1
   */
  readonly startsOn?: OrFunction<Weekday | number, Subject>
}

/**
 * One counter per window. The cheapest, and the loosest: up to twice `limit` can pass within less
 * than a window, half at the end of one and half at the start of the next.
 *
 * @example fixedWindow({ limit: 10_000, window: 'month', timeZone: 'Europe/Berlin', startsOn: 15 })
 * @throws SluiceError `INVALID_POLICY`
 */
export function fixedWindow<Subject>(options: FixedWindowOptions<Subject>): Limit<Subject> {
  if (isCalendarWindow(options?.window)) return calendarWindow(options, options.window)
  const { anchor = 'clock', spread, timeZone, startsOn, ...rate } = options ?? {}
  if (timeZone !== undefined) neverWithout('fixedWindow', 'timeZone', OF_CALENDAR, timeZone)
  if (startsOn !== undefined) neverWithout('fixedWindow', 'startsOn', OF_CALENDAR, startsOn)
  const byClock = oneOf('fixedWindow', 'anchor', anchor, ['clock', 'first-request']) === 'clock'
  if (spread !== undefined && !byClock) {
    // Each key then has its own windows, spread like the first requests.
    neverBeside('fixedWindow', 'spread', 'anchor "first-request"', spread)
  }
  const kind = byClock ? 'fixed' : 'opened'
  const resolve = spreadOver('fixedWindow', spread, (_where, limit, windowMs) => ({
    kind: COUNTER,
    id: `${kind}.${limit}.${windowMs}`,
    carriedId: `${kind}~${windowMs}`,
    // The third is 1 where refusals count: see `COUNTER`.
    params: [limit, windowMs, 0, byClock ? 1 : 0],
    report: {
      algorithm: 'fixedWindow',
      limit,
      windowMs,
      capacity: limit,
      queue: false,
      calendar: undefined,
      spreadMs: undefined,
    },
    lease: undefined,
    calendar: undefined,
  }))
  return makeLimit(
    'fixedWindow',
    rate as RateOptions<Subject>,
    ['anchor', 'spread', 'timeZone', 'startsOn', 'unit', 'estimate', 'lease'],
    resolve,
  )
}

const OF_CALENDAR = 'a window of the calendar, such as "month"'

/** At most `limit` units in each day of the calendar, which ends at midnight in `timeZone`. `perDay` is any 24 hours. */
export const calendarDay = <Subject>(
  limit: number,
  options: CommonOptions<Subject> &
    UnitOptions &
    LeasableOptions &
    SpreadOptions &
    Pick<CalendarOptions<Subject>, 'timeZone'> = {},
): Limit<Subject> => fixedWindow({ ...options, limit, window: 'day' })

/** At most `limit` units in each month of the calendar, or from one billing day to the next. */
export const calendarMonth = <Subject>(
  limit: number,
  options: CommonOptions<Subject> & UnitOptions & LeasableOptions & SpreadOptions & CalendarOptions<Subject> = {},
): Limit<Subject> => fixedWindow({ ...options, limit, window: 'month' })

/**
 * `perDay` is any 24 hours, and a month has no such length: its name would promise what its window is not.
 *
 * @deprecated Use `calendarMonth`.
 */
export const perMonth = (() =>
  wrongPolicy(
    'perMonth: use calendarMonth(limit), a window of the calendar, or slidingLog({ limit, window: "30d" }), any 30 days',
  )) as unknown as 'use calendarMonth(limit), or slidingLog({ limit, window: "30d" })'

/** Its id has neither time zone nor day, and no bounds: where any of them changes, the window that runs keeps its end. */
function calendarWindow<Subject>(
  { anchor, spread, timeZone, startsOn, ...rate }: FixedWindowOptions<Subject>,
  window: CalendarWindow,
): Limit<Subject> {
  if (anchor !== undefined) neverBeside('fixedWindow', 'anchor', `window "${window}"`, anchor)
  const calendar = limitCalendar('fixedWindow', window, timeZone, startsOn)
  const first = typeof calendar.startsOn === 'function' ? 1 : firstDay('fixedWindow', window, calendar.startsOn)
  const resolve = spreadOver('fixedWindow', spread, (_where, limit, windowMs, ofRequest) => ({
    kind: COUNTER,
    id: `${window}.${limit}`,
    carriedId: `${window}~`,
    params: calendarParams(limit, window),
    report: {
      algorithm: 'fixedWindow',
      limit,
      windowMs,
      capacity: limit,
      queue: false,
      calendar: window,
      spreadMs: undefined,
    },
    lease: undefined,
    calendar: { window, timeZone: calendar.timeZone, startsOn: ofRequest ?? first },
  }))
  return makeLimit(
    'fixedWindow',
    { ...rate, window: CALENDAR_MS[window] } as RateOptions<Subject>,
    ['anchor', 'spread', 'timeZone', 'startsOn', 'unit', 'estimate', 'lease'],
    resolve,
    undefined,
    calendar,
  )
}
