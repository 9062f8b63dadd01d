/** A random sample of what is offered, every item with the same chance. */
export class Sample<T> {
  readonly #most: number
  readonly #items: T[] = []
  #offered = 0

  constructor(most: number) {
    this.#most = most
  }

  get items(): readonly T[] {
    return this.#items
  }

  offer(item: T): void {
    this.#offered++
    if (this.#items.length < this.#most) {
      this.#items.push(item)
      return
    }
    const place = Math.floor(Math.random() * this.#offered)
    if (place < this.#most) this.#items[place] = item
  }
}
