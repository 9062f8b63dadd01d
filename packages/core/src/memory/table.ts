import { KeyedRows, NONE, SHELF, SHELF_BITS } from './keyed-rows.js'
import type { Rows } from './rows.js'
import { rowBytes, Usage } from './usage.js'

/** What a table is made with: how long states outlive their end, for clocks that may step back; and what it is part of. */
export interface TableTerms {
  readonly id: string
  readonly graceMs: number
  readonly counted: Usage
  readonly refused: Usage
  /** Whether tables of other amounts have the same states. */
  readonly isCarried?: boolean
  /** A table of the same kind, whose states this one has: one that differs in amounts alone. */
  readonly like?: Table
}

/** How many states an eviction chooses among. */
const SAMPLE = 8

const NO_CELLS = new Float64Array(0)

/** In the number of a shelf: whether its states have been refused. */
const REFUSED = 1

/** Where a walk stands. It goes over the shelves `start`, `start + stride`, … in a circle. */
class Walk {
  row = 0
  shelf: number
  start: number
  readonly stride: number

  constructor(start: number, stride: number) {
    this.shelf = start
    this.start = start
    this.stride = stride
  }
}

/**
 * The states of one cell in memory, by identity. `look` finds a state and brings it to the present; the calls after it, until
 * the next `look`, act on what it found.
 *
 * States are rows by identity, which walks visit in a circle, a few at a time: no timer per key.
 * The state at hand is what `find`, `keep` or a walk came to last: `cells` from `at` on. It stays there until
 * another of the same table is made or removed.
 *
 * A state that is refused moves, once, to a shelf of those that were, where a last cell counts its refusals. There it
 * stays until it has ended: evictions choose among either, at no cost to requests that are admitted.
 */
export abstract class Table {
  readonly id: string
  /** What the states take of identities that have not been refused, and of those that have. */
  readonly counted: Usage
  readonly refused: Usage
  /** What was refunded to a bucket so far, in unit·ms, while that is needed; 0 elsewhere. */
  refunded = 0
  /** Whether the last `look` found a state. */
  isKept = false
  /** Its arguments. */
  protected identity = ''
  protected now = 0
  protected need = 0
  protected cells: Float64Array = NO_CELLS
  protected at = 0
  #ref = NONE
  readonly #rows: KeyedRows
  readonly #graceMs: number
  readonly #sweep = new Walk(0, 1)
  readonly #ofCounted = new Walk(0, 2)
  readonly #ofRefused = new Walk(REFUSED, 2)
  readonly #ofAlike = new Walk(0, SHELF + 1)
  /** The shelf that a state was last put on. */
  #newest = 0

  constructor({ id, graceMs, counted, refused, like }: TableTerms) {
    this.id = id
    this.#graceMs = graceMs
    this.#rows = like ? like.#rows : new KeyedRows()
    this.counted = like ? like.counted : new Usage(counted)
    this.refused = like ? like.refused : new Usage(refused)
  }

  get size(): number {
    return this.#rows.size
  }

  /** Milliseconds until `need` units have room in every limit of the cell: 0 now, -1 never. */
  abstract look(identity: string, now: number, need: number): number

  /** Takes `cost`; as much of it as fits, if it does not. */
  abstract charge(cost: number, permitId: string): void

  /** Refunds `cost` of the charge whose result at `chargedAt` had `receipt`, and `refunded` was `before`. */
  abstract refund(cost: number, receipt: number, chargedAt: number, permitId: string, before: number): void

  /** Holds `cost` permits of an id for another `ttl`; does nothing where units are no permits. */
  renew(_cost: number, _permitId: string): void {}

  /** Writes down again at `now` a state from a future that cannot be. */
  abstract heal(): void

  /**
   * Writes remaining, retry for the `need` of the last `look` (0 if `admitted`), reset and receipt of each limit, and
   * returns where they end.
   */
  abstract report(values: number[], from: number, admitted: boolean): number

