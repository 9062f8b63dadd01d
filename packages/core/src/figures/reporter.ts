import { randomUUID } from 'node:crypto'
import { type Counting, startCounting } from '../metrics/counting.js'
import type { Snapshot } from '../metrics/snapshot.js'
import { type FiguresKeeper, STEP_MS } from '../store/figures.js'
import { countsOf } from './counts.js'
import { type LiveFigures, liveText } from './live.js'

/** Interval of reports in ms. */
const EVERY_MS = 1000
/** Minutes of an outage whose counts are kept apart. Beyond, they count in the minute after. */
const MAX_WAITING = 120

/** The run of this process: one for all its reporters, so that two of one Redis add the same counts once. */
const run = { id: '', reporters: 0, reports: 0, awayMs: 0, awayUntil: 0 }

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
  readonly #counting: Counting
  readonly #startedAt = Date.now()
  /** By the minutes of the store in which they were taken, the oldest first. */
  readonly #unsent = new Map<number, Unsent>()
  /** The counts that are known to be added, and the number of their report. */
  #added: ReadonlyMap<string, number>
  #addedBy: number | undefined
  #last: { readonly counts: ReadonlyMap<string, number>; readonly atMs: number }
  #timer: NodeJS.Timeout | undefined
  #sending: Promise<void> | undefined
  #isStopped = false

  constructor(keeper: FiguresKeeper) {
    this.#keeper = keeper
    this.#counting = startCounting()
    if (run.reporters++ === 0) run.id = randomUUID()
    const counts = countsOf(this.#counting.read(), run.awayMs)
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
    this.#counting.stop()
    run.reporters--
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
    }, EVERY_MS).unref()
  }

  /** Takes the counts of this instant. Those of a minute take the place of earlier ones. */
  #take(): void {
    const snapshot = this.#counting.read()
    const atMs = performance.now()
    noteAway(snapshot, atMs)
    const counts = countsOf(snapshot, run.awayMs)
    const live = liveText(snapshot, this.#liveParts(counts, atMs))
    this.#last = { counts, atMs }
    this.#unsent.set(Math.floor(this.#keeper.now() / STEP_MS.minute), { atMs, counts, live })
    const [oldest] = this.#unsent.keys()
    if (this.#unsent.size > MAX_WAITING && oldest !== undefined) this.#unsent.delete(oldest)
  }

  #liveParts(counts: ReadonlyMap<string, number>, atMs: number): Pick<LiveFigures, 'startedAt' | 'overMs' | 'counts'> {
    const { counts: before, atMs: beforeMs } = this.#last
    return {
      startedAt: this.#startedAt,
      overMs: Math.max(1, Math.round(atMs - beforeMs)),
      counts: [...counts].map(([name, count]) => [name, count, Math.max(0, count - (before.get(name) ?? 0))]),
    }
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
    const number = ++run.reports
    const isLast = atMs === this.#last.atMs
    const report = (after: number | undefined) =>
      this.#keeper.add({
        run: run.id,
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

/** Adds up the time in which a store was unavailable, once for all reporters. */
function noteAway({ stores }: Snapshot, atMs: number): void {
  const isAway = stores.some(({ state }) => state === 'unavailable')
  if (isAway && run.awayUntil > 0) run.awayMs += Math.round(atMs - run.awayUntil)
  run.awayUntil = isAway ? atMs : 0
}
