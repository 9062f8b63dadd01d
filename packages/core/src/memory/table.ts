import type { WallClock } from './clock.js'
import { KeyedRows, NONE, SHELF, SHELF_BITS } from './keyed-rows.js'
import type { Rows } from './rows.js'
import { rowBytes, Usage } from './usage.js'

/** The terms of a table: the time that states outlive their end, for clocks that may step back; and the usage that it is part of. */
export interface TableTerms {
  readonly id: string
  readonly graceMs: number
  /** The clock of windows that begin and end at dates. */
  readonly wall: WallClock
  readonly counted: Usage
  readonly refused: Usage
  /** Whether tables of other amounts share its states. */
  readonly isCarried: boolean | undefined
  /** A table of the same kind whose states this one shares; only the amounts differ. */
  readonly like: Table | undefined
}

/** Makes the table of a kind of cell. */
export type TableClass = new (params: readonly number[], terms: TableTerms) => Table

/** The number of states among which an eviction chooses. */
const SAMPLE = 8

const NO_CELLS = new Float64Array(0)

/** A bit of a shelf's number: whether its states have been refused. */
const REFUSED = 1

/** The position of a walk over the shelves `start`, `start + stride`, … in a circle. */
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
 * The states of one cell in memory, by identity. `look` finds a state and brings it to the present. The calls after it, until
 * the next `look`, use that state.
 *
 * States are rows by identity. Walks visit them in a circle, a few at a time, so there is no timer per key.
 * The current state is the last one that `find`, `keep` or a walk reached: `cells` from `at` on. It stays there until
 * another of the same table is made or removed.
 *
 * A refused state moves, once, to a shelf of refused ones, where a last cell counts its refusals. It stays there until it has
 * ended. Evictions choose among either kind, at no cost to admitted requests.
 */
export abstract class Table {
  readonly id: string
  /** The usage of states that have not been refused, and of those that have. */
  readonly counted: Usage
  readonly refused: Usage
  /** The refunds of a bucket so far, in unit·ms, while they are needed; 0 elsewhere. */
  refunded = 0
  /** Whether the last `look` found a state. */
  hasState = false
  /** The arguments of the last `look`. */
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
  /** The shelf of the state that was added last. */
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

  /** Charges `cost`, or as much of it as fits. */
  abstract charge(cost: number, permitId: string): void

  /** Charges `cost`, whatever room there is. Does nothing where units are permits. */
  debit(_cost: number): void {}

  /** Refunds `cost` of a charge. Its result at `chargedAt` had `receipt`, and `refunded` was `before`. */
  abstract refund(cost: number, receipt: number, chargedAt: number, permitId: string, before: number): void

  /** Holds `cost` permits of an id for another `ttl`, and returns whether all were held. Does nothing where units are no permits. */
  renew(_cost: number, _permitId: string): boolean {
    return true
  }

  /** Rewrites a state from an impossible future as of `now`. */
  abstract heal(): void

  /**
   * Writes four values of each limit: remaining, retry for the `need` of the last `look` (0 if `admitted`), reset and receipt.
   * Returns the end of the values.
   */
  abstract report(values: number[], from: number, admitted: boolean): number

