import type { ReadablePlan } from '../../policy/plan.js'
import type { Cell, QuotaUnit } from '../../store/store.js'
import { onAbort } from '../../util/abort-listeners.js'
import { getOrInsert } from '../../util/get-or-insert.js'
import { LONGEST_TIMER_MS, pause } from '../../util/pause.js'
import { PROCESS_TIMING, type Timer, type Timing } from '../../util/timing.js'
import { isCharged } from '../../verdict/decision.js'
import { DECISION, type Verdict } from '../../verdict/verdict.js'
import { type Booked, BookedTimes } from './booked-times.js'
import { FairQueue, type Turn } from './fair-queue.js'
import { WaitExceeded, type WaitOptions } from './waiter.js'

/** A turn that the queueing limits of a policy have booked and charged for a request. */
export interface Booking {
  /** The limits and their keys: turns with equal ids may be exchanged. */
  readonly id: string
  /** Time until the turn, in ms. */
  readonly inMs: number
  /** Charged units, at least 1. */
  readonly units: number
  /** Minimum time from a unit to the next. */
  readonly unitMs: number
}

/** The wait of a request for a booked turn. */
export type BookedWait = Pick<WaitOptions, 'client' | 'maxWaitMs' | 'signal'>

/** Delay after the end of its maximum wait until a wait ends by itself. */
const SLACK_MS = 5

/** The turn that queueing limits have booked for a charge; undefined if there is none to wait for. */
export function bookingOf({ delayMs, [DECISION]: decision }: Verdict): Booking | undefined {
  if (delayMs === 0 || !isCharged(decision)) return undefined
  const { plan, identities, costs } = decision.request
  const { resolved, cellOf, cells } = plan as ReadablePlan
  const ids: string[] = []
  let [units, unitMs] = [0, 0]
  let unit: QuotaUnit | undefined
  for (const [i, { queue, windowMs, limit, unit: counted }] of resolved.entries()) {
    const c = cellOf[i] as number
    const { id, identity } = cells[c] as Cell
    if (!queue || costs[c] === 0) continue
    // Turns are exchanged by the times of their units, so each has to take as many from all of these limits.
    unit ??= counted
    if (counted !== unit) return undefined
    ids.push(`${id}\n${identities[identity]}`)
    if (windowMs / limit > unitMs) [units, unitMs] = [costs[c] as number, windowMs / limit]
  }
  return units === 0 ? undefined : { id: ids.join('\n'), inMs: delayMs, units, unitMs }
}

interface WaitForTurn {
  /** From one of its units to the next, by the limit that booked them. */
  readonly unitMs: number
  start(): void
}

interface BookedQueue {
  readonly turns: FairQueue
  /** The times of all turns. They hold as many units as the turns need. */
  readonly times: BookedTimes
  readonly waits: Map<Turn, WaitForTurn>
  timer: Timer | undefined
}

/**
 * Turns that a store has booked ahead of time. The clients that wait for them in this process exchange them: a client that
 * came after twenty requests of another client need not wait for all of these.
 *
 * The exchange is by times of units, so no unit comes before one was booked, in any order of requests and for any costs. The
 * first unit of a request may not come before the first time left, the second not before the second, and so on.
 */
export class BookedTurns {
  readonly #queues = new Map<string, BookedQueue>()
  readonly #timing: Timing

  constructor(timing = PROCESS_TIMING) {
    this.#timing = timing
  }

  /**
   * The time until its exchanged turn, in ms, if no other request came. Where every possible turn comes within `enoughMs`, that is
   * not computed, and the latest possible turn counts.
   */
  delayOf(booking: Booking, client: string | undefined, enoughMs: number): number {
    const queue = this.#queues.get(booking.id)
    if (!queue) return booking.inMs
    const now = this.#timing.now()
    const { turns, times } = queue
    const turn = turnOf(booking, client, now)
    const added = timesOf(booking, now)
    times.add(added)
    let start = times.startOf(turns.units, turn.cost, booking.unitMs)
    if (start - now > enoughMs) {
      turns.add(turn)
      start = times.startOf(turns.unitsThrough(turn) - turn.cost, turn.cost, booking.unitMs)
      turns.remove(turn, false)
    }
    times.remove(added)
    return Math.max(0, Math.ceil(start - now))
  }

