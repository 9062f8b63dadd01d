import type { WaitingClass } from '../../store/store.js'
import { SortedList } from '../../util/sorted-list.js'
import { FairClass, type Turn } from './fair-class.js'

export type { Turn } from './fair-class.js'

/** The number of turns of a client, in all classes. */
interface ClientCount {
  readonly client: string | undefined
  /** Decides between clients with as many turns: the lower number goes first. */
  readonly number: number
  turns: number
}

/**
 * The waiters for one limit of one key. The next class is the one whose earliest waiter came first, less its head start.
 *
 * Within a class clients take turns by units: start-time fair queueing (Goyal, Vin, Cheng 1996). A turn starts when its client's
 * last one ends, in units served, and the earliest start is next. The turns of one client stay in order.
 *
 * A turn is added and removed in the time of a few binary searches, however many there are.
 */
export class FairQueue {
  readonly #classes = new Map<number, FairClass>()
  /** The classes in the order in which they are served next. */
  readonly #next = new SortedList<FairClass>(
    (a, b) => a.since < b.since || (a.since === b.since && a.number < b.number),
  )
  readonly #counts = new Map<string | undefined, ClientCount>()
  /** The clients with the most turns first. */
  readonly #busiest = new SortedList<ClientCount>(
    (a, b) => a.turns > b.turns || (a.turns === b.turns && a.number < b.number),
  )
  #numbers = 0
  #length = 0
  #units = 0

  get first(): Turn | undefined {
    return this.#next.first?.first
  }

  get length(): number {
    return this.#length
  }

  /** Units that all turns need. */
  get units(): number {
    return this.#units
  }

  add(turn: Turn): void {
    const { client, cost, headStartMs } = turn
    let fairClass = this.#classes.get(headStartMs)
    if (fairClass) this.#next.remove(fairClass)
    else {
      fairClass = new FairClass(headStartMs, this.#numbers++)
      this.#classes.set(headStartMs, fairClass)
    }
    fairClass.add(turn)
    this.#next.add(fairClass)
    this.#count(client, 1)
    this.#length++
    this.#units += cost
  }

  /** Returns whether it was in the queue. */
  remove(turn: Turn, isServed: boolean): boolean {
    const { client, cost, headStartMs } = turn
    const fairClass = this.#classes.get(headStartMs)
    if (!fairClass) return false
    this.#next.remove(fairClass)
    const wasHere = fairClass.remove(turn, isServed)
    if (fairClass.first) this.#next.add(fairClass)
    else this.#classes.delete(headStartMs)
    if (!wasHere) return false
    this.#count(client, -1)
    this.#length--
    this.#units -= cost
    return true
  }

  /** Up to `max` classes in the order in which they are served, with all turns or without one. */
  classes(max: number, without?: Turn): WaitingClass[] {
    const classes: WaitingClass[] = []
    for (const one of this.#next) {
      // Without the turn, one class is later than in the list.
      if (classes.length > max) break
      classes.push({ headStartMs: one.headStartMs, since: one.sinceWithout(without) })
    }
    return classes
      .filter(({ since }) => since < Number.POSITIVE_INFINITY)
      .sort((a, b) => a.since - b.since)
      .slice(0, max)
  }

  /** Units that are served up to the end of this turn, if no other came. The turn is in the queue. */
  unitsThrough(turn: Turn): number {
    const fairClass = this.#classes.get(turn.headStartMs) as FairClass
    const place = fairClass.placeOf(turn)
    let units = fairClass.unitsUpTo(place)
    if (this.#classes.size === 1) return units
    // Other classes go first as long as they have a turn that came before the remaining turns of its own class.
    const since = fairClass.sinceFrom(place)
    for (const other of this.#classes.values()) {
      if (other === fairClass) continue
      const last = other.lastPlaceBefore(since, other.number < fairClass.number)
      if (last) units += other.unitsUpTo(last)
    }
    return units
  }

  /**
   * The turn that leaves a full queue for one outside of it: the newest turn of the client with the most turns, in classes that
   * are not above its own. Undefined if the newcomer's client would have as many, or where no client is known.
   */
  displacedBy({ client, headStartMs }: Turn): Turn | undefined {
    if (client === undefined) return undefined
    const classes = [...this.#classes.values()].filter((one) => one.headStartMs <= headStartMs)
    const turnsIn = (of: string | undefined) => classes.reduce((sum, one) => sum + one.turnsOf(of).length, 0)
    let largest = turnsIn(client) + 1
    let from: ClientCount | undefined
    for (const one of this.#busiest) {
      if (one.turns <= largest) break
      const turns = turnsIn(one.client)
      if (turns > largest) [largest, from] = [turns, one]
    }
    if (!from) return undefined
    const { client: leaving } = from
    const newest = classes.flatMap((one) => one.turnsOf(leaving).at(-1) ?? [])
    return newest.reduce((a, b) => (b.since >= a.since ? b : a))
  }

  #count(client: string | undefined, change: number): void {
    let count = this.#counts.get(client)
    if (count) this.#busiest.remove(count)
    else {
      count = { client, number: this.#numbers++, turns: 0 }
      this.#counts.set(client, count)
    }
    count.turns += change
    if (count.turns > 0) this.#busiest.add(count)
    else this.#counts.delete(client)
  }
}
