/**
 * Items in order, in one array. `isBefore` orders any two of them, and no two are equal. What an item is ordered by
 * changes only while it is out of the list.
 */
export class SortedList<T> {
  readonly #items: T[] = []
  readonly #isBefore: (a: T, b: T) => boolean

  constructor(isBefore: (a: T, b: T) => boolean) {
    this.#isBefore = isBefore
  }

  get items(): readonly T[] {
    return this.#items
  }

  get first(): T | undefined {
    return this.#items[0]
  }

  add(item: T): void {
    const at = this.#placeOf(item)
    if (at === this.#items.length) this.#items.push(item)
    else this.#items.splice(at, 0, item)
  }

  /** Call it with an item of the list. */
  remove(item: T): void {
    removeAt(this.#items, this.#placeOf(item))
  }

  /** How many items are before it. */
  #placeOf(item: T): number {
    return countWhile(this.#items, (other) => this.#isBefore(other, item))
  }
}

/** How many items at the start of an array hold to what holds for no item behind them. */
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
