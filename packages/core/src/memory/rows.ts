/** The maximum size of a chunk, unless one row is larger. */
const CHUNK_BYTES = 32_768
/** Rows in the first chunk at first: many tables never have more. */
const FIRST_ROWS = 4

/**
 * Rows of numbers, all of one width, and the key of each. They are dense: the last row replaces a removed
 * one, so the remains of a flood take no more room than needed. They are stored in chunks, so that
 * growing never copies more than one of them; and outside of the heap, where the garbage collector does not visit them.
 */
export class Rows {
  size = 0
  /** The cells by chunk. `ints` is the same memory as `cells`, two ints to a cell. */
  readonly cells: Float64Array[] = []
  readonly ints: Int32Array[] = []
  readonly keys: string[][] = []
  /** A row is in chunk `row >>> shift`, `row & mask` rows from its start. */
  readonly shift: number
  readonly mask: number

  /** Cells per row. */
  readonly width: number

  constructor(width: number) {
    this.width = width
    this.shift = Math.max(0, Math.floor(Math.log2(CHUNK_BYTES / (8 * width))))
    this.mask = (1 << this.shift) - 1
  }

  /** Adds a row at the end. Its cells contain arbitrary old values. */
  add(key: string): number {
    const row = this.size++
    const chunk = row >>> this.shift
    const first = this.cells[0]
    if (chunk === this.cells.length)
      this.#make(chunk, chunk === 0 ? Math.min(FIRST_ROWS, this.mask + 1) : this.mask + 1)
    else if (chunk === 0 && first && row * this.width === first.length) this.#make(0, 2 * row)
    ;(this.keys[chunk] as string[])[row & this.mask] = key
    return row
  }

  copy(from: number, to: number): void {
    const [source, target] = [from >>> this.shift, to >>> this.shift]
    const start = (from & this.mask) * this.width
    const cells = (this.cells[source] as Float64Array).subarray(start, start + this.width)
    ;(this.cells[target] as Float64Array).set(cells, (to & this.mask) * this.width)
    ;(this.keys[target] as string[])[to & this.mask] = (this.keys[source] as string[])[from & this.mask] as string
  }

  /** Removes the last row. Retains one empty chunk for rows that come and go at its border, unless one row fills it. */
  pop(): void {
    const last = --this.size
    ;(this.keys[last >>> this.shift] as string[]).pop()
    const needed = (last + this.mask) >>> this.shift
    if (this.cells.length <= needed + (this.mask > 0 ? 1 : 0)) return
    for (const column of [this.cells, this.ints, this.keys]) column.pop()
  }

  #make(chunk: number, rows: number): void {
    const cells = new Float64Array(rows * this.width)
    const old = this.cells[chunk]
    if (old) cells.set(old)
    this.cells[chunk] = cells
    this.ints[chunk] = new Int32Array(cells.buffer)
    this.keys[chunk] ??= []
  }
}
