import { randomFillSync } from 'node:crypto'
import { Rows } from './rows.js'

/** The maximum length of a key: long identities are hashed (`checkedKey`). Keys of blocks have the policy before the identity. */
const LONGEST = 1024
const FACTORS = randomFillSync(new Int32Array(LONGEST + 1))

/**
 * 25 bits of a key: the sum of its characters, each times a secret factor of its position (multilinear hashing;
 * Lemire and Kaser, "Strongly universal string hashing is fast"). Clients choose their keys, and must not be able
 * to choose many that share one chain. Without the factors they cannot; the low bits, which are weaker, are dropped.
 */
function keyHash(key: string): number {
  const length = Math.min(key.length, LONGEST)
  let sum = Math.imul(FACTORS[0] as number, key.length)
  for (let i = 0; i < length; i++) sum = (sum + Math.imul(FACTORS[i + 1] as number, key.charCodeAt(i))) | 0
  return sum >>> 7
}

/**
 * The ref of no row. Other refs are `row << SHELF_BITS | shelf`, for rows below 2^26 - 1. They are valid until a row of that shelf
 * is removed.
 */
export const NONE = -1
export const SHELF_BITS = 6
export const SHELF = (1 << SHELF_BITS) - 1

/** The chains whose heads share one chunk; and the minimum number of chains. */
const CHUNK_BITS = 12
const CHUNK = 1 << CHUNK_BITS
const FIRST_CHAINS = 8

/**
 * Rows by key: a hash table whose rows are linked into chains, each by its first cell (hash, next ref). Rows of
 * several widths are in one shelf per width.
 *
 * It grows by linear hashing (Litwin 1980): each new key splits one chain, and each removed key joins up to
 * two. A `Map` that doubles moves all its keys at once, and every request waits: 80 ms at a million.
 */
export class KeyedRows {
  readonly shelves: Rows[] = []
  readonly #heads = [new Int32Array(FIRST_CHAINS).fill(NONE)]
  #chains = FIRST_CHAINS
  /** Chains before this round of splitting: a power of two. */
  #round = FIRST_CHAINS
  #size = 0

  get size(): number {
    return this.#size
  }

  find(key: string): number {
    const hash = keyHash(key)
    for (let ref = this.#head(this.#chainOf(hash)); ref !== NONE; ) {
      const rows = this.shelves[ref & SHELF] as Rows
      const row = ref >>> SHELF_BITS
      const ints = rows.ints[row >>> rows.shift] as Int32Array
      const link = (row & rows.mask) * rows.width * 2
      if (ints[link] === hash && (rows.keys[row >>> rows.shift] as string[])[row & rows.mask] === key) return ref
      ref = ints[link + 1] as number
    }
    return NONE
  }

  /** Adds a row for a key that has none. All rows of a shelf have the same number of cells beside their links. */
  add(key: string, shelf: number, cells: number): number {
    const hash = keyHash(key)
    this.shelves[shelf] ??= new Rows(cells + 1)
    const ref = (this.shelves[shelf].add(key) << SHELF_BITS) | shelf
    if (++this.#size > this.#chains) this.#split()
    this.#push(this.#chainOf(hash), ref, hash)
    return ref
  }

  keyOf(ref: number): string {
    const rows = this.shelves[ref & SHELF] as Rows
    const row = ref >>> SHELF_BITS
    return (rows.keys[row >>> rows.shift] as string[])[row & rows.mask] as string
  }

  remove(ref: number): void {
    this.#replace(this.#hashAt(ref), ref, this.#next(ref))
    const shelf = ref & SHELF
    const rows = this.shelves[shelf] as Rows
    const last = ((rows.size - 1) << SHELF_BITS) | shelf
    if (last !== ref) {
      this.#replace(this.#hashAt(last), last, ref)
      rows.copy(last >>> SHELF_BITS, ref >>> SHELF_BITS)
    }
    rows.pop()
    this.#size--
    for (let n = 0; n < 2 && this.#chains > FIRST_CHAINS && 2 * this.#size < this.#chains; n++) this.#join()
  }

  #link(ref: number): number {
    const rows = this.shelves[ref & SHELF] as Rows
    return ((ref >>> SHELF_BITS) & rows.mask) * rows.width * 2
  }

  #ints(ref: number): Int32Array {
    const rows = this.shelves[ref & SHELF] as Rows
    return rows.ints[(ref >>> SHELF_BITS) >>> rows.shift] as Int32Array
  }

  #hashAt(ref: number): number {
    return this.#ints(ref)[this.#link(ref)] as number
  }

  #next(ref: number): number {
    return this.#ints(ref)[this.#link(ref) + 1] as number
  }

  #push(chain: number, ref: number, hash: number): void {
    const ints = this.#ints(ref)
    const link = this.#link(ref)
    ints[link] = hash
    ints[link + 1] = this.#head(chain)
    this.#setHead(chain, ref)
  }

  /** Makes the link to `ref` in the chain of `hash` point to `to`. */
  #replace(hash: number, ref: number, to: number): void {
    const chain = this.#chainOf(hash)
    let before = this.#head(chain)
    if (before === ref) return this.#setHead(chain, to)
    for (let next = this.#next(before); next !== ref; next = this.#next(before)) before = next
    this.#ints(before)[this.#link(before) + 1] = to
  }

  #chainOf(hash: number): number {
    const chain = hash & (2 * this.#round - 1)
    return chain < this.#chains ? chain : chain - this.#round
  }

  #head(chain: number): number {
    return (this.#heads[chain >>> CHUNK_BITS] as Int32Array)[chain & (CHUNK - 1)] as number
  }

  #setHead(chain: number, ref: number): void {
    ;(this.#heads[chain >>> CHUNK_BITS] as Int32Array)[chain & (CHUNK - 1)] = ref
  }

  /** Adds a chain, and moves the rows into it that belong there from the next chain to be split. */
  #split(): void {
    const chain = this.#chains++
    const from = chain - this.#round
    if (this.#chains === 2 * this.#round) this.#round = this.#chains
    this.#makeHead(chain)
    this.#rechain(from)
  }

  /** Removes the last chain: its rows return to the chain that it was split from. */
  #join(): void {
    const chain = --this.#chains
    if (chain < this.#round) this.#round /= 2
    this.#rechain(chain)
    if (this.#heads.length > (chain >>> CHUNK_BITS) + 2) this.#heads.pop()
  }

  #rechain(chain: number): void {
    let ref = this.#head(chain)
    this.#setHead(chain, NONE)
    while (ref !== NONE) {
      const next = this.#next(ref)
      const hash = this.#hashAt(ref)
      this.#push(this.#chainOf(hash), ref, hash)
      ref = next
    }
  }

  #makeHead(chain: number): void {
    const chunk = chain >>> CHUNK_BITS
    const heads = this.#heads[chunk]
    if (heads && (chain & (CHUNK - 1)) < heads.length) return
    const more = new Int32Array(chunk === 0 ? 2 * chain : CHUNK).fill(NONE)
    if (heads) more.set(heads)
    this.#heads[chunk] = more
  }
}
