import { BY_CALENDAR, readReport } from '../kernels/counter.js'
import { CounterTable } from '../memory/counter-table.js'
import { CALENDAR_MS, type CalendarWindow } from '../store/algorithms.js'
import { windowAt } from './calendar/window-at.js'
import type { CellKind, IdForm } from './kind.js'
import { isFirst, NO_LEASE_RULES, NO_MORE_RULES, oneLimit, windowBefore } from './usual.js'

/** The most that changes of clocks make a window longer, even where a zone moves over the date line. */
const CALENDAR_SLACK_MS = 86_400_000

/**
 * Parameters: limit, windowMs, whether refusals count (1 or 0), how windows start (see kernels/counter.ts), and for windows of
 * the calendar the bounds of the periods around now, which the id leaves out.
 */
export const COUNTER: CellKind = {
  ...NO_MORE_RULES,
  kernel: 'counter',
  algorithms: ['fixedWindow'],
  table: CounterTable,
  isUnits: isFirst,
  ids: {
    fixed: { numbers: 2, params: ([limit = 0, windowMs = 0]) => [limit, windowMs, 0, 1], limits: oneLimit },
    opened: { numbers: 2, params: ([limit = 0, windowMs = 0]) => [limit, windowMs, 0, 0], limits: oneLimit },
    ...calendarIds(),
  },
  canBeJoint: true,
  readReport,
  countRefusals: countAll,
  countInFull: countAll,
  windowAt,
  // Clock-aligned windows begin by this process's clock, too.
  chargedAt: (params, use) => (params[3] === 0 ? windowBefore(params, use) : use.at),
  lease: {
    ...NO_LEASE_RULES,
    windowLength: ([, windowMs]) => windowMs as number,
    // The receipt is the start of the window.
    windowEnd: ([, windowMs], receipt) => receipt + (windowMs as number),
  },
}

/** The parameters of a window of the calendar, without bounds: they are for a plan at an instant. */
export function calendarParams(limit: number, window: CalendarWindow): readonly number[] {
  return [limit, CALENDAR_MS[window] + CALENDAR_SLACK_MS, 0, BY_CALENDAR]
}

function calendarIds(): Record<CalendarWindow, IdForm> {
  const formOf = (window: CalendarWindow): IdForm => ({
    numbers: 1,
    params: ([limit = 0]) => calendarParams(limit, window),
    limits: ([limit = 0]) => [[limit, CALENDAR_MS[window], limit, window]],
  })
  return { day: formOf('day'), week: formOf('week'), month: formOf('month'), year: formOf('year') }
}

function countAll(params: readonly number[]): readonly number[] {
  return params.with(2, 1)
}
