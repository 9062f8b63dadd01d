import { instant, isAhead } from '../kernels/clock.js'
import * as log from '../kernels/log.js'
import { type State, States, type Table } from './table.js'

interface LogState extends State {
  /** Oldest first. */
  entries: number[]
}

const EMPTY: number[] = []

export class LogTable extends States<LogState> implements Table {
  /** The longest window of any limit of this log. */
  readonly #longestMs: number
  /** Limit and window of each limit, flat. */
  readonly #pairs: readonly number[]

  #entries: number[] = EMPTY
  #at = 0

  constructor([, longestMs, ...pairs]: readonly number[], graceMs: number) {
    super(graceMs)
    this.#longestMs = longestMs as number
    this.#pairs = pairs
  }

  look(identity: string, now: number, need: number): number {
    const state = this.find(identity, now, need)
    this.#entries = state?.entries ?? EMPTY
    const newest = state?.entries.at(-1) ?? now
    this.#at = instant(newest, now, this.#longestMs)
    if (isAhead(newest, now, this.#longestMs)) this.#entries = this.#entries.map((entry) => Math.min(entry, now))
    let longest = 0
    for (let i = 0; i < this.#pairs.length; i += 2) {
      const wait = this.#wait(need, i)
      if (wait < 0) return wait
      if (wait > longest) longest = wait
    }
    return longest
  }

  charge(cost: number): void {
    if (this.#entries === EMPTY) this.#entries = []
    for (let n = 0; n < cost; n++) this.#entries.push(this.#at)
    this.#write()
  }

  refund(cost: number, receipt: number): void {
    if (!this.state) return
    let end = this.#entries.length
    while (end > 0 && (this.#entries[end - 1] as number) > receipt) end--
    let start = end
    while (start > 0 && end - start < cost && this.#entries[start - 1] === receipt) start--
    if (start === end) return
    this.#entries.splice(start, end - start)
    this.#write()
  }

  heal(): void {
    if (this.state && this.#entries !== this.state.entries) this.#write()
  }

  report(values: number[], admitted: boolean): void {
    const count = this.#entries.length
    for (let i = 0; i < this.#pairs.length; i += 2) {
      const limit = this.#pairs[i] as number
      const windowMs = this.#pairs[i + 1] as number
      values.push(
        limit - this.#live(i),
        admitted ? 0 : this.#wait(this.need, i),
        count === 0 ? 0 : Math.max(0, (this.#entries[count - 1] as number) + windowMs - this.now),
        this.#at,
      )
    }
  }

  protected consumed({ entries }: LogState, now: number): number {
    let share = 0
    for (let i = 0; i < this.#pairs.length; i += 2) {
      const first = log.firstLive(entries, 0, entries.length, now, this.#pairs[i + 1] as number)
      share = Math.max(share, (entries.length - first) / (this.#pairs[i] as number))
    }
    return share
  }

  /** How many entries count for a limit; beyond the limit they make no difference. */
  #live(pair: number, at = this.#at): number {
    const total = this.#entries.length
    const first = log.firstLive(this.#entries, 0, total, at, this.#pairs[pair + 1] as number)
    return Math.min(total - first, this.#pairs[pair] as number)
  }

  #wait(cost: number, pair: number): number {
    const limit = this.#pairs[pair] as number
    const windowMs = this.#pairs[pair + 1] as number
    const wait = log.waitFor(this.#entries, this.#entries.length, this.#live(pair), this.#at, cost, limit, windowMs)
    return wait > 0 ? wait + this.#at - this.now : wait
  }

  /** Keeps only entries that counted when the newest came: no more are needed, even if the clock steps back. */
  #write(): void {
    const newest = this.#entries.at(-1)
    let keep = 0
    for (let i = 0; i < this.#pairs.length; i += 2) keep = Math.max(keep, this.#live(i, newest))
    if (keep < this.#entries.length) this.#entries.splice(0, this.#entries.length - keep)
    if (keep === 0) {
      this.states.delete(this.identity)
      return
    }
    const resetAt = (newest as number) + this.#longestMs
    if (this.state) {
      this.state.entries = this.#entries
      this.state.resetAt = resetAt
    } else this.states.set(this.identity, { entries: this.#entries, resetAt })
  }
}
