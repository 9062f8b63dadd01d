import * as bucket from '../kernels/bucket.js'
import * as concurrency from '../kernels/concurrency.js'
import * as counter from '../kernels/counter.js'
import * as log from '../kernels/log.js'
import type { ReadReport } from '../kernels/reply.js'
import * as segments from '../kernels/segments.js'
import { SluiceError } from '../util/errors.js'
import { exactProduct } from '../util/validate.js'

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

const KIND_OF: { readonly [Kind in KernelName as Algorithms[Kind]]: Kind } = {
  gcra: 'bucket',
  tokenBucket: 'bucket',
  leakyBucket: 'bucket',
  fixedWindow: 'counter',
  slidingWindow: 'segments',
  slidingLog: 'log',
  concurrency: 'concurrency',
}

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

/** The most that changes of clocks make a window longer, even where a zone moves over the date line. */
const CALENDAR_SLACK_MS = 86_400_000

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

/** A store's last report of a limit: `used` units at `at`, all of which are gone `resetMs` later. */
interface KnownUse {
  readonly windowMs: number
  readonly used: number
  readonly at: number
  readonly resetMs: number
}

export interface TightenedLimit {
  readonly params: readonly number[]
  readonly capacity: number
}

/** The meaning of the numbers in a cell's id, which is part of its key: `fixed.100.60000`. */
interface IdForm {
  /** Minimum count of numbers. Further numbers distinguish equal limits, except in logs. */
  readonly numbers: number
  readonly params: (numbers: readonly number[]) => readonly number[]
  /** The limits that the cell counts: limit, window in ms and capacity of each. */
  readonly limits: (numbers: readonly number[]) => readonly LimitInId[]
}

type LimitInId = readonly [limit: number, windowMs: number, capacity: number, calendar?: CalendarWindow]

/**
 * A kind of cell, as the rest of the library sees it. Its arithmetic is in `kernels/`, its table in `memory/`, and its
 * Lua in `lua/cells/`.
 */
export interface CellKind {
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
   * @internal The parameters of a limit whose counters hold more than the limit. Undefined if those of every limit do, or if
   * none needs to.
   */
  readonly widen: ((params: readonly number[]) => readonly number[]) | undefined
  /**
   * @internal The least units in use that are gone after `resetMs` and no sooner. Undefined where no debt lasts longer than its
   * limit.
   */
  readonly usedUntil: ((params: readonly number[], resetMs: number) => number) | undefined
  /**
   * @internal The instant at which one charge of `used` units would be gone by `at + resetMs`; a later instant if that
   * is impossible.
   */
  readonly chargedAt: (params: readonly number[], use: KnownUse) => number
  /**
   * @internal The wait in ms for more units than those that were refused, at most one step too long. Undefined where all units
   * return at once, or where that depends on more of the state.
   */
  readonly waitForMore: ((params: readonly number[], refused: RefusedUnits, units: number) => number) | undefined
  /** @internal Reads the report of its Lua. */
  readonly readReport: ReadReport
}

/** Units that a limit refused: the wait for them, and the wait for its capacity. */
interface RefusedUnits {
  readonly units: number
  readonly waitMs: number
  readonly resetMs: number
}

const first = (param: number) => param === 0

/** For kinds with one limit per cell, whose capacity is that limit. */
const oneLimit: IdForm['limits'] = ([limit = 0, windowMs = 0]) => [[limit, windowMs, limit]]
const asTheyAre: IdForm['params'] = (numbers) => numbers

/** For kinds without windows, whose receipts do not depend on the rest of the cell. */
const NO_RULES: LeaseRules = {
  tighten: () => undefined,
  windowLength: () => Number.POSITIVE_INFINITY,
  windowEnd: () => Number.POSITIVE_INFINITY,
  receiptAlone: (_, receipt) => receipt,
}

/** The rules that few kinds have, where a kind has none of them. */
const NO_MORE_RULES = {
  countRefusals: undefined,
  countInFull: undefined,
  widen: undefined,
  usedUntil: undefined,
  waitForMore: undefined,
} as const

/** For kinds whose units are gone a window after they were charged. */
const windowBefore: CellKind['chargedAt'] = (_, { windowMs, at, resetMs }) => Math.min(at, at + resetMs - windowMs)

type BucketParams = [limit: number, windowMs: number, capacity: number, stepMs: number]

