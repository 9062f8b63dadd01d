import { type FiguresKeeper, STEP_MS } from '../../store/figures.js'

/** Interval of reports in ms. */
const EVERY_MS = 1000
/** Minutes of an outage whose counts are kept apart. Beyond, they count in the minute after. */
const MAX_WAITING = 120

/** The run of a process, and the number of its last report. Reporters of the same counts share it: they then count once. */
export interface Run {
  readonly id: string
  reports: number
}

/** The counts to report. */
export interface CountSource {
  /** They never fall. */
  read(): {
    readonly counts: ReadonlyMap<string, number>
    live(before: ReadonlyMap<string, number>, overMs: number): string
  }
  stop(): void
}

/** Counts that are not known to be added. */
interface Unsent {
  readonly atMs: number
  readonly counts: ReadonlyMap<string, number>
  readonly live: string
}

/** Reports the counts of this process to a keeper, each second. */
export class Reporter {
  /** Why the last report failed; undefined if it did not. */
  failure: Error | undefined
  readonly #keeper: FiguresKeeper
  readonly #source: CountSource
  readonly #run: Run
  readonly #everyMs: number
  /** By the minutes of the store in which they were taken, the oldest first. */
  readonly #unsent = new Map<number, Unsent>()
  /** The counts that are known to be added, and the number of their report. */
  #added: ReadonlyMap<string, number>
  #addedBy: number | undefined
  #last: { readonly counts: ReadonlyMap<string, number>; readonly atMs: number }
  #timer: NodeJS.Timeout | undefined
  #sending: Promise<void> | undefined
  #isStopped = false

  constructor(keeper: FiguresKeeper, source: CountSource, run: Run, everyMs = EVERY_MS) {
    this.#keeper = keeper
    this.#source = source
    this.#run = run
    this.#everyMs = everyMs
    const { counts } = source.read()
    this.#added = counts
    this.#last = { counts, atMs: performance.now() }
    this.#timer = this.#later()
  }

  /** Reports once more, and ends. */
  async stop(): Promise<void> {
    if (this.#isStopped) return
    this.#isStopped = true
    clearTimeout(this.#timer)
    await this.#sending
    this.#take()
    await this.#send()
    this.#source.stop()
  }

  /** Reports now. Resolves once it is known whether the counts were added. Never rejects. */
  async report(): Promise<void> {
    this.#take()
    this.#sending ??= this.#send().finally(() => {
      this.#sending = undefined
    })
    await this.#sending
  }

  #later(): NodeJS.Timeout {
    return setTimeout(() => {
      if (this.#isStopped) return
      this.#timer = this.#later()
      void this.report()
    }, this.#everyMs).unref()
  }

  #take(): void {
    try {
      this.#takeCounts()
    } catch (error) {
      // A clock of the application may fail.
      this.failure = error as Error
    }
  }

  /** Takes the counts of this instant. Those of a minute take the place of earlier ones. */
  #takeCounts(): void {
    const { counts, live } = this.#source.read()
    const atMs = performance.now()
    const text = live(this.#last.counts, Math.max(1, Math.round(atMs - this.#last.atMs)))
    this.#last = { counts, atMs }
    this.#unsent.set(Math.floor(this.#keeper.now() / STEP_MS.minute), { atMs, counts, live: text })
    const [oldest] = this.#unsent.keys()
    if (this.#unsent.size > MAX_WAITING && oldest !== undefined) this.#unsent.delete(oldest)
  }

  /** Sends what is unsent, the oldest first. */
  async #send(): Promise<void> {
    try {
      for (const [minute, unsent] of this.#unsent) {
        await this.#add(unsent)
        // Not if newer counts of that minute have come meanwhile.
        if (this.#unsent.get(minute) === unsent) this.#unsent.delete(minute)
      }
      this.failure = undefined
    } catch (error) {
      // Counts are absolute: the next report has these, too.
      this.failure = error as Error
    }
  }

  async #add({ atMs, counts, live }: Unsent): Promise<void> {
    const number = ++this.#run.reports
    const isLast = atMs === this.#last.atMs
    const report = (after: number | undefined) =>
      this.#keeper.add({
        run: this.#run.id,
        number,
        ageMs: Math.max(0, Math.floor(performance.now() - atMs)),
        after,
        live: isLast ? live : '',
        counts: this.#listed(counts, after === undefined),
      })
    const isAdded = await report(this.#addedBy)
    if (!isAdded) await report(undefined)
    this.#added = counts
    this.#addedBy = number
  }

  /** All counts, or those that are not known to be added. */
  #listed(counts: ReadonlyMap<string, number>, isAll: boolean): [name: string, count: number, added: number][] {
    const listed = [...counts].map(([name, count]): [string, number, number] => [
      name,
      count,
      this.#added.get(name) ?? 0,
    ])
    return isAll ? listed : listed.filter(([, count, added]) => count !== added)
  }
}