  /** Records, for evictions only, that the identity of the last `look` was refused. Call it after `report`. */
  noteRefusal(): void {
    if (!this.hasState) return
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

  /** Visits up to `max` states, and forgets those that have ended. */
  sweep(instant: number, max: number): void {
    const now = this.timeAt(instant)
    for (let n = Math.min(max, this.size); n > 0; n--) {
      this.#visit(this.#sweep)
      // Another row replaces a removed one, so the walk stays there to visit that next.
      if (this.end() + this.#graceMs <= now) this.#remove(this.#ref)
      else this.#sweep.row++
    }
  }

  /** Evicts one of the next few states: the least consumed, or among refused ones the one with the fewest refusals. */
  evict(now: number, isRefused: boolean): void {
    const walk = isRefused ? this.#ofRefused : this.#ofCounted
    this.#evictOn(walk, isRefused ? this.refused.keys : this.counted.keys, now)
  }

  /** Evicts likewise among the states with as many cells as the newest one; never the only one. */
  evictAlike(now: number): void {
    const states = this.#rows.shelves[this.#newest]?.size ?? 0
    if (states < 2) return
    this.#ofAlike.shelf = this.#ofAlike.start = this.#newest
    this.#evictOn(this.#ofAlike, states, now)
  }

  #evictOn(walk: Walk, states: number, instant: number): void {
    const now = this.timeAt(instant)
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

  /** The time of the states at an instant of the store's monotonic clock. */
  protected timeAt(now: number): number {
    return now
  }

  /** The time after which the loss of the current state cannot be noticed. */
  protected abstract end(): number

  /** The share of its limit that the current state has used, from 0 to 1. */
  protected abstract consumed(now: number): number

  protected find(identity: string, now: number, need: number): boolean {
    this.identity = identity
    this.now = now
    this.need = need
    const ref = this.#rows.find(identity)
    this.hasState = ref !== NONE
    if (ref !== NONE) {
      this.#open(ref)
      if ((ref & REFUSED) !== 0) this.#clearRefusals()
    }
    return this.hasState
  }

  /** Makes a state of `cells` cells for the identity: its first one, or one of another kind that replaces it. */
  protected keep(kind: number, cells: number): void {
    const refusals = this.hasState && (this.#ref & REFUSED) !== 0 ? this.#refusals : 0
    if (this.hasState) this.#withdraw(this.#ref)
    this.hasState = true
    this.#place(kind, cells, refusals > 0 ? REFUSED : 0)
    if (refusals > 0) this.#refusals = refusals
  }

  /** Bytes of an identity's state beside its row. */
  protected bytesBeside(_identity: string): number {
    return 0
  }

  /** Counts a change of the current state's bytes beside its row. */
  protected took(bytes: number): void {
    this.#usageOf(this.#ref).add(0, bytes)
  }

  /** Called when the state of an identity has been forgotten. */
  protected gone(_identity: string): void {}

  /** The kind of the current state. States of one kind have the same number of cells; most tables have one kind. */
  protected get kind(): number {
    return (this.#ref & SHELF) >> 1
  }

  /** The same memory as `cells`, two to a cell: the state is `ints` from `2 * at` on. */
  protected get ints(): Int32Array {
    const rows = this.#rows.shelves[this.#ref & SHELF] as Rows
    return rows.ints[(this.#ref >>> SHELF_BITS) >>> rows.shift] as Int32Array
  }

  protected drop(): void {
    if (this.hasState) this.#remove(this.#ref)
    this.hasState = false
  }

  /** The refusals of the current state, where it is in a shelf of refused ones. */
  get #refusals(): number {
    return this.cells[this.at + this.#shelfOf(this.#ref).width - 2] as number
  }

  set #refusals(refusals: number) {
    this.cells[this.at + this.#shelfOf(this.#ref).width - 2] = refusals
  }

  /**
   * Clears the refusals of a state that had ended when its identity came again. The state stays: for a clock
   * that steps back it has not ended.
   */
  #clearRefusals(): void {
    if (this.end() + this.#graceMs <= this.now) this.#move(0)
  }

  /** Moves the current state to the shelf of refused states, or of the others. */
  #move(refused: number): void {
    const { kind } = this
    const length = this.#shelfOf(this.#ref).width - 1 - (this.#ref & REFUSED)
    const state = this.cells.slice(this.at, this.at + length)
    this.#withdraw(this.#ref)
    this.#place(kind, length, refused)
    this.cells.set(state, this.at)
  }

  /** Visits the state at the position of a walk, or the next one after the end of a shelf. */
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

  /** Removes a row, and returns its identity. */
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
