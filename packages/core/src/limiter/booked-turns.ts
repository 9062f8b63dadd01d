import { LONGEST_TIMER_MS } from '../util/pause.js'
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

/** Units whose time was booked together: the first, by the performance clock, and the others `unitMs` apart. */
interface Slot {
  readonly at: number
  readonly units: number
}

interface BookedQueue {
  readonly turns: FairQueue
  readonly unitMs: number
  /** Of all turns, in the order of time. Together they hold as many units as the turns ask for. */
  slots: Slot[]
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

  /** In how many ms its turn would come if it was exchanged, and no other came. */
  delayOf(booking: Booking, client: string | undefined): number {
    const queue = this.#queues.get(booking.id)
    if (!queue) return booking.inMs
    const now = performance.now()
    const turn = turnOf(booking, client, now)
    queue.turns.add(turn)
    const before = queue.turns.unitsThrough(turn) - turn.cost
    queue.turns.remove(turn, false)
    const slots = withSlot(queue.slots, { at: now + booking.inMs, units: booking.units })
    return Math.max(0, Math.ceil(startOf(slots, before, turn.cost, queue.unitMs) - now))
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
        queue.turns.remove(turn, false)
        queue.starts.delete(turn)
        // The store takes what is refunded from the end, so the others move up.
        queue.slots = withoutLast(queue.slots, turn.cost)
        this.#advance(booking.id, queue)
        reject(signal?.reason)
      }
      queue.starts.set(turn, () => {
        signal?.removeEventListener('abort', leave)
        resolve()
      })
      signal?.addEventListener('abort', leave, { once: true })
      queue.slots = withSlot(queue.slots, { at: now + booking.inMs, units: booking.units })
      queue.turns.add(turn)
      this.#advance(booking.id, queue)
    })
  }

  #queueOf({ id, unitMs }: Booking): BookedQueue {
    let queue = this.#queues.get(id)
    if (!queue) {
      queue = { turns: new FairQueue(), unitMs, slots: [], starts: new Map(), timer: undefined }
      this.#queues.set(id, queue)
    }
    return queue
  }

  /** Starts whose turn it is, and looks again when the next one's comes. */
  #advance(id: string, queue: BookedQueue): void {
    clearTimeout(queue.timer)
    const { turns, starts, unitMs } = queue
    for (let { first } = turns; first; first = turns.first) {
      const inMs = startOf(queue.slots, 0, first.cost, unitMs) - performance.now()
      if (inMs > 0) {
        queue.timer = setTimeout(() => this.#advance(id, queue), Math.min(Math.ceil(inMs), LONGEST_TIMER_MS))
        return
      }
      queue.slots = withoutFirst(queue.slots, first.cost, unitMs)
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

/** When units that come after `before` others may start, so that none of them comes before its time. */
function startOf(slots: readonly Slot[], before: number, units: number, unitMs: number): number {
  let start = Number.NEGATIVE_INFINITY
  let from = 0
  for (const slot of slots) {
    const first = Math.max(from, before)
    const isOurs = first < from + slot.units && first < before + units
    if (isOurs) start = Math.max(start, slot.at + (first - from) * unitMs - (first - before) * unitMs)
    from += slot.units
  }
  return start
}

function withSlot(slots: readonly Slot[], slot: Slot): Slot[] {
  const after = slots.findLastIndex(({ at }) => at <= slot.at) + 1
  return [...slots.slice(0, after), slot, ...slots.slice(after)]
}

function withoutFirst(slots: readonly Slot[], units: number, unitMs: number): Slot[] {
  const left: Slot[] = []
  let still = units
  for (const slot of slots) {
    const gone = Math.min(still, slot.units)
    still -= gone
    if (gone < slot.units) left.push({ at: slot.at + gone * unitMs, units: slot.units - gone })
  }
  return left
}

function withoutLast(slots: readonly Slot[], units: number): Slot[] {
  const left: Slot[] = []
  let kept = slots.reduce((sum, slot) => sum + slot.units, -units)
  for (const { at, units } of slots) {
    if (kept > 0) left.push({ at, units: Math.min(units, kept) })
    kept -= units
  }
  return left
}
