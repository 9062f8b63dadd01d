import type { RecordContext } from '../replay/record-context.js'
import { type DetailsReport, RefusedDetails } from './refused-details.js'
import { RowIndex } from './row-index.js'

/** Marks of a client. */
export const REFUSED = 1
export const GOOD = 2
/** A policy that is enforced has refused it. */
export const ENFORCED = 4

const CHUNK_BITS = 12
const MASK = (1 << CHUNK_BITS) - 1

/**
 * Counts by client, for millions of them, outside of the heap. Clients are identities of one kind. Each policy that counts this
 * kind has a column.
 */
export class ClientTable {
  readonly #index = new RowIndex()
  /** Cells of a row: its requests and marks, then for each policy requests and refusals, and the time of the first of these. */
  readonly #width: number
  readonly #cells: Float64Array[] = []
  /** The same memory, two numbers to a cell. */
  readonly #ints: Int32Array[] = []
  readonly #details = new RefusedDetails()

  constructor(columns: number) {
    this.#width = 1 + 2 * columns
  }

  get size(): number {
    return this.#index.size
  }

  /** The row of a client, which is new where it has none. */
  rowOf(client: string): number {
    const row = this.#index.rowOf(client)
    if (row >>> CHUNK_BITS === this.#cells.length) {
      const cells = new Float64Array(this.#width << CHUNK_BITS)
      this.#cells.push(cells)
      this.#ints.push(new Int32Array(cells.buffer))
    }
    return row
  }

  nameOf(row: number): string {
    return this.#index.nameOf(row)
  }

  /** Counts a request of a client, whatever policies apply to it, and returns whether it is the first. */
  countRequest(row: number): boolean {
    return this.#add(row, 0) === 1
  }

  requestsOf(row: number): number {
    return this.#int(row, 0)
  }

  /** Marks a client, and returns whether it had no such mark. */
  mark(row: number, mark: number): boolean {
    const ints = this.#ints[row >>> CHUNK_BITS] as Int32Array
    const at = (row & MASK) * this.#width * 2 + 1
    const before = ints[at] as number
    ints[at] = before | mark
    return (before & mark) === 0
  }

  has(row: number, mark: number): boolean {
    return (this.#int(row, 1) & mark) !== 0
  }

  /** Counts a request that a policy decides on, and returns whether it is the first of this client. */
  count(row: number, column: number): boolean {
    return this.#add(row, 2 + 4 * column) === 1
  }

  /** Counts a refusal by a policy, and returns whether it is the first of this client. */
  countRefusal(row: number, column: number, now: number, context: RecordContext): boolean {
    this.#details.note(row * this.#width + column, context)
    if (this.#add(row, 3 + 4 * column) > 1) return false
    const cells = this.#cells[row >>> CHUNK_BITS] as Float64Array
    cells[(row & MASK) * this.#width + 2 + 2 * column] = now
    return true
  }

  detailsOf(row: number, column: number): DetailsReport {
    return this.#details.of(row * this.#width + column)
  }

  /** Its requests, its refusals and the first of these, by one policy. */
  countsOf(
    row: number,
    column: number,
  ): { readonly requests: number; readonly refused: number; readonly firstMs: number } {
    const cells = this.#cells[row >>> CHUNK_BITS] as Float64Array
    return {
      requests: this.#int(row, 2 + 4 * column),
      refused: this.#int(row, 3 + 4 * column),
      firstMs: cells[(row & MASK) * this.#width + 2 + 2 * column] as number,
    }
  }

  #int(row: number, place: number): number {
    return (this.#ints[row >>> CHUNK_BITS] as Int32Array)[(row & MASK) * this.#width * 2 + place] as number
  }

  #add(row: number, place: number): number {
    const ints = this.#ints[row >>> CHUNK_BITS] as Int32Array
    const at = (row & MASK) * this.#width * 2 + place
    const count = (ints[at] as number) + 1
    ints[at] = count
    return count
  }
}
