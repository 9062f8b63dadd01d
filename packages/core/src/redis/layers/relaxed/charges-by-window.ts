/** What was charged, by the window or segment that it counts in. Nearly always it is one, which needs no map. */
export class ChargesByWindow {
  #window = 0
  #units = 0
  #others: Map<number, number> | undefined

  get isEmpty(): boolean {
    return this.#units === 0 && !this.#others?.size
  }

  add(window: number, units: number): void {
    if (this.#units === 0 && !this.#others?.has(window)) this.#window = window
    if (window === this.#window) {
      this.#units += units
      return
    }
    this.#others ??= new Map()
    const sum = (this.#others.get(window) ?? 0) + units
    if (sum === 0) this.#others.delete(window)
    else this.#others.set(window, sum)
  }

  /** Each window, with the units that were charged in it. */
  forEach(call: (window: number, units: number) => void): void {
    if (this.#units !== 0) call(this.#window, this.#units)
    this.#others?.forEach((units, window) => {
      call(window, units)
    })
  }

  /** What lua/exchange.lua takes of it, after how many texts that is. */
  push(args: string[]): void {
    const sizeAt = args.push('') - 1
    this.forEach((window, units) => {
      args.push(String(window), String(units))
    })
    args[sizeAt] = String(args.length - 1 - sizeAt)
  }

  /** Takes back an earlier exchange that was never sent. */
  addEarlier(earlier: ChargesByWindow): void {
    earlier.forEach((window, units) => {
      this.add(window, units)
    })
  }
}