export const CELL_KINDS: Readonly<Record<KernelName, CellKind>> = {
  // Parameters: limit, windowMs, capacity, stepMs.
  bucket: {
    ...NO_MORE_RULES,
    isUnits: (param) => param === 0 || param === 2,
    hasPermits: false,
    ids: {
      bucket: {
        numbers: 4,
        params: asTheyAre,
        limits: ([limit = 0, windowMs = 0, capacity = 0]) => [[limit, windowMs, capacity]],
      },
    },
    canBeJoint: true,
    readReport: bucket.readReport,
    // The wait grows evenly up to that for the capacity. After the limit was lowered, that is faster than by the limit.
    waitForMore(params, { units: refused, waitMs, resetMs }, units) {
      const [, , capacity, stepMs] = params as BucketParams
      const growsMs = ((resetMs - waitMs) * (units - refused)) / (capacity - refused)
      return Math.min(resetMs, waitMs + Math.ceil(growsMs / stepMs) * stepMs)
    },
    usedUntil(params, resetMs) {
      const [limit, windowMs, , stepMs] = params as BucketParams
      return Math.floor(((Math.ceil(resetMs / stepMs) - 1) * stepMs * limit) / windowMs) + 1
    },
    chargedAt(params, { used, at, resetMs }) {
      const [limit, windowMs, , stepMs] = params as BucketParams
      return stepMs === 1 ? Math.min(at, at + resetMs - Math.floor((used * windowMs) / limit)) : at
    },
    lease: {
      tighten(where, params, ttlMs) {
        const [limit, windowMs, capacity, stepMs] = params as BucketParams
        // Leases of buckets that refill at intervals end with the interval, so nothing refills during a lease.
        if (stepMs !== 1 || capacity === 0) return undefined
        const left = capacity - Math.ceil((ttlMs * limit) / windowMs)
        if (left >= 1) return { params: [limit, windowMs, left, stepMs], capacity: left }
        throw new SluiceError(
          'INVALID_POLICY',
          `${where}: lease: ttl: expected one in which less than the capacity of ${capacity} comes back, got ${ttlMs} ms`,
        )
      },
      windowLength: intervalLength,
      // Infinite without intervals.
      windowEnd: (params, _, now) => (Math.floor(now / intervalLength(params)) + 1) * intervalLength(params),
      receiptAlone: (params, receipt, units) => Math.min(receipt, units * (params as BucketParams)[1]),
    },
  },

  // Parameters: limit, windowMs, whether refusals count (1 or 0), how windows start (see kernels/counter.ts), and for windows of
  // the calendar the bounds of the periods around now, which the id leaves out.
  counter: {
    ...NO_MORE_RULES,
    isUnits: first,
    hasPermits: false,
    ids: {
      fixed: { numbers: 2, params: ([limit = 0, windowMs = 0]) => [limit, windowMs, 0, 1], limits: oneLimit },
      opened: { numbers: 2, params: ([limit = 0, windowMs = 0]) => [limit, windowMs, 0, 0], limits: oneLimit },
      ...calendarIds(),
    },
    canBeJoint: true,
    readReport: counter.readReport,
    countRefusals: countAllOfWindow,
    countInFull: countAllOfWindow,
    // Clock-aligned windows begin by this process's clock, too.
    chargedAt: (params, use) => (params[3] === 0 ? windowBefore(params, use) : use.at),
    lease: {
      ...NO_RULES,
      windowLength: ([, windowMs]) => windowMs as number,
      // The receipt is the start of the window.
      windowEnd: ([, windowMs], receipt) => receipt + (windowMs as number),
    },
  },

  // Parameters: limit, windowMs, segments, edge mode (plus `WITH_REFUSALS` if refusals count).
  segments: {
    ...NO_MORE_RULES,
    isUnits: first,
    hasPermits: false,
    ids: { sliding: { numbers: 4, params: asTheyAre, limits: oneLimit } },
    canBeJoint: true,
    readReport: segments.readReport,
    countRefusals: countAllOfSegments,
    countInFull: countAllOfSegments,
    widen: (params) => params.with(3, (params[3] as number) + segments.WIDE),
    chargedAt: windowBefore,
    lease: {
      ...NO_RULES,
      windowLength: segmentLength,
      // The receipt is the number of the segment.
      windowEnd: (params, receipt) => (receipt + 1) * segmentLength(params),
    },
  },

  // Parameters: the largest limit, the longest window, then limit and window of each limit that shares the log.
  log: {
    ...NO_MORE_RULES,
    isUnits: (param) => param % 2 === 0,
    hasPermits: false,
    ids: { log: { numbers: 2, params: paramsOfLog, limits: limitsOfLog } },
    canBeJoint: false,
    readReport: log.readReport,
    chargedAt: windowBefore,
    lease: {
      ...NO_RULES,
      tighten(where, params, ttlMs) {
        const [limit = 0, windowMs = 0] = params
        exactProduct(where, 'lease', limit, windowMs + ttlMs)
        return { params: params.map((param, i) => (i % 2 === 0 ? param : param + ttlMs)), capacity: limit }
      },
    },
  },

  // Parameters: limit, ttlMs.
  concurrency: {
    ...NO_MORE_RULES,
    isUnits: first,
    hasPermits: true,
    ids: { concurrency: { numbers: 2, params: asTheyAre, limits: oneLimit } },
    canBeJoint: false,
    readReport: concurrency.readReport,
    chargedAt: windowBefore,
    lease: NO_RULES,
  },
}

