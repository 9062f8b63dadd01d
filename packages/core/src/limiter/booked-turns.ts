import type { ReadablePlan } from '../policy/plan.js'
import type { Cell } from '../store/store.js'
import { onAbort } from '../util/abort-listeners.js'
import { LONGEST_TIMER_MS, pause } from '../util/pause.js'
import { isCharged } from '../verdict/decision.js'
import { DECISION, type Verdict } from '../verdict/verdict.js'
import { BookedTimes } from './booked-times.js'
import { FairQueue, type Turn } from './fair-queue.js'
import { WaitExceeded, type WaitOptions } from './waiter.js'

/** A turn that the queueing limits of a policy have given to a request, and charged. */
export interface Booking {
  /** These limits, of these keys: turns of the same may be exchanged. */
  readonly id: string
  /** When it comes, in ms from now. */
  readonly inMs: number
  /** Units that were charged, at least 1. */
  readonly units: number
  /** How long after a unit the next may come. */
  readonly unitMs: number
}

/** How long a request waits for a turn that it has been given. */
export type BookedWait = Pick<WaitOptions, 'client' | 'maxWaitMs' | 'signal'>

/** How much later than its last moment a wait ends by itself. */
const SLACK_MS = 5

/** The turn that queueing limits have given for what was charged; undefined where none has to be waited for. */
export function bookingOf({ delayMs, [DECISION]: decision }: Verdict): Booking | undefined {
  if (delayMs === 0 || !isCharged(decision)) return undefined
  const { plan, identities, costs } = decision.request
  const { resolved, cellOf, cells } = plan as ReadablePlan
  const ids: string[] = []
  let [units, unitMs] = [0, 0]
  for (const [i, { queue, windowMs, limit }] of resolved.entries()) {
    const c = cellOf[i] as number
    const { id, identity } = cells[c] as Cell
    if (!queue || costs[c] === 0) continue
    ids.push(`${id}\n${identities[identity]}`)
    if (windowMs / limit > unitMs) [units, unitMs] = [costs[c] as number, windowMs / limit]
  }
  return units === 0 ? undefined : { id: ids.join('\n'), inMs: delayMs, units, unitMs }
}

interface BookedQueue {
  readonly turns: FairQueue
  /** Of all turns. Together they hold as many units as the turns ask for. */
  readonly times: BookedTimes
  readonly starts: Map<Turn, () => void>
  timer: NodeJS.Timeout | undefined
}

/**
 * Turns that a store has given out ahead of their time, exchanged between the clients that wait for them in this process: one that came
 * later than twenty requests of another client need not wait for all of these.
 *
 * What is exchanged is the time of units, so no unit comes before one was booked, whatever order requests are served in and
 * whatever they cost: the first unit of a request may not come before the first one that is left, the second not before the second, and so on.
 */
export class BookedTurns {
  readonly #queues = new Map<string, BookedQueue>()

  /**
   * In how many ms its turn would come if it was exchanged, and no other came. If it comes within `enoughMs` in any case, that is
   * not worked out: then the latest that it may come.
   */
  delayOf(booking: Booking, client: string | undefined, enoughMs: number): number {
    const queue = this.#queues.get(booking.id)
    if (!queue) return booking.inMs
    const now = performance.now()
    const { turns, times } = queue
    const turn = turnOf(booking, client, now)
    const added = { at: now + booking.inMs, units: booking.units }
    times.add(added)
    let start = times.startOf(turns.units, turn.cost)
    if (start - now > enoughMs) {
      turns.add(turn)
      start = times.startOf(turns.unitsThrough(turn) - turn.cost, turn.cost)
      turns.remove(turn, false)
    }
    times.remove(added)
    return Math.max(0, Math.ceil(start - now))
  }

  /** Waits for the turn of a verdict, or for another that this process exchanges it for. Rejects with the signal's reason. */
  async wait(verdict: Verdict, client: string | undefined, signal: AbortSignal | undefined): Promise<void> {
    const booking = bookingOf(verdict)
    await (booking ? this.#wait(booking, client, signal) : pause(verdict.delayMs, signal))
  }

  /** The same for at most `maxWaitMs`, as others may come before it meanwhile: rejects with `WaitExceeded` once that has passed. */
  async waitWithin(where: string, verdict: Verdict, { client, maxWaitMs, signal }: BookedWait): Promise<void> {
    const overtaken = new AbortController()
    const late = () => {
      const message = `${where}: acquire: others came before it, and the wait would exceed what it may take`
      overtaken.abort(new WaitExceeded(message, undefined, undefined))
    }
    // A turn that comes in time comes before this.
    const lateMs = Math.ceil(maxWaitMs) + SLACK_MS
    const timer = lateMs < LONGEST_TIMER_MS ? setTimeout(late, lateMs) : undefined
    try {
      await this.wait(verdict, client, signal ? AbortSignal.any([signal, overtaken.signal]) : overtaken.signal)
    } finally {
      clearTimeout(timer)
    }
  }

  /** Resolves when its turn has come. Rejects with the signal's reason when aborted: then its units are free again. */
  async #wait(booking: Booking, client: string | undefined, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted()
    await new Promise<void>((resolve, reject) => {
      const now = performance.now()
      const turn = turnOf(booking, client, now)
      const queue = this.#queueOf(booking)
      const leave = () => {
        ignoreAbort?.()
        queue.turns.remove(turn, false)
        queue.starts.delete(turn)
        // The store takes what is refunded from the end, so the others move up.
        queue.times.takeLast(turn.cost)
        this.#advance(booking.id, queue)
        reject(signal?.reason)
      }
      const ignoreAbort = signal && onAbort(signal, leave)
      queue.starts.set(turn, () => {
        ignoreAbort?.()
        resolve()
      })
      queue.times.add({ at: now + booking.inMs, units: booking.units })
      queue.turns.add(turn)
      this.#advance(booking.id, queue)
    })
  }

  #queueOf({ id, unitMs }: Booking): BookedQueue {
    let queue = this.#queues.get(id)
    if (!queue) {
      queue = { turns: new FairQueue(), times: new BookedTimes(unitMs), starts: new Map(), timer: undefined }
      this.#queues.set(id, queue)
    }
    return queue
  }

  /** Starts whose turn it is, and looks again when the next one's comes. */
  #advance(id: string, queue: BookedQueue): void {
    clearTimeout(queue.timer)
    const { turns, starts, times } = queue
    for (let { first } = turns; first; first = turns.first) {
      const inMs = times.startOf(0, first.cost) - performance.now()
      if (inMs > 0) {
        queue.timer = setTimeout(() => this.#advance(id, queue), Math.min(Math.ceil(inMs), LONGEST_TIMER_MS))
        return
      }
      times.takeFirst(first.cost)
      turns.remove(first, true)
      starts.get(first)?.()
      starts.delete(first)
    }
    this.#queues.delete(id)
  }
}

function turnOf({ units }: Booking, client: string | undefined, since: number): Turn {
  return { cost: units, headStartMs: 0, since, client, wake: undefined, isDisplaced: false }
}
