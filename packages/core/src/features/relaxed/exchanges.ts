import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Destination } from '../../redis/batching/batch.js'
import type { Outbox } from '../../redis/batching/outbox.js'
import { UnderWay } from '../../redis/layers/under-way.js'
import { getOrInsert } from '../../util/get-or-insert.js'
import { groupBy } from '../../util/group-by.js'
import { outsideRequests } from '../../util/outside-requests.js'
import type { Count, CountTable } from './counts.js'
import { type ExchangeOptions, exchange } from './exchange.js'

export interface ExchangesOptions extends ExchangeOptions {
  readonly outbox: Outbox
  /** Called with counts that can be dropped. */
  readonly onIdle: (count: Count) => void
}

/** Maximum counts in one script, which occupies Redis for about a millisecond. */
const MAX_IN_SCRIPT = 128
/** Maximum counts under way in a round: their replies may arrive in one turn of the event loop. */
const MAX_UNDER_WAY = 256
/** How long a round occupies the event loop at a time, in ms, plus one more script. */
const SLICE_MS = 1
/** Number of counts that are grouped into scripts at a time. */
const MAX_AT_ONCE = 1024
/**
 * Maximum remembered identities of a round that Redis has decided, about 10 MB. At the maximum, all are forgotten
 * early.
 */
const MAX_REQUESTED_ONCE = 100_000

/** The counts of one `syncEvery`. One timer serves all of them, while there are counts or remembered identities. */
class Round {
  readonly counts = new Set<Count>()
  /** Tables whose `requestedOnce` ends with the round, and their number of identities. */
  readonly tables = new Set<CountTable>()
  requestedOnce = 0
  timer: NodeJS.Timeout | undefined
  isUnderWay = false
  /** Whether the next round was due while this one was under way. */
  isLate = false
}

/** Sends counts to Redis: in rounds, a few scripts at a time, and at once if a decision needs them. */
export class Exchanges {
  readonly #options: ExchangesOptions
  readonly #rounds = new Map<number, Round>()
  /** Counts to send before the waiting decisions. */
  readonly #due = new Set<Count>()
  readonly #underWay = new UnderWay()
  #isClosed = false

  constructor(options: ExchangesOptions) {
    this.#options = options
  }

  add(count: Count): void {
    this.#roundOf(count.syncEveryMs).counts.add(count)
  }

  /** Remembers until the round ends that a request goes to Redis. Call it once the request waits to be sent. */
  noteRequest(table: CountTable, identity: string, syncEveryMs: number): void {
    if (this.#isClosed) return
    const round = this.#roundOf(syncEveryMs)
    if (round.requestedOnce >= MAX_REQUESTED_ONCE) forgetRequests(round)
    const { requestedOnce } = table
    const before = requestedOnce.size
    requestedOnce.set(identity, this.#options.outbox.orderOfDue)
    round.requestedOnce += requestedOnce.size - before
    round.tables.add(table)
  }

  /**
   * Whether a request for the identity was sent to Redis in this round, so that an exchange sent now finds its charge.
   */
  wasRequested(table: CountTable, identity: string): boolean {
    const order = table.requestedOnce.get(identity)
    return order !== undefined && order < this.#options.outbox.orderOfDue
  }

  #roundOf(syncEveryMs: number): Round {
    const round = getOrInsert(this.#rounds, syncEveryMs, () => new Round())
    round.timer ??= outsideRequests(() => setInterval(() => this.#pass(round, syncEveryMs), syncEveryMs).unref())
    return round
  }

  /** Sends a count before all later decisions. */
  now(count: Count): void {
    if (this.#due.size === 0) this.#options.outbox.addFirst(this.#sendDue)
    this.#due.add(count)
  }

  readonly #sendDue = (order: number): void => {
    const scripts = this.#scripts(this.#due)
    this.#due.clear()
    for (const { some, to } of scripts) this.#send(some, to, order)
  }

  /** Sends all unsent charges. Resolves when that has ended, whatever its outcome. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#options.outbox.flush()
    for (const round of this.#rounds.values()) {
      clearInterval(round.timer)
      forgetRequests(round)
      const unsent = [...round.counts].filter(({ local, slot }) => local.hasUnsent && !this.#isAway(slot))
      await this.#sendAll(unsent)
    }
    this.#rounds.clear()
    await this.#underWay.over()
  }

  async #pass(round: Round, syncEveryMs: number): Promise<void> {
    // If a round takes longer than its interval, the next round waits for it.
    round.isLate = round.isUnderWay
    if (round.isUnderWay) return
    if (round.counts.size === 0 && round.requestedOnce === 0) {
      clearInterval(round.timer)
      this.#rounds.delete(syncEveryMs)
      return
    }
    round.isUnderWay = true
    forgetRequests(round)
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
      // Counts may have been dropped, or the store closed, since the counts were selected.
      const wanted = some.filter(({ isGone, local }) => !isGone && (local.hasUnsent || !this.#isClosed))
      if (wanted.length === 0) continue
      // Earlier requests are sent first. Later charges go with a later exchange.
      const { outbox } = this.#options
      outbox.flush()
      for (const count of wanted) count.isUsed = false
      sent.push(this.#send(wanted, to, outbox.order))
      underWay += some.length
      if (underWay >= MAX_UNDER_WAY) {
        await Promise.all(sent)
        sent = []
        underWay = 0
        // Replies were processed in this turn.
        await slice.next()
      } else if (slice.isOver) await slice.next()
    }
    await Promise.all(sent)
  }

  #send(counts: readonly Count[], to: Destination, order: number): Promise<void> {
    return this.#underWay.note(exchange(this.#options, counts, to, order))
  }

  /** Groups counts into scripts: by master if possible, otherwise by slot. */
  #scripts(counts: Iterable<Count>): { some: readonly Count[]; to: Destination }[] {
    const { crossSlots } = this.#options
    const wanted = [...counts].filter(({ isGone }) => !isGone)
    const nodeOf = ({ isAlone, slot, identity }: Count) => (isAlone ? undefined : crossSlots?.nodeFor(slot, identity))
    const placed = wanted.map((count) => ({ count, node: nodeOf(count) }))
    const byName = groupBy(placed, ({ count, node }) => (count.isAlone ? count : (node ?? count.slot)))
    const scripts: { some: readonly Count[]; to: Destination }[] = []
    for (const [, group] of byName) {
      for (let i = 0; i < group.length; i += MAX_IN_SCRIPT) {
        const some = group.slice(i, i + MAX_IN_SCRIPT)
        const [{ count, node }] = some as [(typeof some)[number]]
        scripts.push({ some: some.map((each) => each.count), to: { slot: count.slot, node } })
      }
    }
    return scripts
  }
}

/** A slice of work within one turn of the event loop. */
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

/** During an outage, the fallback continues from this count, as long as the count has any effect. */
function isNeededWhileAway(count: Count): boolean {
  return count.hasPending || count.isInEffect
}

function forgetRequests(round: Round): void {
  for (const { requestedOnce } of round.tables) requestedOnce.clear()
  round.tables.clear()
  round.requestedOnce = 0
}
