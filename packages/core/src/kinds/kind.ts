import type { ReadReport } from '../kernels/reply.js'
import type { TableClass } from '../memory/table.js'
import type { Algorithm, Calendar, CalendarWindow, KernelName } from '../store/algorithms.js'
import type { Cell } from '../store/store.js'
import type { WindowAt } from './calendar/window-at.js'

/**
 * A kind of cell, as the rest of the library sees it. Its arithmetic is in `kernels/`, its table in `memory/`, and its
 * Lua in `lua/cells/`. Limits name the kind of their cells, so that a program has only the kinds that its limits use.
 */
export interface CellKind {
  /** Its name in cells, and in Redis. */
  readonly kernel: KernelName
  readonly algorithms: readonly Algorithm[]
  /** @internal Its table of a memory store. */
  readonly table: TableClass
  /**
   * Whether a parameter is an amount of units, which scales with a share of the limit. Other parameters are a time, a
   * number of segments or a mode.
   */
  readonly isUnits: (param: number) => boolean
  /**
   * Whether its units are permits: they are in flight until they are released or expire, and are renewed and released
   * by id.
   */
  readonly hasPermits: boolean
  readonly lease: LeaseRules
  /** The forms of its cells' ids, by their first word. */
  readonly ids: Readonly<Record<string, IdForm>>
  /** Whether states are small enough for one read and one write when several limits share a key. */
  readonly canBeJoint: boolean
  /** @internal The parameters of a limit that counts refusals too. Undefined if refusals need no separate count. */
  readonly countRefusals: ((params: readonly number[]) => readonly number[]) | undefined
  /**
   * The parameters of a limit that also counts units admitted beyond it. Undefined if processes never count this kind by
   * themselves.
   */
  readonly countInFull: ((params: readonly number[]) => readonly number[]) | undefined
  /**
   * @internal The parameters of a limit whose counters hold more than the limit. Undefined if those of every limit do, or if none
   * needs to.
   */
  readonly widen: ((params: readonly number[]) => readonly number[]) | undefined
  /** @internal The window of the calendar that runs at an instant. Undefined if the kind has no such windows. */
  readonly windowAt: ((cell: Cell, calendar: Calendar, now: number) => WindowAt) | undefined
  /** @internal The least units in use that are gone after `resetMs` and no sooner. Undefined if no debt lasts longer than its limit. */
  readonly usedUntil: ((params: readonly number[], resetMs: number) => number) | undefined
  /**
   * @internal The instant at which one charge of `used` units would be gone by `at + resetMs`; a later instant if that is
   * impossible.
   */
  readonly chargedAt: (params: readonly number[], use: KnownUse) => number
  /**
   * @internal The wait in ms for more units than those that were refused, at most one step too long. Undefined if all units
   * return at once, or where that depends on more of the state.
   */
  readonly waitForMore: ((params: readonly number[], refused: RefusedUnits, units: number) => number) | undefined
  /** @internal Reads the report of its Lua. */
  readonly readReport: ReadReport
}

/**
 * Rules for limits of this kind with a lease, where units are spent after they are counted (see
 * `policy/limits/lease.ts`).
 */
export interface LeaseRules {
  /**
   * The parameters and the capacity that enforce the limit at the instants when units are spent, up to `ttlMs` after
   * they are counted. Undefined if nothing changes.
   *
   * @throws SluiceError `INVALID_POLICY` if no unit is left
   */
  tighten(where: string, params: readonly number[], ttlMs: number): TightenedLimit | undefined
  /**
   * Length in ms of the window, segment or interval within which a unit must be spent; infinite if the kind has none.
   */
  windowLength(params: readonly number[]): number
  /** The end, by the store's clock, of the window that counts a charge made at `now` with this receipt. */
  windowEnd(params: readonly number[], receipt: number, now: number): number
  /** The receipt that a charge of `units` alone would have in an empty cell. */
  receiptAlone(params: readonly number[], receipt: number, units: number): number
}

export interface TightenedLimit {
  readonly params: readonly number[]
  readonly capacity: number
}

/** The meaning of the numbers in a cell's id, which is part of its key: `fixed.100.60000`. */
export interface IdForm {
  /** Minimum count of numbers. Further numbers distinguish equal limits, except in logs. */
  readonly numbers: number
  readonly params: (numbers: readonly number[]) => readonly number[]
  /** The limits that the cell counts: limit, window in ms and capacity of each. */
  readonly limits: (numbers: readonly number[]) => readonly LimitInId[]
}

export type LimitInId = readonly [limit: number, windowMs: number, capacity: number, calendar?: CalendarWindow]

/** A store's last report of a limit: `used` units at `at`, all of which are gone `resetMs` later. */
interface KnownUse {
  readonly windowMs: number
  readonly used: number
  readonly at: number
  readonly resetMs: number
}

/** Units that a limit refused: the wait for them, and the wait for its capacity. */
interface RefusedUnits {
  readonly units: number
  readonly waitMs: number
  readonly resetMs: number
}
