import { countWhile, removeAt, SortedList } from '../../util/sorted-list.js'

/** The turn of one waiter in a queue. */
export interface Turn {
  /** Units that it takes from the limit of its queue. Changes only between two queues. */
  cost: number
  /** Waiters of a higher class count as if they had come so many ms earlier. Each number is a class. */
  readonly headStartMs: number
  /** The arrival of the waiter, less its head start. */
  readonly since: number
  /** The client: clients of one class are served in turn. Turns without a client share one. */
  readonly client: string | undefined
  /** Ends the waiter's pause, if there is one. */
  wake: (() => void) | undefined
  /** Whether it had to leave a full queue, for a client that has fewer turns in it. */
  isDisplaced: boolean
}

/** A place in the order in which the turns of a class are served. */
interface Place {
  /** The start tag of the turn: the units that its client will have been served by then, relative to the class. */
  readonly tag: number
  readonly since: number
  /** The client's number. */
  readonly number: number
}

/** The turns of one client in a class, first come first served. */
class ClientQueue {
  readonly client: string | undefined
  /** Decides between equal clients: the lower number goes first. */
  readonly number: number
  readonly turns: Turn[] = []
  /** Units that its turns need. */
  units = 0
  /** The start tag of its first turn; without turns, the tag of its next one. */
  start: number

  constructor(client: string | undefined, number: number, start: number) {
    this.client = client
    this.number = number
    this.start = start
  }

  /** The time at which its first turn began. */
  get since(): number {
    return (this.turns[0] as Turn).since
  }

  /** The number of its turns that came before an instant; with `orAt`, also at it. */
  countBefore(since: number, orAt: boolean): number {
    return countWhile(this.turns, (turn) => turn.since < since || (orAt && turn.since === since))
  }

  indexOf(turn: Turn): number {
    return this.turns.indexOf(turn, this.countBefore(turn.since, false))
  }

  insert(turn: Turn, index: number): void {
    this.turns.splice(index, 0, turn)
    this.units += turn.cost
  }

  remove(turn: Turn, index: number): void {
    removeAt(this.turns, index)
    this.units -= turn.cost
  }

