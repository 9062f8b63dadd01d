import type { IpRange } from './ip-address.js'
import { commonBits } from './ip-range.js'

/** Columns of a node: how many leading bits its ranges share, its two branches, its first range, and then its words. */
const LENGTH = 0
const BRANCH = 1
const RANGES = 3
const WORDS = 4
/** Columns of a range: the next one of its node, and then its first and its last address. */
const NEXT = 0
const FIRST = 1

/** The ranges of a tree, as one thread hands them to another at no cost. */
export interface RangeTreeData {
  readonly nodes: Uint32Array
  readonly ranges: Uint32Array
}

/**
 * Ranges of addresses of one family, which may overlap, each with a number from 1. They form a binary tree of the leading bits
 * that the first and the last address of a range share. All ranges that may hold an address are therefore on one path, whatever
 * forms they have. A look-up takes longer only where many ranges that are no networks overlap in one place.
 */
export class RangeTree {
  /** Words of an address. */
  readonly #width: 1 | 4
  readonly #nodes: Rows
  readonly #ranges: Rows

  /** `data`: of a tree that is not changed from now on. */
  constructor(width: 1 | 4, data?: RangeTreeData) {
    this.#width = width
    this.#nodes = new Rows(WORDS + width, data?.nodes)
    this.#ranges = new Rows(FIRST + 2 * width, data?.ranges)
  }

  /** The number of a range, which is added where it is not there. Numbers of deleted ranges are used again. */
  add({ first, last }: IpRange): number {
    const node = this.#nodeOf(first, commonBits(first, last))
    const before = this.#nodes.at(node, RANGES)
    const known = this.#numberIn(before, first, last)
    if (known > 0) return known
    const range = this.#ranges.add()
    this.#ranges.set(range, NEXT, before)
    for (let i = 0; i < this.#width; i++) {
      this.#ranges.set(range, FIRST + i, first[i] as number)
      this.#ranges.set(range, FIRST + this.#width + i, last[i] as number)
    }
    this.#nodes.set(node, RANGES, range)
    return range
  }

  /** The number of a range; 0 where it is not there. */
  get({ first, last }: IpRange): number {
    const node = this.#pathTo(first, commonBits(first, last)).at(-1)
    return node === undefined ? 0 : this.#numberIn(this.#nodes.at(node, RANGES), first, last)
  }

  /** The number that a range had; 0 where it was not there. */
  delete({ first, last }: IpRange): number {
    const path = this.#pathTo(first, commonBits(first, last))
    const node = path.at(-1)
    if (node === undefined) return 0
    let before = 0
    let range = this.#nodes.at(node, RANGES)
    while (range > 0 && !this.#is(range, first, last)) {
      before = range
      range = this.#ranges.at(range, NEXT)
    }
    if (range === 0) return 0
    const next = this.#ranges.at(range, NEXT)
    if (before > 0) this.#ranges.set(before, NEXT, next)
    else this.#nodes.set(node, RANGES, next)
    this.#ranges.delete(range)
    this.#prune(path)
    return range
  }

