/** What was charged, by the window or segment that it counts in: nearly always one. */
export class ChargesByWindow {
  readonly #windows: number[] = []
  readonly #units: number[] = []

  get isEmpty(): boolean {
    return this.#units.every((units) => units === 0)
  }

  add(window: number, units: number): void {
    const known = this.#windows.indexOf(window)
    if (known < 0) {
      this.#windows.push(window)
      this.#units.push(units)
    } else this.#units[known] = (this.#units[known] as number) + units
  }

  /** Each window, with the units that were charged in it. */
  forEach(call: (window: number, units: number) => void): void {
    for (const [i, units] of this.#units.entries()) if (units !== 0) call(this.#windows[i] as number, units)
  }

  /** What lua/exchange.lua takes of it, after how many texts that is. */
  push(args: string[]): void {
    const sizeAt = args.push('') - 1
    this.forEach((window, units) => {
      args.push(String(window), String(units))
    })
    args[sizeAt] = String(args.length - 1 - sizeAt)
  }
}
