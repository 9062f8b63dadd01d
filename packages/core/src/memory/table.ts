import { KeyedRows, NONE, SHELF, SHELF_BITS } from './keyed-rows.js'
import type { Rows } from './rows.js'

/**
 * The states of one cell in memory, by identity. `look` finds a state and brings it to the present;
 * the calls after it, until the next `look`, act on what it found.
 */
export interface Table {
  readonly size: number
  /** Whether there is a state for what the last `look` was asked about. */
  readonly isKept: boolean
  /** Milliseconds until `need` units have room in every limit of the cell: 0 now, -1 never. */
  look(identity: string, now: number, need: number): number
  /** Takes `cost`; as much of it as fits, if it does not. */
  charge(cost: number, lease: string): void
  /** What a bucket has given back so far, as far as that matters; 0 elsewhere. */
  readonly given: number
  /** Gives back `cost` of the charge that answered with `receipt` at `chargedAt`, `given` being `before` then. */
  refund(cost: number, receipt: number, chargedAt: number, lease: string, before: number): void
  /** Writes down again at `now` a state from a future that cannot be. */
  heal(): void
  /**
   * Writes remaining, retry for what `look` was asked about (0 if `admitted`), reset and receipt of each limit, and
   * returns where they end.
   */
  report(values: number[], from: number, admitted: boolean): number
  forget(identity: string): void
  /** Visits up to `most` states, forgets those that no longer matter, and returns how many those were. */
  sweep(now: number, most: number): number
  /** Forgets the least consumed of the next few states. */
  evict(now: number): void
}

/** How many states an eviction chooses among. */
const SAMPLE = 8

const NO_CELLS = new Float64Array(0)

/**
 * Keeps states as rows by identity, and walks them in a circle, a few at a time: no timer per key.
 * The state at hand is what `find`, `keep` or the walk came to last: `cells` from `at` on. It stays there until
 * another of the same table is made or removed.
 */
export abstract class States {
  given = 0
  /** What the last `look` was asked about, and whether it found a state. */
  protected identity = ''
  protected now = 0
  protected need = 0
  isKept = false
  protected cells: Float64Array = NO_CELLS
  protected at = 0
  #ref = NONE
  readonly #rows = new KeyedRows()
  readonly #graceMs: number
  /** Where the walk stands. */
  #shelf = 0
  #row = 0

  /** `graceMs`: how long a state is kept beyond its end, for clocks that may step back. */
  constructor(graceMs: number) {
    this.#graceMs = graceMs
  }

  get size(): number {
    return this.#rows.size
  }

  forget(identity: string): void {
    const ref = this.#rows.find(identity)
    if (ref !== NONE) this.#remove(ref)
  }

  sweep(now: number, most: number): number {
    const before = this.size
    for (let n = Math.min(most, before); n > 0; n--) {
      this.#visit()
      // Into the place of one that goes comes another, so the walk stays there and sees that next.
      if (this.end() + this.#graceMs <= now) this.#remove(this.#ref)
      else this.#row++
    }
    return before - this.size
  }

  evict(now: number): void {
    let victim = NONE
    let least = Number.POSITIVE_INFINITY
    for (let n = Math.min(SAMPLE, this.size); n > 0; n--) {
      this.#visit()
      this.#row++
      const share = this.end() <= now ? -1 : this.consumed(now)
      if (share < least) {
        least = share
        victim = this.#ref
      }
    }
    if (victim !== NONE) this.#remove(victim)
  }

  /** From when on forgetting the state at hand cannot be noticed. */
  protected abstract end(): number

  /** The share of its limit that the state at hand has used up, from 0 to 1. */
  protected abstract consumed(now: number): number

  protected find(identity: string, now: number, need: number): boolean {
    this.identity = identity
    this.now = now
    this.need = need
    const ref = this.#rows.find(identity)
    this.isKept = ref !== NONE
    if (ref !== NONE) this.#open(ref)
    return this.isKept
  }

  /** Makes a state of so many cells for the identity: its first, or one of another kind instead of what it has. */
  protected keep(kind: number, cells: number): void {
    if (this.isKept) this.#rows.remove(this.#ref)
    this.isKept = true
    this.#open(this.#rows.add(this.identity, kind, cells))
  }

  /** Is told whose state has been forgotten. */
  protected gone(_identity: string): void {}

  /** Which kind the state at hand is of. States of one kind have the same number of cells; most tables have one. */
  protected get kind(): number {
    return this.#ref & SHELF
  }

  /** The same memory as `cells`, two to a cell: the state is `ints` from `2 * at` on. */
  protected get ints(): Int32Array {
    const rows = this.#rows.shelves[this.#ref & SHELF] as Rows
    return rows.ints[(this.#ref >> SHELF_BITS) >>> rows.shift] as Int32Array
  }

  protected drop(): void {
    if (this.isKept) this.#remove(this.#ref)
    this.isKept = false
  }

  /** The state the walk stands at, or the next one after the end of a shelf. */
  #visit(): void {
    const { shelves } = this.#rows
    while (this.#row >= (shelves[this.#shelf]?.size ?? 0)) {
      this.#row = 0
      this.#shelf = (this.#shelf + 1) % shelves.length
    }
    this.#open((this.#row << SHELF_BITS) | this.#shelf)
  }

  #remove(ref: number): void {
    this.gone(this.#rows.keyOf(ref))
    this.#rows.remove(ref)
  }

  #open(ref: number): void {
    const rows = this.#rows.shelves[ref & SHELF] as Rows
    const row = ref >> SHELF_BITS
    this.#ref = ref
    this.cells = rows.cells[row >>> rows.shift] as Float64Array
    this.at = (row & rows.mask) * rows.width + 1
  }
}
