import { isCalendar } from '../store/algorithms.js'
import type { Cell } from '../store/store.js'
import { getOrInsert } from '../util/get-or-insert.js'
import type { WallClock } from './clock.js'
import { KeyedValues } from './keyed-values.js'
import type { Table, TableClass, TableTerms } from './table.js'
import { textBytes, Usage } from './usage.js'

/** Bytes of a table before it has a state, with its first few rows. */
const TABLE_BYTES = 3800
/** The number of tables checked for each eviction. */
const SAMPLE = 8
/** Maximum of evictions in one decision. */
const MAX_EVICTIONS = 64
/** The share of the room that is reserved for identities that have not been refused, so that new ones are limited too. */
const COUNTED_SHARE = 1 / 8

/** The bounds of a store's states in number, memory and time. */
export interface Bounds {
  readonly maxKeys: number
  readonly maxBytes: number
  /** The time in ms that states outlive their end. */
  readonly graceMs: number
  readonly wall: WallClock
}

/** What makes the table of a cell: the store knows no kinds. */
export type TableClassOf = (cell: Cell) => TableClass

/** All tables of a store, by policy and cell, and the eviction of states when they exceed their room. */
export class Tables {
  /** The usage of the whole store, blocks included. */
  readonly #all: Usage
  readonly #counted: Usage
  readonly #refused: Usage
  readonly #bounds: Bounds
  readonly #classOf: TableClassOf
  readonly #byId = new KeyedValues<Table>()
  /** The tables that share states, for cells that are carried or windows of the calendar, by the id of the table that stores them. */
  #alike = new WeakMap<Cell, Map<string, Table>>()
  /** The fullest known tables: of states that have not been refused, and of those that have. */
  readonly #fullest: Record<StateKind, Table | undefined> = { counted: undefined, refused: undefined }
  /** The positions of the walks: for the fullest table, and for states that have ended. */
  #nextSampled = 0
  #nextSwept = 0

  constructor(all: Usage, bounds: Bounds, classOf: TableClassOf) {
    this.#all = all
    this.#counted = new Usage(all)
    this.#refused = new Usage(all)
    this.#bounds = bounds
    this.#classOf = classOf
  }

  /** States that were evicted so far. */
  evicted = 0

  get size(): number {
    return this.#byId.size
  }

  find(id: string, cell: Cell): Table {
    const table = this.#byId.get(id)
    if (table) return cell.isCarried || isCalendar(cell) ? this.#like(table, cell) : table
    const newTable = this.#make(cell, this.#termsOf(id, cell))
    this.#all.add(0, TABLE_BYTES + textBytes(id))
    this.#byId.set(id, newTable)
    return newTable
  }

  /** A table that shares the states of another, for a plan with other amounts or other bounds. */
  #like(table: Table, cell: Cell): Table {
    const ofCell = getOrInsert(this.#alike, cell, () => new Map<string, Table>())
    return getOrInsert(ofCell, table.id, (id) => this.#make(cell, this.#termsOf(id, cell, table)))
  }

  #make(cell: Cell, terms: TableTerms): Table {
    return new (this.#classOf(cell))(cell.params, terms)
  }

  #termsOf(id: string, { isCarried }: Cell, like?: Table): TableTerms {
    const { graceMs, wall } = this.#bounds
    return { id, graceMs, wall, counted: this.#counted, refused: this.#refused, isCarried, like }
  }

  /** Forgets a value in every table of a kind. */
  forget(start: string, value: string): void {
    for (let n = 0; n < this.size; n++) {
      const table = this.#byId.at(n)
      if (table.id.endsWith(`\n${start}`)) table.forget(value)
    }
  }

  /**
   * Evicts until there is room, within a bounded number of steps. A decision may have added more than so many small evicted states
   * free. It then evicts states as large as those it added, so that no sequence of decisions outgrows the bound.
   * Returns whether tables were removed.
   */
  makeRoom(now: number, decided: readonly Table[]): boolean {
    const before = this.size
    for (let n = MAX_EVICTIONS + decided.length; n > 0 && this.areTooMany; n--) this.#evict(now)
    for (const table of decided) if (this.#all.bytes > this.#bounds.maxBytes) table.evictAlike(now)
    return this.size < before
  }

  /** Visits up to `max` states and tables, and removes those that have ended. Returns whether tables were removed. */
  sweep(now: number, max: number): boolean {
    const before = this.size
    for (let n = before, left = max; n > 0 && left > 0; n--) {
      if (this.#nextSwept >= this.size) this.#nextSwept = 0
      const table = this.#byId.at(this.#nextSwept)
      const visits = Math.min(left - 1, table.size)
      table.sweep(now, visits)
      left -= 1 + visits
      if (table.size > 0) this.#nextSwept++
      else this.#drop(table)
    }
    return this.size < before
  }

  get areTooMany(): boolean {
    return this.#all.keys > this.#bounds.maxKeys || this.#all.bytes > this.#bounds.maxBytes
  }

  /**
   * Evicts a state that has not been refused, or a refused one if those exceed their share. It takes it from the table with the
   * most: otherwise a new table would lose every new state at once, and limit nothing.
   */
  #evict(now: number): void {
    const byKeys = this.#all.keys > this.#bounds.maxKeys
    const counted = amount(this.#counted, byKeys)
    const refused = amount(this.#refused, byKeys)
    const isCrowded = this.#counted.keys <= 1 || counted < (counted + refused) * COUNTED_SHARE
    const isRefused = refused > 0 && isCrowded
    const table = this.#findFullest(isRefused ? 'refused' : 'counted', byKeys)
    if (!table) return
    table.evict(now, isRefused)
    this.evicted++
    if (table.size === 0) this.#drop(table)
  }

  /** The fullest among the fullest known table and the next few. Within a few evictions that is the fullest of all. */
  #findFullest(kind: StateKind, byKeys: boolean): Table | undefined {
    let fullest = this.#fullest[kind]
    let largest = fullest ? amount(fullest[kind], byKeys) : 0
    for (let n = Math.min(SAMPLE, this.size); n > 0; n--) {
      if (this.#nextSampled >= this.size) this.#nextSampled = 0
      const table = this.#byId.at(this.#nextSampled++)
      const size = amount(table[kind], byKeys)
      if (size > largest) {
        largest = size
        fullest = table
      } else if (table.size === 0) this.#drop(table)
    }
    this.#fullest[kind] = fullest
    return fullest
  }

  #drop(table: Table): void {
    this.#byId.delete(table.id)
    this.#alike = new WeakMap()
    this.#all.add(0, -TABLE_BYTES - textBytes(table.id))
    if (this.#fullest.counted === table) this.#fullest.counted = undefined
    if (this.#fullest.refused === table) this.#fullest.refused = undefined
  }
}

type StateKind = 'counted' | 'refused'

function amount({ keys, bytes }: Usage, byKeys: boolean): number {
  return byKeys ? keys : bytes
}
