import type { WaitingClass } from '../store/store.js'

/** The turn of one waiter in a queue. */
export interface Turn {
  readonly cost: number
  /** Waiters of a higher class count as if they had come so many ms earlier. A class of its own for each number. */
  readonly headStartMs: number
  /** When the waiter came, less its head start. */
  readonly since: number
  /** Whose turn it is: clients of one class are served in turn. Turns without a client share one. */
  readonly client: string | undefined
  /** Ends its pause, if it is in one. */
  wake: (() => void) | undefined
  /** It had to leave a full queue, for a client that has fewer turns in it. */
  isDisplaced: boolean
}

/** The turns of one client in a class, first come first served. */
interface ClientQueue {
  readonly turns: Turn[]
  /** The start tag of its first turn; without turns, that which its next one would get. */
  start: number
}

/** The clients of one class, by start-time fair queueing. */
class FairClass {
  readonly #clients = new Map<string | undefined, ClientQueue>()
  /** The start tag of the last turn that was first: the virtual time of the class. */
  #virtual = 0
  #first: ClientQueue | undefined

  /** Its next turn; undefined where it is empty. */
  get first(): Turn | undefined {
    return this.#first?.turns[0]
  }

  /** When the earliest of its turns began; infinite where it is empty. */
  get since(): number {
    return this.sinceWithout(undefined)
  }

  sinceWithout(left: Turn | undefined): number {
    let earliest = Number.POSITIVE_INFINITY
    for (const { turns } of this.#clients.values()) {
      const first = turns[0] === left ? turns[1] : turns[0]
      if (first && first.since < earliest) earliest = first.since
    }
    return earliest
  }

