/** Charged units by the window or segment that counts them. Nearly always, there is one. */
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

  /** Calls `call` for each window with its charged units. */
  forEach(call: (window: number, units: number) => void): void {
    for (const [i, units] of this.#units.entries()) if (units !== 0) call(this.#windows[i] as number, units)
  }

  /** Appends the arguments for lua/exchange.lua: their number, then the windows and units. */
  push(args: string[]): void {
    const sizeAt = args.push('') - 1
    this.forEach((window, units) => {
      args.push(String(window), String(units))
    })
    args[sizeAt] = String(args.length - 1 - sizeAt)
  }
}
