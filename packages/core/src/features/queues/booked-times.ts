/** Units whose times were booked together: the first at `at`, by the performance clock, and the others `unitMs` apart. */
export interface Booked {
  readonly at: number
  readonly units: number
  /** By the limit in force at the booking, which may be another for the next one. */
  readonly unitMs: number
}

/** The times of units that a store has booked, in order. */
export class BookedTimes {
  readonly #booked: Booked[] = []
  #units = 0

  add(booked: Booked): void {
    this.#booked.splice(this.#booked.findLastIndex(({ at }) => at <= booked.at) + 1, 0, booked)
    this.#units += booked.units
  }

  /** Removes times that were added, if nothing has changed since. */
  remove(booked: Booked): void {
    this.#booked.splice(this.#booked.lastIndexOf(booked), 1)
    this.#units -= booked.units
  }

  /**
   * The earliest start of units that come after `before` others, so that none of them comes before its time. `unitMs`: from one of
   * them to the next.
   */
  startOf(before: number, units: number, unitMs: number): number {
    const end = before + units
    let start = Number.NEGATIVE_INFINITY
    for (let { index, from } = this.#findUnit(before); index < this.#booked.length && from < end; index++) {
      const booked = this.#booked[index] as Booked
      // Both are spaced evenly, so that all units come in time where the first and the last do.
      for (const unit of [Math.max(from, before), Math.min(from + booked.units, end) - 1]) {
        start = Math.max(start, booked.at + (unit - from) * booked.unitMs - (unit - before) * unitMs)
      }
      from += booked.units
    }
    return start
  }

  takeFirst(units: number): void {
    let left = units
    for (let [first] = this.#booked; first && left > 0; first = this.#booked[0]) {
      const taken = Math.min(left, first.units)
      left -= taken
      this.#units -= taken
      if (taken === first.units) this.#booked.shift()
      else this.#booked[0] = { ...first, at: first.at + taken * first.unitMs, units: first.units - taken }
    }
  }

  takeLast(units: number): void {
    let left = units
    for (let last = this.#booked.at(-1); last && left > 0; last = this.#booked.at(-1)) {
      const taken = Math.min(left, last.units)
      left -= taken
      this.#units -= taken
      if (taken === last.units) this.#booked.pop()
      else this.#booked[this.#booked.length - 1] = { ...last, units: last.units - taken }
    }
  }

  /** The index of the booking that holds the unit after `before` others, and the number of units before that booking. */
  #findUnit(before: number): { index: number; from: number } {
    const booked = this.#booked
    // From the nearer end.
    if (before > this.#units / 2) {
      let from = this.#units
      for (let index = booked.length; index > 0; ) {
        from -= (booked[--index] as Booked).units
        if (from <= before) return { index, from }
      }
    }
    let from = 0
    for (const [index, { units }] of booked.entries()) {
      if (from + units > before) return { index, from }
      from += units
    }
    return { index: booked.length, from }
  }
}
