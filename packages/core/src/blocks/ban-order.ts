/** A ban among those that one table has room for. */
export interface RankedBan {
  /** Which step of its ladder it is, from 1. */
  readonly rung: number
  /** When it ends, in ms. */
  readonly until: number
  /** Where it stands in the order; set by the order alone. */
  place: number
}

/**
 * Bans by which of them goes first where there is no room for all: the lowest rung, and of these the one that ends soonest.
 * A binary heap; each ban knows its place, so one that ends leaves at once.
 */
export class BanOrder<Ban extends RankedBan> {
  readonly #heap: Ban[] = []

  get size(): number {
    return this.#heap.length
  }

  get first(): Ban | undefined {
    return this.#heap[0]
  }

  add(ban: Ban): void {
    ban.place = this.#heap.push(ban) - 1
    this.#rise(ban)
  }

  /** `ban` is in the order. */
  delete(ban: Ban): void {
    const last = this.#heap.pop() as Ban
    if (last === ban) return
    this.#put(last, ban.place)
    this.#rise(last)
    this.#sink(last)
  }

  #rise(ban: Ban): void {
    while (ban.place > 0) {
      const at = ban.place
      const above = this.#heap[(at - 1) >> 1] as Ban
      if (!goesBefore(ban, above)) return
      this.#put(ban, above.place)
      this.#put(above, at)
    }
  }

  #sink(ban: Ban): void {
    for (;;) {
      const at = ban.place
      const left = this.#heap[2 * at + 1]
      const right = this.#heap[2 * at + 2]
      const below = left && right && goesBefore(right, left) ? right : left
      if (!below || !goesBefore(below, ban)) return
      this.#put(ban, below.place)
      this.#put(below, at)
    }
  }

  #put(ban: Ban, at: number): void {
    this.#heap[at] = ban
    ban.place = at
  }
}

/** Whether the first of two goes where there is no room for both. */
export function goesBefore(one: RankedBan, other: RankedBan): boolean {
  return one.rung === other.rung ? one.until < other.until : one.rung < other.rung
}
