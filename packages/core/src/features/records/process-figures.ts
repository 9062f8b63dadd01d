import {
  type CountsReport,
  type FigureStep,
  type FiguresKeeper,
  type LiveText,
  MAX_FIGURE_NAMES,
  STEP_MS,
} from '../../store/figures.js'
import { othersOf, PROCESSES } from './names.js'

/** Steps that are kept: 7 days of minutes, 90 of hours. */
const KEPT: Readonly<Record<FigureStep, number>> = { minute: 10_080, hour: 2160 }
const EMPTY: ReadonlyMap<string, number> = new Map()

/** The figures of this process alone. Does the same as lua/figures.lua. */
export class ProcessFigures implements FiguresKeeper {
  readonly from = 'process'
  readonly #now: () => number
  readonly #added = new Map<string, number>()
  readonly #steps = { minute: new Steps(KEPT.minute), hour: new Steps(KEPT.hour) }
  #live: (Omit<LiveText, 'ageMs'> & { readonly at: number }) | undefined

  constructor(now: () => number) {
    this.#now = now
  }

  now(): number {
    return this.#now()
  }

  async add({ run, ageMs, live, counts }: CountsReport): Promise<boolean> {
    const at = this.#now()
    const steps = (Object.keys(STEP_MS) as FigureStep[]).map((step) =>
      this.#steps[step].at(Math.floor((at - ageMs) / STEP_MS[step])),
    )
    for (const sums of steps) sums.set(PROCESSES, 1)
    for (const [name, count, added] of counts) {
      const more = count - (this.#added.get(name) ?? added)
      if (more <= 0) continue
      this.#added.set(name, count)
      for (const sums of steps) addTo(sums, name, more)
    }
    if (live !== '') this.#live = { run, at, text: live }
    return true
  }

  async live(): Promise<readonly LiveText[]> {
    if (!this.#live) return []
    const { run, at, text } = this.#live
    return [{ run, ageMs: Math.max(0, this.#now() - at), text }]
  }

  async sums(step: FigureStep, first: number, last: number): Promise<readonly ReadonlyMap<string, number>[]> {
    return Array.from({ length: last - first + 1 }, (_, i) => this.#steps[step].read(first + i))
  }

  beforeClose(): void {}
}

function addTo(sums: Map<string, number>, name: string, count: number): void {
  const counted = sums.has(name) || sums.size < MAX_FIGURE_NAMES ? name : othersOf(name)
  sums.set(counted, (sums.get(counted) ?? 0) + count)
}

/** The sums of the last steps. Those before the last one are texts, which take a tenth of the memory. */
class Steps {
  readonly #kept: number
  readonly #texts = new Map<number, string>()
  #number = Number.NEGATIVE_INFINITY
  #sums = new Map<string, number>()

  constructor(kept: number) {
    this.#kept = kept
  }

  /** The sums of a step, to change. */
  at(number: number): Map<string, number> {
    if (number === this.#number) return this.#sums
    if (this.#sums.size > 0) this.#texts.set(this.#number, JSON.stringify([...this.#sums]))
    this.#sums = new Map(this.read(number))
    this.#texts.delete(number)
    this.#number = number
    for (const minute of this.#texts.keys()) if (minute <= number - this.#kept) this.#texts.delete(minute)
    return this.#sums
  }

  read(number: number): ReadonlyMap<string, number> {
    if (number === this.#number) return this.#sums
    const text = this.#texts.get(number)
    return text === undefined ? EMPTY : new Map(JSON.parse(text) as [string, number][])
  }
}
