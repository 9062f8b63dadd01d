import { KeyedRows, NONE, SHELF_BITS } from '@sluice/core/internal'

/** Marks of a client. */
export const REFUSED = 1
export const GOOD = 2
/** A policy that is enforced has refused it. */
export const ENFORCED = 4

/**
 * Counts by client, for millions of them, outside of the heap. Clients are identities of one kind. Each policy that counts this
 * kind has a column.
 */
export class ClientTable {
  readonly #rows = new KeyedRows()
  /** Cells of a row beside its link: one for all policies, and two for each. */
  readonly #cells: number

  constructor(columns: number) {
    this.#cells = 1 + 2 * columns
  }

  get size(): number {
    return this.#rows.size
  }

  /** The row of a client, which is new where it has none. */
  rowOf(client: string): number {
    const ref = this.#rows.find(client)
    if (ref !== NONE) return ref >>> SHELF_BITS
    const row = this.#rows.add(client, 0, this.#cells) >>> SHELF_BITS
    this.#cellsOf(row).fill(0)
    return row
  }

  nameOf(row: number): string {
    return this.#rows.keyOf(row << SHELF_BITS)
  }

  /** Counts a request of a client, whatever policies apply to it. */
  countRequest(row: number): void {
    const ints = this.#intsOf(row)
    const at = this.#at(row)
    ints[at] = (ints[at] as number) + 1
  }

  requestsOf(row: number): number {
    return this.#intsOf(row)[this.#at(row)] as number
  }

  /** Marks a client, and returns whether it had no such mark. */
  mark(row: number, mark: number): boolean {
    const ints = this.#intsOf(row)
    const at = this.#at(row) + 1
    const before = ints[at] as number
    ints[at] = before | mark
    return (before & mark) === 0
  }

  has(row: number, mark: number): boolean {
    return ((this.#intsOf(row)[this.#at(row) + 1] as number) & mark) !== 0
  }

  /** Counts a request that a policy decides on, and returns whether it is the first of this client. */
  count(row: number, column: number): boolean {
    const ints = this.#intsOf(row)
    const at = this.#at(row) + 2 + 4 * column
    ints[at] = (ints[at] as number) + 1
    return ints[at] === 1
  }

  /** Counts a refusal by a policy, and returns the number of them so far. */
  countRefusal(row: number, column: number, now: number): number {
    const ints = this.#intsOf(row)
    const at = this.#at(row) + 2 + 4 * column + 1
    const refused = (ints[at] as number) + 1
    ints[at] = refused
    if (refused === 1) this.#cellsOf(row)[2 + 2 * column] = now
    return refused
  }

  /** Its requests, its refusals and the first of these, by one policy. */
  countsOf(
    row: number,
    column: number,
  ): { readonly requests: number; readonly refused: number; readonly firstMs: number } {
    const ints = this.#intsOf(row)
    const at = this.#at(row) + 2 + 4 * column
    return {
      requests: ints[at] as number,
      refused: ints[at + 1] as number,
      firstMs: this.#cellsOf(row)[2 + 2 * column] as number,
    }
  }

  /** The first of its own numbers in `#intsOf`. */
  #at(row: number): number {
    const rows = this.#shelf
    return (row & rows.mask) * rows.width * 2 + 2
  }

  #intsOf(row: number): Int32Array {
    const rows = this.#shelf
    return rows.ints[row >>> rows.shift] as Int32Array
  }

  /** The cells of a row, without its link. */
  #cellsOf(row: number): Float64Array {
    const rows = this.#shelf
    const start = (row & rows.mask) * rows.width
    return (rows.cells[row >>> rows.shift] as Float64Array).subarray(start + 1, start + rows.width)
  }

  get #shelf(): NonNullable<KeyedRows['shelves'][number]> {
    return this.#rows.shelves[0] as NonNullable<KeyedRows['shelves'][number]>
  }
}
