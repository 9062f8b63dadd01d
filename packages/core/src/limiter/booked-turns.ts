import { onAbort } from '../util/abort-listeners.js'
import { LONGEST_TIMER_MS } from '../util/pause.js'
import { BookedTimes } from './booked-times.js'
import { FairQueue, type Turn } from './fair-queue.js'

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

  /** Resolves when its turn has come. Rejects with the signal's reason when aborted: then its units are free again. */
  wait(booking: Booking, client: string | undefined, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason)
        return
      }
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
