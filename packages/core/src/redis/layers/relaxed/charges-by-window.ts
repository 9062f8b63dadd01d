/** Charged units by the window or segment that counts them. */
export class ChargesByWindow {
  /** Nearly always, there is one window. */
  #window: number | undefined
  #units = 0
  #others: Map<number, number> | undefined

  get isEmpty(): boolean {
    if (this.#units !== 0) return false
    if (this.#others) for (const units of this.#others.values()) if (units !== 0) return false
    return true
  }

  add(window: number, units: number): void {
    this.#window ??= window
    if (window === this.#window) {
      this.#units += units
      return
    }
    this.#others ??= new Map()
    this.#others.set(window, (this.#others.get(window) ?? 0) + units)
  }

  /** Calls `call` for each window with its charged units. */
  forEach(call: (window: number, units: number) => void): void {
    if (this.#units !== 0) call(this.#window as number, this.#units)
    if (this.#others) for (const [window, units] of this.#others) if (units !== 0) call(window, units)
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
