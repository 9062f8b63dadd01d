/** How many requests one responder may hold on to at once: what a flood can cost in sockets is bounded. */
export class Seats {
  readonly #most: number
  #taken = 0

  constructor(most: number) {
    this.#most = most
  }

  take(): boolean {
    if (this.#taken >= this.#most) return false
    this.#taken++
    return true
  }

  free(): void {
    this.#taken--
  }
}
