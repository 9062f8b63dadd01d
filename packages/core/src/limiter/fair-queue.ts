import type { WaitingClass } from '../store/store.js'
import { SortedList } from '../util/sorted-list.js'
import { FairClass, type Turn } from './fair-class.js'

export type { Turn } from './fair-class.js'

/** How many turns a client has, in all classes. */
interface ClientCount {
  readonly client: string | undefined
  /** Of clients with as many turns, the lower number goes first. */
  readonly number: number
  turns: number
}

/**
 * The waiters for one limit of one key. The class whose earliest waiter came first, less its head start, is served next. Within
 * a class clients take turns by units: start-time fair queueing (Goyal, Vin, Cheng 1996), where a turn starts when its client's
 * last one ends, in units served, and the earliest start is next. The turns of one client keep their order.
 *
 * A turn is added and removed in the time of a few binary searches, however many there are.
 */
export class FairQueue {
  readonly #classes = new Map<number, FairClass>()
  /** In the order in which they are served next. */
  readonly #next = new SortedList<FairClass>(
    (a, b) => a.since < b.since || (a.since === b.since && a.number < b.number),
  )
  readonly #counts = new Map<string | undefined, ClientCount>()
  /** Those with the most turns first. */
  readonly #most = new SortedList<ClientCount>(
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

  /** Units that all turns ask for. */
  get units(): number {
    return this.#units
  }

  add(turn: Turn): void {
    const { client, cost, headStartMs } = turn
    let own = this.#classes.get(headStartMs)
    if (own) this.#next.remove(own)
    else {
      own = new FairClass(headStartMs, this.#numbers++)
      this.#classes.set(headStartMs, own)
    }
    own.add(turn)
    this.#next.add(own)
    this.#count(client, 1)
    this.#length++
    this.#units += cost
  }

  /** Returns whether it was in the queue. */
  remove(turn: Turn, isServed: boolean): boolean {
    const { client, cost, headStartMs } = turn
    const own = this.#classes.get(headStartMs)
    if (!own) return false
    this.#next.remove(own)
    const wasHere = own.remove(turn, isServed)
    if (own.first) this.#next.add(own)
    else this.#classes.delete(headStartMs)
    if (!wasHere) return false
    this.#count(client, -1)
    this.#length--
    this.#units -= cost
    return true
  }

  /** The classes in the order in which they are served, without one turn or with all, up to so many. */
  classes(most: number, without?: Turn): WaitingClass[] {
    const classes: WaitingClass[] = []
    for (const one of this.#next) {
      // Without the turn one class is later than it is in the list.
      if (classes.length > most) break
      classes.push({ headStartMs: one.headStartMs, since: one.sinceWithout(without) })
    }
    return classes
      .filter(({ since }) => since < Number.POSITIVE_INFINITY)
      .sort((a, b) => a.since - b.since)
      .slice(0, most)
  }

  /** Units that are served until this turn, which is in the queue, has been, if no other came. */
  unitsThrough(turn: Turn): number {
    const own = this.#classes.get(turn.headStartMs) as FairClass
    const place = own.placeOf(turn)
    let units = own.unitsUpTo(place)
    if (this.#classes.size === 1) return units
    // Others go first as long as they have a turn that came before all that are left of its own class.
    const since = own.sinceFrom(place)
    for (const other of this.#classes.values()) {
      if (other === own) continue
      const last = other.lastPlaceBefore(since, other.number < own.number)
      if (last) units += other.unitsUpTo(last)
    }
    return units
  }

  /**
   * Which turn leaves a full queue for one that is not in it: the newest of the client with the most turns, in classes that are
   * not above its own. Undefined where the newcomer's own client would have as many, or where no client is known.
   */
  displacedBy({ client, headStartMs }: Turn): Turn | undefined {
    if (client === undefined) return undefined
    const classes = [...this.#classes.values()].filter((one) => one.headStartMs <= headStartMs)
    const turnsIn = (of: string | undefined) => classes.reduce((sum, one) => sum + one.turnsOf(of).length, 0)
    let most = turnsIn(client) + 1
    let from: ClientCount | undefined
    for (const one of this.#most) {
      if (one.turns <= most) break
      const turns = turnsIn(one.client)
      if (turns > most) [most, from] = [turns, one]
    }
    if (!from) return undefined
    const { client: leaving } = from
    const newest = classes.flatMap((one) => one.turnsOf(leaving).at(-1) ?? [])
    return newest.reduce((a, b) => (b.since >= a.since ? b : a))
  }

  #count(client: string | undefined, change: number): void {
    let count = this.#counts.get(client)
    if (count) this.#most.remove(count)
    else {
      count = { client, number: this.#numbers++, turns: 0 }
      this.#counts.set(client, count)
    }
    count.turns += change
    if (count.turns > 0) this.#most.add(count)
    else this.#counts.delete(client)
  }
}
