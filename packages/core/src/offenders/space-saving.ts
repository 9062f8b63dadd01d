/**
 * The names that were seen most, in room for `capacity` of them: the sketch of Metwally, Agrawal and El Abbadi, "Efficient
 * computation of frequent and top-k elements in data streams" (2005). A name without room takes the place of the one that
 * was seen least, and with it its count, as it may have been seen as often before.
 */
export class SpaceSaving {
  readonly #capacity: number
  readonly #slots = new Map<string, number>()
  /** By slot: the name, how often it was seen at most, by how much that may be too high, and how much of it was taken. */
  readonly #names: string[] = []
  readonly #counts: number[] = []
  readonly #errors: number[] = []
  readonly #taken: number[] = []
  /** Slots as a binary heap, that with the least count first; and where in it each slot is. */
  readonly #heap: number[] = []
  readonly #places: number[] = []

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  /** By how much the sum of what is taken of a name may be too low. */
  get error(): number {
    return this.#names.length < this.#capacity ? 0 : (this.#counts[this.#heap[0] as number] as number)
  }

  add(name: string): void {
    let slot = this.#slots.get(name)
    if (slot === undefined) {
      slot = this.#names.length
      if (slot < this.#capacity) {
        this.#places[slot] = this.#heap.push(slot) - 1
        this.#counts[slot] = 0
        this.#rise(slot)
      } else {
        slot = this.#heap[0] as number
        this.#slots.delete(this.#names[slot] as string)
      }
      this.#errors[slot] = this.#counts[slot] as number
      this.#taken[slot] = 0
      this.#names[slot] = name
      this.#slots.set(name, slot)
    }
    this.#counts[slot] = (this.#counts[slot] as number) + 1
    this.#sink(slot)
  }

  /**
   * What was seen for certain since it was taken last, where that is more than `least`: what is taken of a name is never more
   * than there was.
   */
  take(least: number): [name: string, count: number][] {
    const taken: [name: string, count: number][] = []
    for (let slot = 0; slot < this.#names.length; slot++) {
      const count = this.#open(slot)
      if (count <= least) continue
      this.#taken[slot] = (this.#taken[slot] as number) + count
      taken.push([this.#names[slot] as string, count])
    }
    return taken
  }

  /** Drops what is counted of a name so far. */
  forget(name: string): void {
    const slot = this.#slots.get(name)
    if (slot !== undefined) this.#taken[slot] = (this.#taken[slot] as number) + this.#open(slot)
  }

  #open(slot: number): number {
    return (this.#counts[slot] as number) - (this.#errors[slot] as number) - (this.#taken[slot] as number)
  }

  /** A new slot has the least count. */
  #rise(slot: number): void {
    let at = this.#places[slot] as number
    while (at > 0) {
      const parent = (at - 1) >>> 1
      this.#place(this.#heap[parent] as number, at)
      at = parent
    }
    this.#place(slot, at)
  }

  /** A slot's count has grown. */
  #sink(slot: number): void {
    const count = this.#counts[slot] as number
    let at = this.#places[slot] as number
    for (;;) {
      let child = 2 * at + 1
      if (child >= this.#heap.length) break
      if (child + 1 < this.#heap.length && this.#countAt(child + 1) < this.#countAt(child)) child++
      if (this.#countAt(child) >= count) break
      this.#place(this.#heap[child] as number, at)
      at = child
    }
    this.#place(slot, at)
  }

  #countAt(place: number): number {
    return this.#counts[this.#heap[place] as number] as number
  }

  #place(slot: number, at: number): void {
    this.#heap[at] = slot
    this.#places[slot] = at
  }
}
