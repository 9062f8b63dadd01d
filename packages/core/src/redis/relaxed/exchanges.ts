import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Count, CountTable } from './counts.js'
import { type Carried, carry, type Destination, type ExchangeOptions, exchange } from './exchange.js'

export interface ExchangesOptions extends ExchangeOptions {
  /** Whether the server of a slot is known to be away. */
  readonly isAway: (slot: number) => boolean
  /** The master that takes scripts without declared keys; undefined where a slot's keys are declared. */
  readonly nodeFor: (slot: number, identity: string) => string | undefined
  /** Sends the decisions that wait. */
  readonly flushDecisions: () => void
  /** Told of counts that nothing is known of that would be missed. */
  readonly onIdle: (count: Count) => void
  /** The time of Redis, as far as is known, for a count that has heard it. */
  readonly now: (count: Count) => number
}

/** Most counts in one script: Redis is held for about a millisecond. */
const MOST_IN_SCRIPT = 128
/** Most scripts under way: their replies may come in one turn of the event loop. */
const MOST_UNDER_WAY = 4
/** For how long the event loop is held at a time, in ms. */
const SLICE_MS = 2

/** The counts of one `syncEvery`: one timer for all of them, while there are any. */
class Round {
  readonly counts = new Set<Count>()
  timer: NodeJS.Timeout | undefined
  isUnderWay = false
  /** Whether its time came while it was. */
  isLate = false
}

/** Sends counts to Redis: at their time, a few scripts after the other, and out of turn what a decision needs at once. */
export class Exchanges {
  readonly #options: ExchangesOptions
  readonly #rounds = new Map<number, Round>()
  /** What goes with the next batch of decisions, or at the end of this turn. */
  #due: Carried[] = []
  readonly #underWay = new Set<Promise<void>>()
  #isClosed = false
  #sends = 0

  constructor(options: ExchangesOptions) {
    this.#options = options
  }

  add(count: Count): void {
    const { syncEveryMs } = count
    let round = this.#rounds.get(syncEveryMs)
    if (!round) {
      round = new Round()
      this.#rounds.set(syncEveryMs, round)
    }
    const known = round
    round.counts.add(count)
    round.timer ??= setInterval(() => this.#pass(known), syncEveryMs).unref()
  }

  /** Takes a count out of all rounds. What is under way is not heard any more. */
  delete(count: Count): void {
    const { syncEveryMs } = count
    const round = this.#rounds.get(syncEveryMs)
    if (!round?.counts.delete(count) || round.counts.size > 0) return
    clearInterval(round.timer)
    this.#rounds.delete(syncEveryMs)
  }

  /** Sends a count before the decisions that are asked from now on. */
  now(count: Count): void {
    if (this.#due.push(carry(count)) === 1) setImmediate(() => this.flush())
  }

  /** When the decisions that wait are sent, in the order of all that is: after what is to be sent out of turn. */
  get order(): number {
    return 2 * this.#sends + 1
  }

  /** Sends what is to be sent out of turn. Decisions that wait are sent next. */
  flush(): void {
    const due = this.#due
    const order = 2 * this.#sends++
    if (due.length === 0) return
    this.#due = []
    for (const { carried, to } of this.#scripts(due, order)) this.#send(carried, to)
  }

  /** Sends all that there is to tell, and resolves once that is over, however it went. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.flush()
    for (const [, round] of this.#rounds) {
      clearInterval(round.timer)
      const unsent = [...round.counts].filter(({ local, slot }) => local.hasUnsent && !this.#options.isAway(slot))
      await this.#sendAll(unsent)
    }
    this.#rounds.clear()
    await Promise.all(this.#underWay)
  }

  async #pass(round: Round): Promise<void> {
    // Where Redis takes longer than that, the next one waits for it.
    round.isLate = round.isUnderWay
    if (round.isUnderWay) return
    round.isUnderWay = true
    let until = performance.now() + SLICE_MS
    let used: Count[] = []
    for (const count of round.counts) {
      if (this.#isClosed) return
      if (performance.now() > until) {
        await nextTurn()
        until = performance.now() + SLICE_MS
      }
      if (this.#options.isAway(count.slot)) this.#keepWhileAway(count)
      else if (count.isIdle) this.#options.onIdle(count)
      else if ((count.isUsed || count.local.hasUnsent) && count.underWay.length === 0) used.push(count)
      if (used.length < MOST_IN_SCRIPT * MOST_UNDER_WAY) continue
      await this.#sendAll(used)
      used = []
      until = performance.now() + SLICE_MS
    }
    await this.#sendAll(used)
    round.isUnderWay = false
    if (round.isLate && round.counts.size > 0) this.#pass(round)
  }

  /** While Redis is away the fallback goes on from what was counted, as long as that counts for anything. */
  #keepWhileAway(count: Count): void {
    const isAsked = count.isAsked || count.underWay.length > 0
    if (!isAsked && !(count.heard && count.local.resetAfter(this.#options.now(count)) > 0)) this.#options.onIdle(count)
  }

  async #sendAll(counts: readonly Count[]): Promise<void> {
    if (counts.length === 0) return
    let sent: Promise<void>[] = []
    const carried = counts.map(carry)
    // What was asked before is sent before.
    this.#options.flushDecisions()
    for (const { carried: some, to } of this.#scripts(carried, 2 * this.#sends)) {
      sent.push(this.#send(some, to))
      if (sent.length < MOST_UNDER_WAY) continue
      await Promise.all(sent)
      sent = []
    }
    await Promise.all(sent)
  }

  #send(carried: readonly Carried[], to: Destination): Promise<void> {
    const over = exchange(this.#options, carried, to).finally(() => this.#underWay.delete(over))
    this.#underWay.add(over)
    return over
  }

  /** Which counts go in which script: by master where that can be, else by slot. */
  *#scripts(all: readonly Carried[], order: number): Generator<{ carried: readonly Carried[]; to: Destination }> {
    const byPlace = new Map<string | number, Carried[]>()
    for (const carried of all) {
      const { slot, identity, isAlone, isGone } = carried.count
      if (isGone) continue
      if (isAlone) {
        yield { carried: [carried], to: { slot, node: undefined, order } }
        continue
      }
      const place = this.#options.nodeFor(slot, identity) ?? slot
      const others = byPlace.get(place)
      if (!others) byPlace.set(place, [carried])
      else if (others.push(carried) === MOST_IN_SCRIPT) {
        byPlace.delete(place)
        yield { carried: byTable(others), to: destination(place, others, order) }
      }
    }
    for (const [place, carried] of byPlace) yield { carried: byTable(carried), to: destination(place, carried, order) }
  }
}

function destination(place: string | number, [first]: readonly Carried[], order: number): Destination {
  return { slot: (first as Carried).count.slot, node: typeof place === 'string' ? place : undefined, order }
}

/** Counts of one cell together, as their parameters are sent once for all of them. */
function byTable(all: readonly Carried[]): readonly Carried[] {
  const { table } = (all[0] as Carried).count
  if (all.every(({ count }) => count.table === table)) return all
  const groups = new Map<CountTable, Carried[]>()
  for (const carried of all) {
    const others = groups.get(carried.count.table)
    if (others) others.push(carried)
    else groups.set(carried.count.table, [carried])
  }
  return [...groups.values()].flat()
}
