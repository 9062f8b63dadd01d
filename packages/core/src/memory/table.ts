/**
 * The states of one cell in memory, by identity. `look` finds a state and brings it to the present;
 * the calls after it, until the next `look`, act on what it found.
 */
export interface Table {
  readonly size: number
  /** Milliseconds until `need` units have room in every limit of the cell: 0 now, -1 never. */
  look(identity: string, now: number, need: number): number
  /** Takes `cost`; as much of it as fits, if it does not. */
  charge(cost: number, lease: string): void
  /** Gives back `cost` of the charge that answered with `receipt` at `chargedAt`. */
  refund(cost: number, receipt: number, chargedAt: number, lease: string): void
  /** Writes down again at `now` a state from a future that cannot be. */
  heal(): void
  /** Appends remaining, retry for what `look` was asked about (0 if `admitted`), reset and receipt of each limit. */
  report(values: number[], admitted: boolean): void
  forget(identity: string): void
  /** Visits up to `most` states, forgets those that no longer matter, and returns how many those were. */
  sweep(now: number, most: number): number
  /** Forgets the least consumed of the next few states. */
  evict(now: number): void
}

/** What every state has: the instant from which forgetting it cannot be noticed. */
export interface State {
  resetAt: number
}

/** How many states an eviction chooses among. */
const SAMPLE = 8

/** Keeps states by identity and walks them in a circle, a few at a time: no timer per key. */
export abstract class States<S extends State> {
  protected readonly states = new Map<string, S>()
  /** What the last `look` was asked about, and the state it found. */
  protected identity = ''
  protected state: S | undefined
  protected now = 0
  protected need = 0
  readonly #graceMs: number
  #walk: Iterator<[string, S]> | undefined

  /** `graceMs`: how long a state is kept beyond its end, for clocks that may step back. */
  constructor(graceMs: number) {
    this.#graceMs = graceMs
  }

  get size(): number {
    return this.states.size
  }

  protected find(identity: string, now: number, need: number): S | undefined {
    this.identity = identity
    this.now = now
    this.need = need
    this.state = this.states.get(identity)
    return this.state
  }

  forget(identity: string): void {
    this.states.delete(identity)
  }

  sweep(now: number, most: number): number {
    let forgotten = 0
    for (let n = Math.min(most, this.states.size); n > 0; n--) {
      const next = this.#next()
      if (!next) break
      if (next[1].resetAt + this.#graceMs <= now) {
        this.states.delete(next[0])
        forgotten++
      }
    }
    return forgotten
  }

  evict(now: number): void {
    let victim: string | undefined
    let least = Number.POSITIVE_INFINITY
    for (let n = 0; n < SAMPLE; n++) {
      const next = this.#next()
      if (!next) break
      const share = next[1].resetAt <= now ? -1 : this.consumed(next[1], now)
      if (share < least) {
        least = share
        victim = next[0]
      }
    }
    if (victim !== undefined) this.states.delete(victim)
  }

  /** The share of its limit that a state has used up, from 0 to 1. */
  protected abstract consumed(state: S, now: number): number

  #next(): [string, S] | undefined {
    // Map iterators survive deletions and see additions, so one iterator can walk for ever.
    this.#walk ??= this.states.entries()
    let step = this.#walk.next()
    if (step.done) {
      this.#walk = this.states.entries()
      step = this.#walk.next()
    }
    return step.done ? undefined : step.value
  }
}
