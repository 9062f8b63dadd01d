import { Heap } from '../../util/heap.js'

interface Seen {
  name: string
  /** Upper bound of its occurrences, the most by which that is too high, and the part already taken. */
  count: number
  error: number
  taken: number
  place: number
}

/**
 * The most frequent names, in room for `capacity` of them. This is the sketch of Metwally, Agrawal and El Abbadi,
 * "Efficient computation of frequent and top-k elements in data streams" (2005). A name without room replaces the least
 * frequent name and takes over its count, as it may have occurred as often before.
 */
export class SpaceSaving {
  readonly #capacity: number
  readonly #byName = new Map<string, Seen>()
  readonly #byCount = new Heap<Seen>((one, other) => one.count < other.count)

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  /** The most by which the sum of a name's taken counts may be too low. */
  get error(): number {
    return this.#byName.size < this.#capacity ? 0 : (this.#byCount.first as Seen).count
  }

  add(name: string): void {
    const seen = this.#byName.get(name) ?? this.#begin(name)
    seen.count++
    this.#byCount.sink(seen)
  }

  #begin(name: string): Seen {
    const isFull = this.#byName.size >= this.#capacity
    const seen = isFull ? (this.#byCount.first as Seen) : { name, count: 0, error: 0, taken: 0, place: 0 }
    if (isFull) this.#byName.delete(seen.name)
    else this.#byCount.add(seen)
    seen.name = name
    seen.error = seen.count
    seen.taken = 0
    this.#byName.set(name, seen)
    return seen
  }

  /**
   * The certain occurrences of each name since the last call, if they exceed `least`. The sum taken of a name never
   * exceeds its occurrences.
   */
  take(least: number): [name: string, count: number][] {
    const taken: [name: string, count: number][] = []
    for (const seen of this.#byName.values()) {
      const count = untaken(seen)
      if (count <= least) continue
      seen.taken += count
      taken.push([seen.name, count])
    }
    return taken
  }

  /** Drops the occurrences of a name so far. */
  forget(name: string): void {
    const seen = this.#byName.get(name)
    if (seen) seen.taken += untaken(seen)
  }
}

function untaken({ count, error, taken }: Seen): number {
  return count - error - taken
}