  placeOf(index: number): Place {
    const { since } = this.turns[index] as Turn
    return { tag: this.start + this.#unitsBefore(index), since, number: this.number }
  }

  /** Whether its first turn is after a place. */
  isAfter(place: Place): boolean {
    return this.start > place.tag || (this.start === place.tag && this.#isAfter(place, this.start, this.since))
  }

  /** The number of its turns that are served up to a place, and their units. */
  upTo(place: Place): { readonly count: number; readonly units: number } {
    const { start, turns, units } = this
    if (start + units < place.tag) return { count: turns.length, units }
    // From the nearer end.
    if (place.tag - start > units / 2) {
      let tag = start + units
      for (let i = turns.length - 1; i >= 0; i--) {
        const { cost, since } = turns[i] as Turn
        tag -= cost
        if (!this.#isAfter(place, tag, since)) return { count: i + 1, units: tag + cost - start }
      }
      return { count: 0, units: 0 }
    }
    let tag = start
    for (let i = 0; i < turns.length; i++) {
      const { cost, since } = turns[i] as Turn
      if (this.#isAfter(place, tag, since)) return { count: i, units: tag - start }
      tag += cost
    }
    return { count: turns.length, units }
  }

  /** Whether a turn of this client is after a place. */
  #isAfter(place: Place, tag: number, since: number): boolean {
    if (tag !== place.tag) return tag > place.tag
    return since > place.since || (since === place.since && this.number > place.number)
  }

  #unitsBefore(index: number): number {
    const { turns } = this
    if (index <= turns.length / 2) return unitsOf(turns, 0, index)
    return this.units - unitsOf(turns, index, turns.length)
  }
}

/** The clients of one class, by start-time fair queueing. */
export class FairClass {
  readonly headStartMs: number
  /** Decides between equal classes: the lower number goes first. */
  readonly number: number
  readonly #clients = new Map<string | undefined, ClientQueue>()
  /** The clients with turns, in the order in which they are served next. */
  readonly #next = new SortedList<ClientQueue>((a, b) => a.start < b.start || (a.start === b.start && isEarlier(a, b)))
  /** The same clients, by the time at which their first turns began. */
  readonly #earliest = new SortedList<ClientQueue>(isEarlier)
  /** The clients without turns that have had more than their share, the least first. */
  readonly #ahead = new SortedList<ClientQueue>(
    (a, b) => a.start < b.start || (a.start === b.start && a.number < b.number),
  )
  #numbers = 0
  /** The start tag of the last turn that was first: the virtual time of the class. */
  #virtual = 0

  constructor(headStartMs: number, number: number) {
    this.headStartMs = headStartMs
    this.number = number
  }

  /** The next turn; undefined if the class is empty. */
  get first(): Turn | undefined {
    return this.#next.first?.turns[0]
  }

  /** The time at which the earliest of its turns began; infinite where it is empty. */
  get since(): number {
    return this.#earliest.first?.since ?? Number.POSITIVE_INFINITY
  }

  sinceWithout(left: Turn | undefined): number {
    const [first, second] = this.#earliest
    if (!first || first.turns[0] !== left) return this.since
    const { since: own = Number.POSITIVE_INFINITY } = first.turns[1] ?? {}
    return Math.min(own, second?.since ?? Number.POSITIVE_INFINITY)
  }

  /** The turns of a client, in order of arrival. */
  turnsOf(client: string | undefined): readonly Turn[] {
    return this.#clients.get(client)?.turns ?? []
  }

  add(turn: Turn): void {
    const queue = this.#clients.get(turn.client) ?? this.#newClient(turn.client)
    // A waiter that waited for another limit meanwhile may have come earlier than those before it.
    const index = queue.countBefore(turn.since, true)
    if (index > 0) {
      queue.insert(turn, index)
      return
    }
    this.#takeOut(queue)
    queue.insert(turn, index)
    if (queue.turns.length === 1) queue.start = Math.max(queue.start, this.#virtual)
    this.#putIn(queue)
  }

  /** Removes a turn. If it was not served, the client's next turn takes its place. Returns whether it was here. */
  remove(turn: Turn, isServed: boolean): boolean {
    const queue = this.#clients.get(turn.client)
    const index = queue?.indexOf(turn) ?? -1
    if (!queue || index < 0) return false
    if (index > 0) {
      queue.remove(turn, index)
      return true
    }
    this.#takeOut(queue)
    queue.remove(turn, index)
    if (isServed) queue.start += turn.cost
    this.#putIn(queue)
    return true
  }

  /** The place of a turn in this class. */
  placeOf(turn: Turn): Place {
    const queue = this.#clients.get(turn.client) as ClientQueue
    return queue.placeOf(queue.indexOf(turn))
  }

  /** Units that are served up to a place. */
  unitsUpTo(place: Place): number {
    let units = 0
    for (const queues of this.#next.arrays) {
      for (const queue of queues) {
        // The clients behind it have later first turns.
        if (queue.isAfter(place)) return units
        units += queue.turns.length === 1 ? queue.units : queue.upTo(place).units
      }
    }
    return units
  }

  /** The time at which the earliest turn served at a place or later began. */
  sinceFrom(place: Place): number {
    let earliest = place.since
    for (const queue of this.#clients.values()) {
      const next = queue.turns[queue.upTo(place).count]
      if (next && next.since < earliest) earliest = next.since
    }
    return earliest
  }

  /** The place of the last-served turn that came before an instant, or with `orAt` at it; undefined without any. */
  lastPlaceBefore(since: number, orAt: boolean): Place | undefined {
    let last: Place | undefined
    for (const queue of this.#clients.values()) {
      const count = queue.countBefore(since, orAt)
      if (count === 0) continue
      const place = queue.placeOf(count - 1)
      if (!last || isBefore(last, place)) last = place
    }
    return last
  }

  #newClient(client: string | undefined): ClientQueue {
    const queue = new ClientQueue(client, this.#numbers++, this.#virtual)
    this.#clients.set(client, queue)
    return queue
  }

  /** Takes a client out of the lists. Call it before its first turn changes. */
  #takeOut(queue: ClientQueue): void {
    if (queue.turns.length > 0) {
      this.#next.remove(queue)
      this.#earliest.remove(queue)
    } else if (queue.start > this.#virtual) this.#ahead.remove(queue)
  }

  #putIn(queue: ClientQueue): void {
    if (queue.turns.length > 0) {
      this.#next.add(queue)
      this.#earliest.add(queue)
    } else this.#ahead.add(queue)
    this.#virtual = this.#next.first?.start ?? this.#virtual
    // A client with no more than its share is like a new one.
    for (let { first } = this.#ahead; first && first.start <= this.#virtual; first = this.#ahead.first) {
      this.#ahead.remove(first)
      this.#clients.delete(first.client)
    }
  }
}

/** Whether the first turn of one client began before that of another. Both have turns. */
function isEarlier(a: ClientQueue, b: ClientQueue): boolean {
  const [first, second] = [a.since, b.since]
  return first < second || (first === second && a.number < b.number)
}

function isBefore(a: Place, b: Place): boolean {
  if (a.tag !== b.tag) return a.tag < b.tag
  return a.since < b.since || (a.since === b.since && a.number < b.number)
}

function unitsOf(turns: readonly Turn[], from: number, to: number): number {
  let units = 0
  for (let i = from; i < to; i++) units += (turns[i] as Turn).cost
  return units
}
