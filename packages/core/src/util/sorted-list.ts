/** An array of more items is halved: moving 9,000 of them at once takes some 10 µs. */
const MAX_IN_ARRAY = 512

/**
 * Items in order, in short arrays. `isBefore` orders any two of them, and no two are equal. The order of an item changes only
 * while it is out of the list.
 */
export class SortedList<T> {
  /** One at least. None of several is empty. */
  readonly #arrays: T[][] = [[]]
  readonly #isBefore: (a: T, b: T) => boolean

  constructor(isBefore: (a: T, b: T) => boolean) {
    this.#isBefore = isBefore
  }

  get first(): T | undefined {
    return this.#arrays[0]?.[0]
  }

  /** The arrays, in order: reading all items one by one takes three times as long. */
  get arrays(): readonly (readonly T[])[] {
    return this.#arrays
  }

  *[Symbol.iterator](): Generator<T> {
    for (const items of this.#arrays) yield* items
  }

  add(item: T): void {
    const n = this.#arrayOf(item)
    const items = this.#arrays[n] as T[]
    const at = this.#placeIn(items, item)
    if (at === items.length) items.push(item)
    else items.splice(at, 0, item)
    if (items.length > MAX_IN_ARRAY) this.#arrays.splice(n + 1, 0, items.splice(MAX_IN_ARRAY / 2))
  }

  /** Call it with an item of the list. */
  remove(item: T): void {
    const n = this.#arrayOf(item)
    const items = this.#arrays[n] as T[]
    removeAt(items, this.#placeIn(items, item))
    if (items.length === 0 && this.#arrays.length > 1) removeAt(this.#arrays, n)
  }

  /** The array that an item is in, or would be in: the first that does not end before it, else the last. */
  #arrayOf(item: T): number {
    const last = this.#arrays.length - 1
    if (last === 0) return 0
    return Math.min(
      last,
      countWhile(this.#arrays, (items) => this.#isBefore(items[items.length - 1] as T, item)),
    )
  }

  #placeIn(items: readonly T[], item: T): number {
    return countWhile(items, (other) => this.#isBefore(other, item))
  }
}

/** The number of items at the start of an array that meet a condition. No item after them meets it. */
export function countWhile<T>(items: readonly T[], holds: (item: T) => boolean): number {
  let low = 0
  let high = items.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (holds(items[middle] as T)) low = middle + 1
    else high = middle
  }
  return low
}

/** The first of a long array is removed without moving the others. */
export function removeAt<T>(items: T[], index: number): void {
  if (index === 0) items.shift()
  else items.splice(index, 1)
}
