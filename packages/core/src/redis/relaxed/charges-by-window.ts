import type { Unsent } from './local-count.js'

/** What was charged, by the window or segment that it counts in. Mostly it is one. */
export class ChargesByWindow implements Unsent {
  readonly #units = new Map<number, number>()

  get isEmpty(): boolean {
    return this.#units.size === 0
  }

  add(window: number, units: number): void {
    const sum = (this.#units.get(window) ?? 0) + units
    if (sum === 0) this.#units.delete(window)
    else this.#units.set(window, sum)
  }

  [Symbol.iterator](): Iterator<[window: number, units: number]> {
    return this.#units[Symbol.iterator]()
  }

  push(args: string[]): void {
    args.push(String(2 * this.#units.size))
    for (const [window, units] of this.#units) args.push(String(window), String(units))
  }

  addEarlier(earlier: this): void {
    for (const [window, units] of earlier) this.add(window, units)
  }
}
