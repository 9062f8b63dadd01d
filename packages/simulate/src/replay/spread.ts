import type { LogRecord } from '../record.js'

/** A record and the instant at which it is played. */
export interface Played {
  readonly record: LogRecord
  readonly at: number
}

/** When requests of one interval of a coarse clock arrive: at its beginning, or spread evenly, over all or those of each client. */
export type Spread = 'at once' | 'evenly' | 'evenly by client'

/** Low discrepancy: each number of a sequence is far from those before it. */
const GOLDEN = (Math.sqrt(5) - 1) / 2

/**
 * Spreads the requests of each interval of a coarse clock over it. Where durations are known, starts are not at the beginning of
 * an interval, but as uncertain: each is moved by a part of the interval, evenly in sum.
 */
export class Spreader {
  readonly #isByClient: boolean
  readonly #clientOf: (record: LogRecord) => string | undefined
  #group: LogRecord[] = []
  #moved = 0
  /** Moved records that later ones may precede. */
  #later: Played[] = []

  constructor(spread: Exclude<Spread, 'at once'>, clientOf: (record: LogRecord) => string | undefined) {
    this.#isByClient = spread === 'evenly by client'
    this.#clientOf = clientOf
  }

  /** The records whose instants are known by now, in order. */
  push(batch: readonly LogRecord[]): Played[] {
    for (const record of batch) {
      if (record.durationMs !== undefined) {
        this.#moved = (this.#moved + GOLDEN) % 1
        this.#later.push({ record, at: record.startMs + Math.floor(this.#moved * record.resolutionMs) })
        continue
      }
      if (this.#group.length > 0 && this.#group[0]?.startMs !== record.startMs) this.#spreadGroup()
      this.#group.push(record)
    }
    const until = batch.at(-1)?.startMs ?? Number.NEGATIVE_INFINITY
    return this.#until(until)
  }

  end(): Played[] {
    this.#spreadGroup()
    return this.#until(Number.POSITIVE_INFINITY)
  }

  #until(ms: number): Played[] {
    this.#later.sort((a, b) => a.at - b.at)
    const end = this.#later.findIndex(({ at }) => at >= ms)
    return this.#later.splice(0, end < 0 ? this.#later.length : end)
  }

  #spreadGroup(): void {
    const group = this.#group
    this.#group = []
    const counts = new Map<string | undefined, { of: number; seen: number }>()
    const clientOf = (record: LogRecord) => (this.#isByClient ? this.#clientOf(record) : undefined)
    for (const record of group) {
      const client = clientOf(record)
      const count = counts.get(client)
      if (count) count.of++
      else counts.set(client, { of: 1, seen: 0 })
    }
    for (const record of group) {
      const count = counts.get(clientOf(record)) as { of: number; seen: number }
      const at = record.startMs + Math.floor((count.seen++ / count.of) * record.resolutionMs)
      this.#later.push({ record, at })
    }
  }
}
