import { KeyedRows, NONE, SHELF_BITS } from './keyed-rows.js'

/** Values in one chunk: the maximum copied when it grows. */
const CHUNK_BITS = 10
const MASK = (1 << CHUNK_BITS) - 1

/**
 * Values by key, like a `Map`, which rehashes all its keys at once when it grows. They are dense and numbered: the
 * last one replaces a removed one, so a walk by number meets each with constant work per step.
 */
export class KeyedValues<Value> {
  readonly #rows = new KeyedRows()
  /** The chunks, by row. */
  readonly #chunks: Value[][] = []

  get size(): number {
    return this.#rows.size
  }

  get(key: string): Value | undefined {
    const ref = this.#rows.find(key)
    return ref === NONE ? undefined : this.at(ref >>> SHELF_BITS)
  }

  set(key: string, value: Value): void {
    const ref = this.#rows.find(key)
    const row = (ref === NONE ? this.#rows.add(key, 0, 0) : ref) >>> SHELF_BITS
    this.#chunks[row >>> CHUNK_BITS] ??= []
    ;(this.#chunks[row >>> CHUNK_BITS] as Value[])[row & MASK] = value
  }

  delete(key: string): void {
    const ref = this.#rows.find(key)
    if (ref === NONE) return
    const row = ref >>> SHELF_BITS
    const last = this.size - 1
    const chunk = this.#chunks[last >>> CHUNK_BITS] as Value[]
    const moved = chunk.pop() as Value
    if (row !== last) (this.#chunks[row >>> CHUNK_BITS] as Value[])[row & MASK] = moved
    if (chunk.length === 0) this.#chunks.pop()
    this.#rows.remove(ref)
  }

  /** The value of a number below `size`. */
  at(row: number): Value {
    return (this.#chunks[row >>> CHUNK_BITS] as Value[])[row & MASK] as Value
  }

  keyAt(row: number): string {
    return this.#rows.keyOf(row << SHELF_BITS)
  }

  /** The keys from the last to the first: a removal meanwhile skips none. */
  *keys(): Generator<string> {
    for (let row = this.size - 1; row >= 0; row--) if (row < this.size) yield this.keyAt(row)
  }
}
