import type { Store } from '@sluice/core'
import { type Figures, figuresIn } from '@sluice/core/internal'
import { OFFENDERS } from '@sluice/core/store'
import type { FiguresAnswer } from './answers.js'
import { LiveSum } from './sum.js'

/** Processes of one answer. */
const MAX_PROCESSES = 200
/** Processes that a note names. */
const MAX_NAMED = 5
/** An answer is given again for as long, in ms: however many ask, Redis is read once. */
const KEPT_MS = 800

/** The live figures of a store, which all who ask at a time share. */
export class Live {
  readonly #store: Store
  readonly #figures: Figures
  #answer: Promise<FiguresAnswer> | undefined

  constructor(store: Store) {
    this.#store = store
    this.#figures = figuresIn(store)
  }

  /** @throws SluiceError `STORE_UNAVAILABLE` */
  read(): Promise<FiguresAnswer> {
    this.#answer ??= this.#read().finally(() => {
      setTimeout(() => {
        this.#answer = undefined
      }, KEPT_MS).unref()
    })
    return this.#answer
  }

  async #read(): Promise<FiguresAnswer> {
    const live = await this.#figures.live()
    const at = Math.floor(this.#figures.now())
    const sum = new LiveSum(at)
    let unreadable = 0
    for (const { figures, ...process } of live) {
      if (figures) sum.add(process, figures)
      else unreadable++
    }
    return {
      at,
      from: this.#figures.from,
      sum: sum.read(),
      processes: [...sum.processes]
        .sort((one, other) => other.perSecond.decisions - one.perSecond.decisions)
        .slice(0, MAX_PROCESSES),
      processCount: live.length,
      offenders: this.#store[OFFENDERS]?.note ? { counted: true } : { counted: false, hint: OFFENDERS_HINT },
      notes: this.#notes(live.length, unreadable, sum),
    }
  }

  #notes(processes: number, unreadable: number, { unknown, incomplete }: LiveSum): string[] {
    const { failure, from } = this.#figures
    const notes: string[] = []
    if (processes === 0 && from === 'processes') {
      notes.push(
        'No process has reported in the last 10 seconds: set report: liveFigures() in redisStore of your servers.',
      )
    }
    if (unreadable > 0) {
      notes.push(`Processes that report in the form of another version are left out: ${unreadable}.`)
    }
    if (unknown > 0) notes.push(`Counts that this version does not know are left out: ${unknown}.`)
    if (incomplete.length > 0) {
      const more = incomplete.length > MAX_NAMED ? ` and ${incomplete.length - MAX_NAMED} more` : ''
      notes.push(
        `Too many limits for a row each, in the processes ${incomplete.slice(0, MAX_NAMED).join(', ')}${more}: ` +
          'their further limits are in the rows "other" of used, and other rows may lack decisions of these processes.',
      )
    }
    if (failure) notes.push(`The last report of this process failed: ${failure.message}.`)
    return notes
  }
}

const OFFENDERS_HINT = 'Set offenders: true in the options of the store, and it counts refusals by identity.'
