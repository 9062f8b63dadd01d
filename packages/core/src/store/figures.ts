/** The counts of a process at an instant, to be added to those of all processes. */
export interface CountsReport {
  /** Random, of this run of the process. */
  readonly run: string
  /** Higher than those of the reports before. */
  readonly number: number
  /** How old the counts are, in ms. */
  readonly ageMs: number
  /** The number of the last report that is known to be added; undefined for a report of all counts. */
  readonly after: number | undefined
  /** The live figures of the process, as text; '' for counts that are older than others. */
  readonly live: string
  /** Each count by its name, and the part of it that is known to be added. */
  readonly counts: readonly (readonly [name: string, count: number, added: number])[]
}

/** The live figures of a process. */
export interface LiveText {
  readonly run: string
  readonly ageMs: number
  readonly text: string
}

export type FigureStep = 'minute' | 'hour'

/** The length of a step in ms. */
export const STEP_MS: Readonly<Record<FigureStep, number>> = { minute: 60_000, hour: 3_600_000 }

/**
 * Names of counts in a minute or an hour. Beyond, decisions are added up as those of the policy `other`. With these others they are
 * fewer than 128, up to which Redis keeps a set in little memory.
 */
export const MAX_FIGURE_NAMES = 110

/** Figures of processes, in a store or in this process. */
export interface FiguresKeeper {
  /** `process`: there are no others. */
  readonly from: 'processes' | 'process'
  /** The store's time in ms, as far as it is known. */
  now(): number
  /** Resolves to whether they are added; otherwise all counts are needed. */
  add(report: CountsReport): Promise<boolean>
  /** Of the processes that have reported in the last 10 s. */
  live(): Promise<readonly LiveText[]>
  /** The sums of consecutive steps, by their numbers: ms since 1970 by the length of a step. Undefined for one that cannot be read. */
  sums(step: FigureStep, first: number, last: number): Promise<readonly (ReadonlyMap<string, number> | undefined)[]>
  /** Calls it once before the store closes, and waits for it. */
  beforeClose(run: () => Promise<void>): void
}

/** The symbol of the part of a store that keeps figures. */
export const FIGURES: unique symbol = Symbol.for('@sluice/core: figures')
