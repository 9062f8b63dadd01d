import { BY_CALENDAR, BY_CLOCK } from '../kernels/counter.js'

/** The algorithms by kind of cell. An algorithm is a name and a set of parameters for a kind. */
export interface Algorithms {
  bucket: 'gcra' | 'tokenBucket' | 'leakyBucket'
  counter: 'fixedWindow'
  segments: 'slidingWindow'
  log: 'slidingLog'
  concurrency: 'concurrency'
}

/** The kinds of cells. Each has its own kind of state. */
export type KernelName = keyof Algorithms

export type Algorithm = Algorithms[KernelName]

/** Windows that follow the calendar of a time zone. */
export type CalendarWindow = 'day' | 'week' | 'month' | 'year'

/** A calendar whose periods are windows. */
export interface Calendar {
  readonly window: CalendarWindow
  readonly timeZone: string
  /** The day of the week, from 0 for Monday, or of the month, from 1. */
  readonly startsOn: number
}

/** Their largest lengths in ms, apart from changes of clocks. */
export const CALENDAR_MS: Readonly<Record<CalendarWindow, number>> = {
  day: 86_400_000,
  week: 7 * 86_400_000,
  month: 31 * 86_400_000,
  year: 366 * 86_400_000,
}

/** Whether a cell is a window of the calendar: plans of equal ids may then have other bounds among its parameters. */
export function isCalendar({ kernel, params }: { readonly kernel: KernelName; readonly params: readonly number[] }) {
  return kernel === 'counter' && params[3] === BY_CALENDAR
}

/** Whether a cell is a window that begins with a request, and not by the clock or the calendar. */
export function opensByRequest({
  kernel,
  params,
}: {
  readonly kernel: KernelName
  readonly params: readonly number[]
}) {
  return kernel === 'counter' && params[3] !== BY_CLOCK && params[3] !== BY_CALENDAR
}
