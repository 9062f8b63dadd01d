/**
 * A binary heap of items. Each item holds its place, which only the heap sets, so it can be removed at once.
 */
export class Heap<Item extends { place: number }> {
  readonly #items: Item[] = []
  readonly #goesBefore: (one: Item, other: Item) => boolean

  constructor(goesBefore: (one: Item, other: Item) => boolean) {
    this.#goesBefore = goesBefore
  }

  get size(): number {
    return this.#items.length
  }

  get first(): Item | undefined {
    return this.#items[0]
  }

  add(item: Item): void {
    item.place = this.#items.push(item) - 1
    this.#rise(item)
  }

  /** `item` is in the heap. */
  delete(item: Item): void {
    const last = this.#items.pop() as Item
    if (last === item) return
    this.#put(last, item.place)
    this.#rise(last)
    this.sink(last)
  }

  #rise(item: Item): void {
    while (item.place > 0) {
      const at = item.place
      const above = this.#items[(at - 1) >> 1] as Item
      if (!this.#goesBefore(item, above)) return
      this.#put(item, above.place)
      this.#put(above, at)
    }
  }

  /** Call it with an item whose order has become later. */
  sink(item: Item): void {
    for (;;) {
      const at = item.place
      const left = this.#items[2 * at + 1]
      const right = this.#items[2 * at + 2]
      const below = left && right && this.#goesBefore(right, left) ? right : left
      if (!below || !this.#goesBefore(below, item)) return
      this.#put(item, below.place)
      this.#put(below, at)
    }
  }

  #put(item: Item, at: number): void {
    this.#items[at] = item
    item.place = at
  }
}