/** The largest limit and the longest window, then limit and window of each limit of the log. */
function paramsOfLog(numbers: readonly number[]): readonly number[] {
  const limits = limitsOfLog(numbers)
  return [Math.max(...limits.map(([limit]) => limit)), Math.max(...limits.map(([, windowMs]) => windowMs)), ...numbers]
}

function limitsOfLog(numbers: readonly number[]): readonly LimitInId[] {
  return Array.from({ length: Math.floor(numbers.length / 2) }, (_, i) => {
    const [limit = 0, windowMs = 0] = numbers.slice(2 * i)
    return [limit, windowMs, limit]
  })
}

const KINDS_BY_ALGORITHM: ReadonlyMap<string, CellKind> = new Map(
  Object.entries(KIND_OF).map(([algorithm, kind]) => [algorithm, CELL_KINDS[kind]]),
)

/** The kind of cell that counts an algorithm; undefined for an unknown name. */
export function kindOf(algorithm: string): CellKind | undefined {
  return KINDS_BY_ALGORITHM.get(algorithm)
}

/** The algorithm that a kind counts, if it counts exactly one. */
export function soleAlgorithmOf(kind: KernelName): Algorithm | undefined {
  const algorithms = Object.entries(KIND_OF).flatMap(([algorithm, its]) => (its === kind ? [algorithm] : []))
  return algorithms.length === 1 ? (algorithms[0] as Algorithm) : undefined
}

/** Whether limits of an algorithm hand out permits. Time alone never restores those. */
export function hasPermits(algorithm: unknown): boolean {
  return KINDS_BY_ALGORITHM.get(algorithm as string)?.hasPermits === true
}

/** Whether a cell is a window of the calendar: plans of equal ids may then have other bounds among its parameters. */
export function isCalendar({ kernel, params }: { readonly kernel: KernelName; readonly params: readonly number[] }) {
  return kernel === 'counter' && params[3] === counter.BY_CALENDAR
}

/** Without bounds: they are for a plan at an instant. */
export function calendarParams(limit: number, window: CalendarWindow): readonly number[] {
  return [limit, CALENDAR_MS[window] + CALENDAR_SLACK_MS, 0, counter.BY_CALENDAR]
}

function calendarIds(): Record<CalendarWindow, IdForm> {
  const formOf = (window: CalendarWindow): IdForm => ({
    numbers: 1,
    params: ([limit = 0]) => calendarParams(limit, window),
    limits: ([limit = 0]) => [[limit, CALENDAR_MS[window], limit, window]],
  })
  return { day: formOf('day'), week: formOf('week'), month: formOf('month'), year: formOf('year') }
}

/** The refill interval of a bucket in ms; infinite if it drains greedily. */
function intervalLength([, , , stepMs]: readonly number[]): number {
  return stepMs === 1 ? Number.POSITIVE_INFINITY : (stepMs as number)
}

function countAllOfWindow(params: readonly number[]): readonly number[] {
  return params.with(2, 1)
}

function countAllOfSegments(params: readonly number[]): readonly number[] {
  return params.with(3, (params[3] as number) + segments.WITH_REFUSALS)
}

function segmentLength([, windowMs, segments]: readonly number[]): number {
  return (windowMs as number) / (segments as number)
}