  add(turn: Turn): void {
    let queue = this.#clients.get(turn.client)
    if (!queue) {
      queue = { turns: [], start: this.#virtual }
      this.#clients.set(turn.client, queue)
    }
    // A waiter that waited meanwhile for another limit came earlier than those before it.
    queue.turns.splice(queue.turns.findLastIndex(({ since }) => since <= turn.since) + 1, 0, turn)
    if (queue.turns.length === 1) queue.start = Math.max(queue.start, this.#virtual)
    if (this.#first === undefined || isBefore(queue, this.#first)) this.#first = queue
    this.#virtual = this.#first.start
  }

  /** Of one that leaves without having been served, the client's next takes the place. */
  remove(turn: Turn, isServed: boolean): boolean {
    const queue = this.#clients.get(turn.client)
    const index = queue?.turns.indexOf(turn) ?? -1
    if (!queue || index < 0) return false
    queue.turns.splice(index, 1)
    if (index === 0 && isServed) queue.start += turn.cost
    if (index === 0) this.#findFirst()
    return true
  }

  /** All turns in the order in which they would be served, if no other came. */
  inOrder(): Turn[] {
    const tagged = [...this.#clients.values()].flatMap(({ turns, start }) => {
      let tag = start
      return turns.map((turn) => {
        const mine = { turn, tag }
        tag += turn.cost
        return mine
      })
    })
    return tagged.sort((a, b) => a.tag - b.tag || a.turn.since - b.turn.since).map(({ turn }) => turn)
  }

  #findFirst(): void {
    this.#first = undefined
    for (const queue of this.#clients.values()) {
      if (queue.turns.length > 0 && (!this.#first || isBefore(queue, this.#first))) this.#first = queue
    }
    if (this.#first) this.#virtual = this.#first.start
    // A client that has had no more than its share by now is as good as new.
    for (const [client, queue] of this.#clients) {
      if (queue.turns.length === 0 && (!this.#first || queue.start <= this.#virtual)) this.#clients.delete(client)
    }
  }
}

/** Both have turns. */
function isBefore(a: ClientQueue, b: ClientQueue): boolean {
  const [first, second] = [a.turns[0] as Turn, b.turns[0] as Turn]
  return a.start < b.start || (a.start === b.start && first.since < second.since)
}

/**
 * The waiters for one limit of one key. The class whose earliest waiter came first, less its head start, is served next. Within
 * a class clients take turns by units: start-time fair queueing (Goyal, Vin, Cheng 1996), where a turn starts when its client's
 * last one ends, in units served, and the earliest start is next. The turns of one client keep their order.
 */
export class FairQueue {
  readonly #classes = new Map<number, FairClass>()
  readonly #turns = new Set<Turn>()
  #first: Turn | undefined

  get first(): Turn | undefined {
    return this.#first
  }

  get length(): number {
    return this.#turns.size
  }

  /** Units that all turns ask for. */
  get units(): number {
    return unitsOf([...this.#turns])
  }

  add(turn: Turn): void {
    let own = this.#classes.get(turn.headStartMs)
    if (!own) {
      own = new FairClass()
      this.#classes.set(turn.headStartMs, own)
    }
    own.add(turn)
    this.#turns.add(turn)
    this.#findFirst()
  }

  /** Whether it was in the queue. */
  remove(turn: Turn, isServed: boolean): boolean {
    const own = this.#classes.get(turn.headStartMs)
    if (!own?.remove(turn, isServed)) return false
    this.#turns.delete(turn)
    if (!own.first) this.#classes.delete(turn.headStartMs)
    this.#findFirst()
    return true
  }

  /** The classes in the order in which they are served, without one turn or with all, up to so many. */
  classes(most: number, without?: Turn): WaitingClass[] {
    const classes = [...this.#classes].map(([headStartMs, one]) => ({ headStartMs, since: one.sinceWithout(without) }))
    return classes
      .filter(({ since }) => since < Number.POSITIVE_INFINITY)
      .sort((a, b) => a.since - b.since)
      .slice(0, most)
  }

  /** Units that are served until this turn has been, if no other came. */
  unitsThrough(turn: Turn): number {
    const order = this.#inOrder()
    return unitsOf(order.slice(0, order.indexOf(turn) + 1))
  }

  /**
   * Which turn leaves a full queue for one that is not in it: the newest of the client with the most turns, in classes that are
   * not above its own. Undefined where the newcomer's own client would have as many, or where no client is known.
   */
  displacedBy({ client, headStartMs }: Turn): Turn | undefined {
    if (client === undefined) return undefined
    const counts = new Map<string | undefined, Turn[]>()
    for (const turn of this.#turns) {
      if (turn.headStartMs > headStartMs) continue
      const turns = counts.get(turn.client)
      if (turns) turns.push(turn)
      else counts.set(turn.client, [turn])
    }
    const own = counts.get(client)?.length ?? 0
    let most: Turn[] = []
    for (const turns of counts.values()) if (turns.length > most.length) most = turns
    return most.length > own + 1 ? most.reduce((a, b) => (b.since >= a.since ? b : a)) : undefined
  }

  #inOrder(): Turn[] {
    if (this.#classes.size === 1) for (const only of this.#classes.values()) return only.inOrder()
    const classes = [...this.#classes.values()].map((one) => {
      const turns = one.inOrder()
      // By the earliest of those that are still there.
      const since = turns.map(({ since }) => since)
      for (let i = since.length - 2; i >= 0; i--) since[i] = Math.min(since[i] as number, since[i + 1] as number)
      return { turns, since, next: 0 }
    })
    const order: Turn[] = []
    while (order.length < this.#turns.size) {
      const waiting = classes.filter(({ turns, next }) => next < turns.length)
      const next = waiting.reduce((a, b) => ((b.since[b.next] as number) < (a.since[a.next] as number) ? b : a))
      order.push(next.turns[next.next++] as Turn)
    }
    return order
  }

  #findFirst(): void {
    if (this.#classes.size === 1) for (const only of this.#classes.values()) this.#first = only.first
    else {
      let earliest = Number.POSITIVE_INFINITY
      this.#first = undefined
      for (const one of this.#classes.values()) {
        const { since } = one
        if (since < earliest) {
          earliest = since
          this.#first = one.first
        }
      }
    }
  }
}

function unitsOf(turns: readonly Turn[]): number {
  return turns.reduce((sum, { cost }) => sum + cost, 0)
}