  /** Waits for the turn of a verdict, or for one exchanged for it in this process. Rejects with the signal's reason. */
  async wait(verdict: Verdict, client: string | undefined, signal: AbortSignal | undefined): Promise<void> {
    const booking = bookingOf(verdict)
    await (booking ? this.#wait(booking, client, signal) : pause(verdict.delayMs, signal, undefined, this.#timing))
  }

  /** Waits for at most `maxWaitMs`, as others may overtake meanwhile. Rejects with `WaitExceeded` after that. */
  async waitWithin(where: string, verdict: Verdict, { client, maxWaitMs, signal }: BookedWait): Promise<void> {
    const overtaken = new AbortController()
    const late = () => {
      const message = `${where}: acquire: others came before it, and the wait would exceed maxWait`
      overtaken.abort(new WaitExceeded(message, undefined, undefined))
    }
    // A turn that comes in time comes before this timer.
    const lateMs = Math.ceil(maxWaitMs) + SLACK_MS
    const timer = lateMs < LONGEST_TIMER_MS ? this.#timing.setTimeout(late, lateMs) : undefined
    try {
      await this.wait(verdict, client, signal ? AbortSignal.any([signal, overtaken.signal]) : overtaken.signal)
    } finally {
      this.#timing.clearTimeout(timer)
    }
  }

  /** Resolves when its turn has come. Rejects with the signal's reason when aborted, which frees its units. */
  async #wait(booking: Booking, client: string | undefined, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted()
    await new Promise<void>((resolve, reject) => {
      const now = this.#timing.now()
      const turn = turnOf(booking, client, now)
      const queue = this.#queueOf(booking)
      const leave = () => {
        ignoreAbort?.()
        queue.turns.remove(turn, false)
        queue.waits.delete(turn)
        // The store refunds units from the end, so the others move up.
        queue.times.takeLast(turn.cost)
        this.#advance(booking.id, queue)
        reject(signal?.reason)
      }
      const ignoreAbort = signal && onAbort(signal, leave)
      const start = () => {
        ignoreAbort?.()
        resolve()
      }
      queue.waits.set(turn, { unitMs: booking.unitMs, start })
      queue.times.add(timesOf(booking, now))
      queue.turns.add(turn)
      this.#advance(booking.id, queue)
    })
  }

  #queueOf({ id }: Booking): BookedQueue {
    return getOrInsert(this.#queues, id, () => ({
      turns: new FairQueue(),
      times: new BookedTimes(),
      waits: new Map(),
      timer: undefined,
    }))
  }

  /** Starts the turns that are due, and again when the next one is. */
  #advance(id: string, queue: BookedQueue): void {
    this.#timing.clearTimeout(queue.timer)
    const { turns, waits, times } = queue
    for (let { first } = turns; first; first = turns.first) {
      const wait = waits.get(first) as WaitForTurn
      const inMs = times.startOf(0, first.cost, wait.unitMs) - this.#timing.now()
      if (inMs > 0) {
        queue.timer = this.#timing.setTimeout(
          () => this.#advance(id, queue),
          Math.min(Math.ceil(inMs), LONGEST_TIMER_MS),
        )
        return
      }
      times.takeFirst(first.cost)
      turns.remove(first, true)
      waits.delete(first)
      wait.start()
    }
    this.#queues.delete(id)
  }
}

function turnOf({ units }: Booking, client: string | undefined, since: number): Turn {
  return { cost: units, headStartMs: 0, since, client, wake: undefined, isDisplaced: false }
}

function timesOf({ inMs, units, unitMs }: Booking, now: number): Booked {
  return { at: now + inMs, units, unitMs }
}
