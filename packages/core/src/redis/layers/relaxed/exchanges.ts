import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Outbox } from '../../batching/outbox.js'
import type { Count, CountTable } from './counts.js'
import { type Carried, carry, type Destination, type ExchangeOptions, exchange, type Place } from './exchange.js'

export interface ExchangesOptions extends ExchangeOptions {
  readonly outbox: Outbox
  /** Called with counts that hold nothing that would be missed. */
  readonly onIdle: (count: Count) => void
  /** The time of Redis, as far as is known, for a count that has received it. */
  readonly now: (count: Count) => number
}

/** Most counts in one script: Redis is held for about a millisecond. */
const MOST_IN_SCRIPT = 128
/** From so many counts under way on, no more are sent in a round: their replies may come in one turn of the event loop. */
const MOST_UNDER_WAY = 256
/** For how long a round holds the event loop at a time, in ms, and then by one more script. */
const SLICE_MS = 1
/** Of how many counts at a time those are put together that go in one script. */
const MOST_AT_ONCE = 1024
/** Most identities of a round that are remembered for having been asked of Redis, about 10 MB. Then all are forgotten early. */
const MOST_ASKED_ONCE = 100_000

/** The counts of one `syncEvery`: one timer for all of them, while there are any, or identities that were asked once. */
class Round {
  readonly counts = new Set<Count>()
  /** Whose `askedOnce` ends with the round, and how many identities these have. */
  readonly tables = new Set<CountTable>()
  askedOnce = 0
  timer: NodeJS.Timeout | undefined
  isUnderWay = false
  /** Whether its time came while it was. */
  isLate = false
}

/** Sends counts to Redis: at their time, a few scripts after the other, and out of turn what a decision needs at once. */
export class Exchanges {
  readonly #options: ExchangesOptions
  readonly #rounds = new Map<number, Round>()
  /** What goes before the decisions that wait. */
  #due: Carried[] = []
  readonly #underWay = new Set<Promise<void>>()
  #isClosed = false

  constructor(options: ExchangesOptions) {
    this.#options = options
  }

  add(count: Count): void {
    this.#roundOf(count.syncEveryMs).counts.add(count)
  }

  /** Takes a count out of all rounds. Replies to what is under way are not applied any more. */
  delete(count: Count): void {
    this.#rounds.get(count.syncEveryMs)?.counts.delete(count)
  }

