import type { Store } from '@sluice/core'
import {
  AWAY,
  type FigureStep,
  type Figures,
  figuresIn,
  getOrInsert,
  labelsIn,
  PROCESSES,
  responsesIn,
  STEP_MS,
} from '@sluice/core/internal'
import { OneAtATime } from '../one-at-a-time.js'
import { Problem } from '../problem.js'
import type { HistoryAnswer, HistoryBody, HistoryRow, ResponsesRow } from './answers.js'
import { meaningOf } from './count-names.js'
import { emptyDurations, roundTripOf } from './quantiles.js'
import { largest } from './sum.js'
import { Sum } from './totals.js'

const MAX_STEPS: Readonly<Record<FigureStep, number>> = { minute: 1500, hour: 2200 }

type Sums = ReadonlyMap<string, number> | undefined

/** The figures of minutes and hours of a store. One question is answered at a time. */
export class History {
  readonly #figures: Figures
  /** Each reads up to 2,200 keys. */
  readonly #answers = new OneAtATime<HistoryAnswer>()

  constructor(store: Store) {
    this.#figures = figuresIn(store)
  }

  /** @throws Problem; SluiceError `STORE_UNAVAILABLE` */
  read({ from, to, step }: HistoryBody): Promise<HistoryAnswer> {
    const stepMs = STEP_MS[step]
    const [first, last] = [Math.floor(from / stepMs), Math.floor(to / stepMs)]
    if (last < first) throw new Problem(400, 'to: expected a time after from')
    if (last - first >= MAX_STEPS[step]) {
      throw new Problem(400, `from: expected at most ${MAX_STEPS[step]} ${step}s before to`)
    }
    return this.#answers.answer(`${step} ${first} ${last}`, () => this.#read(step, first, last))
  }

  async #read(step: FigureStep, first: number, last: number): Promise<HistoryAnswer> {
    const sums = await this.#figures.sums(step, first, last)
    const columns = new Columns(sums.length)
    for (const [i, each] of sums.entries()) columns.add(i, each)
    const { processes, awayMs, totals, durations } = columns
    const trips = durations.map(roundTripOf)
    return {
      step,
      now: Math.floor(this.#figures.now()),
      at: sums.map((_, i) => (first + i) * STEP_MS[step]),
      processes,
      decisions: totals.map(({ decisions }) => decisions),
      refused: totals.map(({ refused }) => refused),
      reported: totals.map(({ reported }) => reported),
      alone: totals.map(({ alone }) => alone),
      awayMs,
      rows: columns.readRows(),
      responses: columns.readResponses(),
      roundTrip: { p50: trips.map(({ p50 }) => p50), p99: trips.map(({ p99 }) => p99) },
      notes: columns.notes(),
    }
  }
}

/** The sums of steps as columns. */
class Columns {
  readonly processes: number[]
  readonly awayMs: number[]
  readonly totals: Sum[]
  readonly durations: number[][]
  readonly #rows = new Map<string, number[]>()
  readonly #responses = new Map<string, number[]>()
  readonly #size: number
  #unreadable = 0
  #unknown = new Set<string>()

  constructor(size: number) {
    this.#size = size
    this.processes = new Array<number>(size).fill(0)
    this.awayMs = new Array<number>(size).fill(0)
    this.totals = Array.from({ length: size }, () => new Sum())
    this.durations = Array.from({ length: size }, emptyDurations)
  }

  add(i: number, sums: Sums): void {
    if (!sums) this.#unreadable++
    for (const [name, count] of sums ?? []) {
      const { labels, responses, bucket, isUnknown } = meaningOf(name)
      if (bucket !== undefined) (this.durations[i] as number[])[bucket] = count
      if (name === PROCESSES) this.processes[i] = count
      if (name === AWAY) this.awayMs[i] = count
      if (isUnknown) this.#unknown.add(name)
      if (labels) this.totals[i]?.add(labels, count)
      const rows = labels ? this.#rows : responses && this.#responses
      if (rows) getOrInsert(rows, name, () => new Array<number>(this.#size).fill(0))[i] = count
    }
  }

  readRows(): HistoryRow[] {
    return rowsOf(this.#rows, labelsIn)
  }

  readResponses(): ResponsesRow[] {
    return rowsOf(this.#responses, responsesIn)
  }

  notes(): string[] {
    const notes: string[] = []
    if (this.#unreadable > 0) notes.push(`Steps whose figures are not ours are left out: ${this.#unreadable}.`)
    if (this.#unknown.size > 0)
      notes.push(`Counts that this version does not know are left out: ${this.#unknown.size}.`)
    return notes
  }
}

/** The largest columns, each with the meaning of its name. */
function rowsOf<Meaning extends object>(
  columns: ReadonlyMap<string, number[]>,
  meaningIn: (name: string) => Meaning | undefined,
): (Meaning & { readonly counts: readonly number[] })[] {
  const sizeOf = (column: readonly number[]) => column.reduce((sum, count) => sum + count, 0)
  const rows = largest(columns, sizeOf, ([name, column], into) => {
    const others = into.get(name)
    into.set(name, others ? others.map((count, i) => count + (column[i] as number)) : column)
  })
  return rows.flatMap(([name, counts]) => {
    const meaning = meaningIn(name)
    return meaning ? [{ ...meaning, counts }] : []
  })
}
