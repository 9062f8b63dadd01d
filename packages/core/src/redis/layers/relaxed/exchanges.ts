import { setImmediate as nextTurn } from 'node:timers/promises'
import { groupBy } from '../../../util/group-by.js'
import type { Destination } from '../../batching/batch.js'
import type { Outbox } from '../../batching/outbox.js'
import { UnderWay } from '../under-way.js'
import type { Count, CountTable } from './counts.js'
import { type ExchangeOptions, exchange } from './exchange.js'

export interface ExchangesOptions extends ExchangeOptions {
  readonly outbox: Outbox
  /** Called with counts that hold nothing that would be missed. */
  readonly onIdle: (count: Count) => void
}

/** Most counts in one script: Redis is held for about a millisecond. */
const MAX_IN_SCRIPT = 128
/** From so many counts under way on, no more are sent in a round: their replies may come in one turn of the event loop. */
const MAX_UNDER_WAY = 256
/** For how long a round holds the event loop at a time, in ms, and then by one more script. */
const SLICE_MS = 1
/** Of how many counts at a time those are put together that go in one script. */
const MAX_AT_ONCE = 1024
/** Most identities of a round that are remembered for having been asked of Redis, about 10 MB. Then all are forgotten early. */
const MAX_ASKED_ONCE = 100_000

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
  readonly #due = new Set<Count>()
  readonly #underWay = new UnderWay()
  #isClosed = false

  constructor(options: ExchangesOptions) {
    this.#options = options
  }

  add(count: Count): void {
    this.#roundOf(count.syncEveryMs).counts.add(count)
  }

  /** Remembers until the round ends that a decision was asked of Redis. Call it once that waits to be sent. */
  noteAsked(table: CountTable, identity: string, syncEveryMs: number): void {
    if (this.#isClosed) return
    const round = this.#roundOf(syncEveryMs)
    if (round.askedOnce >= MAX_ASKED_ONCE) forgetAsked(round)
    const { askedOnce } = table
    const before = askedOnce.size
    askedOnce.set(identity, this.#options.outbox.orderOfDue)
    round.askedOnce += askedOnce.size - before
    round.tables.add(table)
  }

  /** Whether it was asked of Redis in this round, and that was sent: an exchange that comes now finds it charged. */
  wasAsked(table: CountTable, identity: string): boolean {
    const order = table.askedOnce.get(identity)
    return order !== undefined && order < this.#options.outbox.orderOfDue
  }

  #roundOf(syncEveryMs: number): Round {
    const round = this.#rounds.get(syncEveryMs) ?? new Round()
    this.#rounds.set(syncEveryMs, round)
    round.timer ??= setInterval(() => this.#pass(round, syncEveryMs), syncEveryMs).unref()
    return round
  }

  /** Sends a count before the decisions that are asked from now on. */
  now(count: Count): void {
    if (this.#due.size === 0) this.#options.outbox.addFirst(this.#sendDue)
    this.#due.add(count)
  }

  readonly #sendDue = (order: number): void => {
    const scripts = this.#scripts(this.#due)
    this.#due.clear()
    for (const { some, to } of scripts) this.#send(some, to, order)
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
    await this.#underWay.over()
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
      const isAway = this.#isAway(count.slot)
      if (isAway ? !isNeededWhileAway(count) : count.isIdle) this.#options.onIdle(count)
      if (count.isGone) round.counts.delete(count)
      else if (!isAway && (count.isUsed || count.local.hasUnsent) && count.underWay.length === 0) used.push(count)
      if (used.length < MAX_AT_ONCE) continue
      await this.#sendAll(used)
      used = []
      await slice.next()
    }
    await this.#sendAll(used)
    round.isUnderWay = false
    if (round.isLate) this.#pass(round, syncEveryMs)
  }

  #isAway(slot: number): boolean {
    return this.#options.breaker.causeFor(slot) !== undefined
  }

  async #sendAll(counts: readonly Count[]): Promise<void> {
    if (counts.length === 0) return
    const slice = new Slice()
    let sent: Promise<void>[] = []
    let underWay = 0
    for (const { some, to } of this.#scripts(counts)) {
      // Since they were looked through, some may have been dropped, and the store closed.
      const wanted = some.filter(({ isGone, local }) => !isGone && (local.hasUnsent || !this.#isClosed))
      if (wanted.length === 0) continue
      // What was asked before is sent before. What is charged from here on goes with a later exchange.
      const { outbox } = this.#options
      outbox.flush()
      for (const count of wanted) count.isUsed = false
      sent.push(this.#send(wanted, to, outbox.order))
      underWay += some.length
      if (underWay >= MAX_UNDER_WAY) {
        await Promise.all(sent)
        sent = []
        underWay = 0
        // Replies were read in this turn.
        await slice.next()
      } else if (slice.isOver) await slice.next()
    }
    await Promise.all(sent)
  }

  #send(counts: readonly Count[], to: Destination, order: number): Promise<void> {
    return this.#underWay.note(exchange(this.#options, counts, to, order))
  }

  /** What goes in which script: by master where that can be, else by slot. */
  #scripts(counts: Iterable<Count>): { some: readonly Count[]; to: Destination }[] {
    const { crossSlots } = this.#options
    const wanted = [...counts].filter(({ isGone }) => !isGone)
    const byPlace = groupBy(wanted, (count) =>
      count.isAlone ? count : (crossSlots?.nodeFor(count.slot, count.identity) ?? count.slot),
    )
    const scripts: { some: readonly Count[]; to: Destination }[] = []
    for (const [place, group] of byPlace) {
      const node = typeof place === 'string' ? place : undefined
      for (let i = 0; i < group.length; i += MAX_IN_SCRIPT) {
        const some = group.slice(i, i + MAX_IN_SCRIPT)
        scripts.push({ some, to: { slot: (some[0] as Count).slot, node } })
      }
    }
    return scripts
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

/** While Redis is away the fallback goes on from what was counted, as long as that counts for anything. */
function isNeededWhileAway(count: Count): boolean {
  return count.isAsked || (count.observed !== undefined && count.local.resetAfter(count.now()) > 0)
}

function forgetAsked(round: Round): void {
  for (const { askedOnce } of round.tables) askedOnce.clear()
  round.tables.clear()
  round.askedOnce = 0
}