  /** Remembers until the round ends that a decision was asked of Redis. Call it once that waits to be sent. */
  noteAsked(table: CountTable, identity: string, syncEveryMs: number): void {
    if (this.#isClosed) return
    const round = this.#roundOf(syncEveryMs)
    if (round.askedOnce >= MOST_ASKED_ONCE) forgetAsked(round)
    const { askedOnce } = table
    const { size } = askedOnce
    askedOnce.set(identity, this.#options.outbox.orderOfDue)
    if (askedOnce.size === size) return
    round.askedOnce++
    round.tables.add(table)
  }

  /** Whether it was asked of Redis in this round, and that was sent: an exchange that comes now finds it charged. */
  wasAsked(table: CountTable, identity: string): boolean {
    const order = table.askedOnce.get(identity)
    return order !== undefined && order < this.#options.outbox.orderOfDue
  }

  #roundOf(syncEveryMs: number): Round {
    let round = this.#rounds.get(syncEveryMs)
    if (!round) {
      round = new Round()
      this.#rounds.set(syncEveryMs, round)
    }
    const known = round
    round.timer ??= setInterval(() => this.#pass(known, syncEveryMs), syncEveryMs).unref()
    return round
  }

  /** Sends a count before the decisions that are asked from now on. */
  now(count: Count): void {
    if (this.#due.push(carry(count)) === 1) this.#options.outbox.addFirst(this.#sendDue)
  }

  readonly #sendDue = (order: number): void => {
    const due = this.#due
    this.#due = []
    for (const { some, slot, node } of this.#scripts(due, ({ count }) => count)) this.#send(some, { slot, node, order })
  }

  /** Sends all that there is to send, and resolves once that is over, however it went. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#options.outbox.flush()
    for (const round of this.#rounds.values()) {
      clearInterval(round.timer)
      forgetAsked(round)
      const unsent = [...round.counts].filter(({ local, slot }) => local.hasUnsent && !this.#isAway(slot))
      await this.#sendAll(unsent)
    }
    this.#rounds.clear()
    await Promise.all(this.#underWay)
  }

  async #pass(round: Round, syncEveryMs: number): Promise<void> {
    // Where Redis takes longer than that, the next one waits for it.
    round.isLate = round.isUnderWay
    if (round.isUnderWay) return
    if (round.counts.size === 0 && round.askedOnce === 0) {
      clearInterval(round.timer)
      this.#rounds.delete(syncEveryMs)
      return
    }
    round.isUnderWay = true
    forgetAsked(round)
    const slice = new Slice()
    let used: Count[] = []
    for (const count of round.counts) {
      if (this.#isClosed) return
      if (slice.isOver) await slice.next()
      if (this.#isAway(count.slot)) this.#keepWhileAway(count)
      else if (count.isIdle) this.#options.onIdle(count)
      else if ((count.isUsed || count.local.hasUnsent) && count.underWay.length === 0) used.push(count)
      if (used.length < MOST_AT_ONCE) continue
      await this.#sendAll(used)
      used = []
      await slice.next()
    }
    await this.#sendAll(used)
    round.isUnderWay = false
    if (round.isLate) this.#pass(round, syncEveryMs)
  }

  /** While Redis is away the fallback goes on from what was counted, as long as that counts for anything. */
  #keepWhileAway(count: Count): void {
    const isAsked = count.isAsked || count.underWay.length > 0
    if (!isAsked && !(count.heard && count.local.resetAfter(this.#options.now(count)) > 0)) this.#options.onIdle(count)
  }

  #isAway(slot: number): boolean {
    return this.#options.breaker.causeFor(slot) !== undefined
  }

  async #sendAll(counts: readonly Count[]): Promise<void> {
    if (counts.length === 0) return
    const slice = new Slice()
    let sent: Promise<void>[] = []
    let underWay = 0
    for (const { some, slot, node } of this.#scripts(counts, (count) => count)) {
      // Since they were looked through, some may have been dropped, and the store closed.
      const wanted = some.filter(({ isGone, local }) => !isGone && (local.hasUnsent || !this.#isClosed))
      if (wanted.length === 0) continue
      // What was asked before is sent before. What is charged from here on goes with a later exchange.
      const { outbox } = this.#options
      outbox.flush()
      sent.push(this.#send(wanted.map(carry), { slot, node, order: outbox.order }))
      underWay += some.length
      if (underWay >= MOST_UNDER_WAY) {
        await Promise.all(sent)
        sent = []
        underWay = 0
        // Replies were read in this turn.
        await slice.next()
      } else if (slice.isOver) await slice.next()
    }
    await Promise.all(sent)
  }

  #send(carried: readonly Carried[], to: Destination): Promise<void> {
    const over = exchange(this.#options, carried, to).finally(() => this.#underWay.delete(over))
    this.#underWay.add(over)
    return over
  }

  /** What goes in which script: by master where that can be, else by slot. */
  *#scripts<T>(all: readonly T[], countOf: (each: T) => Count): Generator<{ some: readonly T[] } & Place> {
    const byPlace = new Map<string | number, T[]>()
    const placed = (place: string | number, some: readonly T[]) => {
      const { slot } = countOf(some[0] as T)
      return { some: byTable(some, countOf), slot, node: typeof place === 'string' ? place : undefined }
    }
    for (const each of all) {
      const { slot, identity, isAlone, isGone } = countOf(each)
      if (isGone) continue
      if (isAlone) {
        yield { some: [each], slot, node: undefined }
        continue
      }
      const place = this.#options.crossSlots?.nodeFor(slot, identity) ?? slot
      const others = byPlace.get(place)
      if (!others) byPlace.set(place, [each])
      else if (others.push(each) === MOST_IN_SCRIPT) {
        byPlace.delete(place)
        yield placed(place, others)
      }
    }
    for (const [place, some] of byPlace) yield placed(place, some)
  }
}

/** From one turn of the event loop to the next: what has to be done is done in such pieces. */
class Slice {
  #until = performance.now() + SLICE_MS

  get isOver(): boolean {
    return performance.now() > this.#until
  }

  async next(): Promise<void> {
    await nextTurn()
    this.#until = performance.now() + SLICE_MS
  }
}

function forgetAsked(round: Round): void {
  for (const { askedOnce } of round.tables) askedOnce.clear()
  round.tables.clear()
  round.askedOnce = 0
}

/** Counts of one cell together, as their parameters are sent once for all of them. */
function byTable<T>(all: readonly T[], countOf: (each: T) => Count): readonly T[] {
  const { table } = countOf(all[0] as T)
  if (all.every((each) => countOf(each).table === table)) return all
  const groups = new Map<CountTable, T[]>()
  for (const each of all) {
    const { table } = countOf(each)
    const others = groups.get(table)
    if (others) others.push(each)
    else groups.set(table, [each])
  }
  return [...groups.values()].flat()
}
