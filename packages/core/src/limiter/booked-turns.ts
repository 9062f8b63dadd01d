import { LONGEST_TIMER_MS } from '../util/pause.js'
import { FairLine, type Turn } from './fair-line.js'

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

interface BookedLine {
  readonly turns: FairLine
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
  readonly #lines = new Map<string, BookedLine>()

  /** In how many ms its turn would come if it was exchanged, and no other came. */
  delayOf(booking: Booking, client: string | undefined): number {
    const line = this.#lines.get(booking.id)
    if (!line) return booking.inMs
    const now = performance.now()
    const turn = turnOf(booking, client, now)
    line.turns.add(turn)
    const before = line.turns.unitsThrough(turn) - turn.cost
    line.turns.remove(turn, false)
    const slots = withSlot(line.slots, { at: now + booking.inMs, units: booking.units })
    return Math.max(0, Math.ceil(startOf(slots, before, turn.cost, line.unitMs) - now))
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
      const line = this.#lineOf(booking)
      const leave = () => {
        line.turns.remove(turn, false)
        line.starts.delete(turn)
        // The store takes what is refunded from the end, so the others move up.
        line.slots = withoutLast(line.slots, turn.cost)
        this.#advance(booking.id, line)
        reject(signal?.reason)
      }
      line.starts.set(turn, () => {
        signal?.removeEventListener('abort', leave)
        resolve()
      })
      signal?.addEventListener('abort', leave, { once: true })
      line.slots = withSlot(line.slots, { at: now + booking.inMs, units: booking.units })
      line.turns.add(turn)
      this.#advance(booking.id, line)
    })
  }

  #lineOf({ id, unitMs }: Booking): BookedLine {
    let line = this.#lines.get(id)
    if (!line) {
      line = { turns: new FairLine(), unitMs, slots: [], starts: new Map(), timer: undefined }
      this.#lines.set(id, line)
    }
    return line
  }

  /** Starts whose turn it is, and looks again when the next one's comes. */
  #advance(id: string, line: BookedLine): void {
    clearTimeout(line.timer)
    const { turns, starts, unitMs } = line
    for (let { first } = turns; first; first = turns.first) {
      const inMs = startOf(line.slots, 0, first.cost, unitMs) - performance.now()
      if (inMs > 0) {
        line.timer = setTimeout(() => this.#advance(id, line), Math.min(Math.ceil(inMs), LONGEST_TIMER_MS))
        return
      }
      line.slots = withoutFirst(line.slots, first.cost, unitMs)
      turns.remove(first, true)
      starts.get(first)?.()
      starts.delete(first)
    }
    this.#lines.delete(id)
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
