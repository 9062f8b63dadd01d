import { FIRST_BOUND } from '../../kernels/counter.js'
import type { Calendar } from '../../store/algorithms.js'
import type { Cell, ResolvedLimit } from '../../store/store.js'
import { boundsAt } from './periods.js'

/** A window of the calendar that runs from one instant until another. */
export interface WindowAt {
  /** With the bounds of the periods around, and a limit of the window's length. */
  readonly cell: Cell
  readonly from: number
  readonly until: number
}

/** The window of a cell that runs at an instant. */
export function windowAt(cell: Cell, calendar: Calendar, now: number): WindowAt {
  const bounds = boundsAt(calendar, now)
  const next = bounds.findIndex((bound) => bound > now)
  const [from, until] = [bounds[next - 1], bounds[next]] as [number, number]
  const [limit] = cell.limits as [ResolvedLimit]
  const running = Object.freeze({
    ...cell,
    params: [...cell.params.slice(0, FIRST_BOUND), ...bounds],
    limits: [Object.freeze({ ...limit, windowMs: until - from })],
    calendar,
  })
  return { cell: running, from, until }
}