  /** Notes, for evictions only, that the identity of the last `look` was refused. After `report`. */
  noteRefusal(): void {
    if (!this.isKept) return
    if ((this.#ref & REFUSED) !== 0) this.#refusals++
    else {
      this.#move(REFUSED)
      this.#refusals = 1
    }
  }

  forget(identity: string): void {
    const ref = this.#rows.find(identity)
    if (ref !== NONE) this.#remove(ref)
  }

  /** Visits up to `most` states, and forgets those that no longer matter. */
  sweep(now: number, most: number): void {
    for (let n = Math.min(most, this.size); n > 0; n--) {
      this.#visit(this.#sweep)
      // A removed row is replaced by another, so the walk stays there to see that next.
      if (this.end() + this.#graceMs <= now) this.#remove(this.#ref)
      else this.#sweep.row++
    }
  }

  /** Forgets one of the next few states: the least consumed, or of refused ones that which was refused least. */
  evict(now: number, isRefused: boolean): void {
    const walk = isRefused ? this.#ofRefused : this.#ofCounted
    this.#evictOn(walk, isRefused ? this.refused.keys : this.counted.keys, now)
  }

  /** Likewise, of the states that have as many cells as the one that was made last; never the only one. */
  evictAlike(now: number): void {
    const states = this.#rows.shelves[this.#newest]?.size ?? 0
    if (states < 2) return
    this.#ofAlike.shelf = this.#ofAlike.start = this.#newest
    this.#evictOn(this.#ofAlike, states, now)
  }

  #evictOn(walk: Walk, states: number, now: number): void {
    let victim = NONE
    let least = Number.POSITIVE_INFINITY
    let soonest = 0
    for (let n = Math.min(SAMPLE, states); n > 0; n--) {
      this.#visit(walk)
      walk.row++
      const end = this.end()
      const isRefused = (this.#ref & REFUSED) !== 0
      const rank = end <= now ? -1 : isRefused ? this.#refusals : this.consumed(now)
      if (rank < least || (isRefused && rank === least && end < soonest)) {
        least = rank
        soonest = end
        victim = this.#ref
      }
    }
    if (victim !== NONE) this.#remove(victim)
  }

  /** From when on forgetting the state at hand cannot be noticed. */
  protected abstract end(): number

  /** The share of its limit that the state at hand has used, from 0 to 1. */
  protected abstract consumed(now: number): number

  protected find(identity: string, now: number, need: number): boolean {
    this.identity = identity
    this.now = now
    this.need = need
    const ref = this.#rows.find(identity)
    this.isKept = ref !== NONE
    if (ref !== NONE) {
      this.#open(ref)
      if ((ref & REFUSED) !== 0) this.#pardon()
    }
    return this.isKept
  }

  /** Makes a state of so many cells for the identity: its first, or one of another kind instead of what it has. */
  protected keep(kind: number, cells: number): void {
    const refusals = this.isKept && (this.#ref & REFUSED) !== 0 ? this.#refusals : 0
    if (this.isKept) this.#withdraw(this.#ref)
    this.isKept = true
    this.#place(kind, cells, refusals > 0 ? REFUSED : 0)
    if (refusals > 0) this.#refusals = refusals
  }

  /** Bytes that an identity's state takes beside its row. */
  protected bytesBeside(_identity: string): number {
    return 0
  }

  /** Counts a change of what the state at hand takes beside its row. */
  protected took(bytes: number): void {
    this.#usageOf(this.#ref).add(0, bytes)
  }

  /** Called when the state of an identity has been forgotten. */
  protected gone(_identity: string): void {}

  /** Which kind the state at hand is of. States of one kind have the same number of cells; most tables have one. */
  protected get kind(): number {
    return (this.#ref & SHELF) >> 1
  }

  /** The same memory as `cells`, two to a cell: the state is `ints` from `2 * at` on. */
  protected get ints(): Int32Array {
    const rows = this.#rows.shelves[this.#ref & SHELF] as Rows
    return rows.ints[(this.#ref >>> SHELF_BITS) >>> rows.shift] as Int32Array
  }

  protected drop(): void {
    if (this.isKept) this.#remove(this.#ref)
    this.isKept = false
  }

  /** How often the state at hand has been refused, where it stands among those that have. */
  get #refusals(): number {
    return this.cells[this.at + this.#shelfOf(this.#ref).width - 2] as number
  }

  set #refusals(refusals: number) {
    this.cells[this.at + this.#shelfOf(this.#ref).width - 2] = refusals
  }

  /**
   * A state that has ended counts as one that was never refused when its identity comes again. It stays: for a clock
   * that steps back it has not ended.
   */
  #pardon(): void {
    if (this.end() + this.#graceMs <= this.now) this.#move(0)
  }

  /** Moves the state at hand to the shelf of those that have been refused, or of those that have not. */
  #move(refused: number): void {
    const { kind } = this
    const length = this.#shelfOf(this.#ref).width - 1 - (this.#ref & REFUSED)
    const state = this.cells.slice(this.at, this.at + length)
    this.#withdraw(this.#ref)
    this.#place(kind, length, refused)
    this.cells.set(state, this.at)
  }

  /** The state a walk stands at, or the next one after the end of a shelf. */
  #visit(walk: Walk): void {
    const { shelves } = this.#rows
    while (walk.row >= (shelves[walk.shelf]?.size ?? 0)) {
      walk.row = 0
      walk.shelf += walk.stride
      if (walk.shelf >= shelves.length) walk.shelf = walk.start
    }
    this.#open((walk.row << SHELF_BITS) | walk.shelf)
  }

  #place(kind: number, cells: number, refused: number): void {
    const shelf = (kind << 1) | refused
    this.#open(this.#rows.add(this.identity, shelf, cells + refused))
    this.#usageOf(shelf).add(1, this.#bytesOf(this.#ref, this.identity))
    this.#newest = shelf
  }

  #remove(ref: number): void {
    const identity = this.#withdraw(ref)
    this.gone(identity)
  }

  /** Takes a row away, and returns whose it was. */
  #withdraw(ref: number): string {
    const identity = this.#rows.keyOf(ref)
    this.#usageOf(ref).add(-1, -this.#bytesOf(ref, identity))
    this.#rows.remove(ref)
    return identity
  }

  #bytesOf(ref: number, identity: string): number {
    return rowBytes(this.#shelfOf(ref).width, identity) + this.bytesBeside(identity)
  }

  #usageOf(ref: number): Usage {
    return (ref & REFUSED) === 0 ? this.counted : this.refused
  }

  #shelfOf(ref: number): Rows {
    return this.#rows.shelves[ref & SHELF] as Rows
  }

  #open(ref: number): void {
    const rows = this.#rows.shelves[ref & SHELF] as Rows
    const row = ref >>> SHELF_BITS
    this.#ref = ref
    this.cells = rows.cells[row >>> rows.shift] as Float64Array
    this.at = (row & rows.mask) * rows.width + 1
  }
}