  /**
   * The number of the smallest range that has all addresses of another, and whose value `holds`. 0 where there is none.
   * `values`: by number. `holds` is called in no order, with the values of ranges that are smaller than the best so far.
   */
  find<Value>({ first, last }: IpRange, values: ArrayLike<Value>, holds: (value: Value) => boolean): number {
    const bits = 32 * this.#width
    let found = 0
    let node = 0
    for (;;) {
      for (let range = this.#nodes.at(node, RANGES); range > 0; range = this.#ranges.at(range, NEXT)) {
        const isFirst = found === 0 || this.#isSmaller(range, found)
        if (isFirst && this.#has(range, first, last) && holds(values[range] as Value)) found = range
      }
      const length = this.#nodes.at(node, LENGTH)
      if (length === bits) return found
      node = this.#nodes.at(node, BRANCH + bitOf(first, length))
      if (node === 0) return found
    }
  }

  /** How many addresses a range has. Numbers where they are exact. */
  sizeOf(range: number): number | bigint {
    if (this.#width === 1) return this.#lastOf(range, 0) - this.#firstOf(range, 0) + 1
    let size = 0n
    for (let i = 0; i < this.#width; i++)
      size = (size << 32n) + BigInt(this.#lastOf(range, i) - this.#firstOf(range, i))
    return size + 1n
  }

  /** All of it, without room for more. */
  data(): RangeTreeData {
    return { nodes: this.#nodes.used(), ranges: this.#ranges.used() }
  }

  #firstOf(range: number, i: number): number {
    return this.#ranges.at(range, FIRST + i)
  }

  #lastOf(range: number, i: number): number {
    return this.#ranges.at(range, FIRST + this.#width + i)
  }

  /** The node for some leading bits, which is made where there is none. */
  #nodeOf(words: readonly number[], length: number): number {
    const nodes = this.#nodes
    let node = 0
    while (nodes.at(node, LENGTH) < length) {
      const branch = BRANCH + bitOf(words, nodes.at(node, LENGTH))
      const child = nodes.at(node, branch)
      if (child === 0) {
        const leaf = this.#newNode(words, length)
        nodes.set(node, branch, leaf)
        return leaf
      }
      const shared = Math.min(this.#bitsInCommon(child, words), length)
      if (shared < nodes.at(child, LENGTH)) {
        const fork = this.#newNode(words, shared)
        nodes.set(fork, BRANCH + bitIn(nodes.at(child, WORDS + (shared >>> 5)), shared), child)
        nodes.set(node, branch, fork)
        node = fork
      } else node = child
    }
    return node
  }

  #newNode(words: readonly number[], length: number): number {
    const node = this.#nodes.add()
    this.#nodes.set(node, LENGTH, length)
    for (let i = 0; i < this.#width; i++) this.#nodes.set(node, WORDS + i, words[i] as number)
    return node
  }

  /** How many leading bits a node shares with an address, of those that its ranges share. */
  #bitsInCommon(node: number, words: readonly number[]): number {
    const length = this.#nodes.at(node, LENGTH)
    for (let i = 0; i < this.#width; i++) {
      const different = this.#nodes.at(node, WORDS + i) ^ (words[i] as number)
      if (different !== 0) return Math.min(length, 32 * i + Math.clz32(different))
    }
    return length
  }

  /** The nodes from the root to that for some leading bits; none where there is no such node. */
  #pathTo(words: readonly number[], length: number): number[] {
    const path = [0]
    for (let node = 0; this.#nodes.at(node, LENGTH) < length; path.push(node)) {
      node = this.#nodes.at(node, BRANCH + bitOf(words, this.#nodes.at(node, LENGTH)))
      if (node === 0) return []
    }
    return path
  }

  /** Removes nodes that are not needed. */
  #prune(path: number[]): void {
    for (let node = path.pop() as number; node > 0; node = path.pop() as number) {
      const [zero, one] = [this.#nodes.at(node, BRANCH), this.#nodes.at(node, BRANCH + 1)]
      if (this.#nodes.at(node, RANGES) > 0 || (zero > 0 && one > 0)) return
      const parent = path.at(-1) as number
      const branch = this.#nodes.at(parent, BRANCH) === node ? BRANCH : BRANCH + 1
      this.#nodes.set(parent, branch, zero + one)
      this.#nodes.delete(node)
      if (zero + one > 0) return
    }
  }

  #numberIn(firstRange: number, first: readonly number[], last: readonly number[]): number {
    let range = firstRange
    while (range > 0 && !this.#is(range, first, last)) range = this.#ranges.at(range, NEXT)
    return range
  }

  #is(range: number, first: readonly number[], last: readonly number[]): boolean {
    return this.#compare(range, FIRST, first) === 0 && this.#compare(range, FIRST + this.#width, last) === 0
  }

  #has(range: number, first: readonly number[], last: readonly number[]): boolean {
    return this.#compare(range, FIRST, first) <= 0 && this.#compare(range, FIRST + this.#width, last) >= 0
  }

  /** Below 0 where the address in a column of a range comes before another one, above 0 where it comes after it. */
  #compare(range: number, column: number, words: readonly number[]): number {
    for (let i = 0; i < this.#width; i++) {
      const difference = this.#ranges.at(range, column + i) - (words[i] as number)
      if (difference !== 0) return difference
    }
    return 0
  }

  /** By the words of their sizes, of which the last may borrow from those before it. */
  #isSmaller(range: number, other: number): boolean {
    let difference = 0
    for (let i = 0; i < this.#width; i++) {
      const [size, others] = [
        this.#lastOf(range, i) - this.#firstOf(range, i),
        this.#lastOf(other, i) - this.#firstOf(other, i),
      ]
      difference = difference * 2 ** 32 + size - others
    }
    return difference < 0
  }
}

function bitOf(words: ArrayLike<number>, bit: number): number {
  return bitIn(words[bit >>> 5] as number, bit)
}

function bitIn(word: number, bit: number): number {
  return (word >>> (31 - (bit & 31))) & 1
}

/** Rows of whole numbers in one array, by their number. Row 0 is always there; deleted ones are used again. */
class Rows {
  readonly #columns: number
  #numbers: Uint32Array
  #count = 1
  /** The first of the deleted rows, which name the next one in their first column; 0 for none. */
  #free = 0

  constructor(columns: number, numbers: Uint32Array = new Uint32Array(8 * columns)) {
    this.#columns = columns
    this.#numbers = numbers
  }

  at(row: number, column: number): number {
    return this.#numbers[row * this.#columns + column] as number
  }

  set(row: number, column: number, number: number): void {
    this.#numbers[row * this.#columns + column] = number
  }

  add(): number {
    if (this.#free > 0) {
      const row = this.#free
      this.#free = this.at(row, 0)
      return row
    }
    if (this.#count * this.#columns === this.#numbers.length) {
      const more = new Uint32Array(2 * this.#numbers.length)
      more.set(this.#numbers)
      this.#numbers = more
    }
    return this.#count++
  }

  delete(row: number): void {
    const start = row * this.#columns
    this.#numbers.fill(0, start, start + this.#columns)
    this.set(row, 0, this.#free)
    this.#free = row
  }

  used(): Uint32Array {
    return this.#numbers.slice(0, this.#count * this.#columns)
  }
}
