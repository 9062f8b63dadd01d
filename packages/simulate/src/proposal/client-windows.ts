import { RowIndex } from '../figures/row-index.js'
import { grown, Instants } from './instants.js'

/**
 * The most requests of each client within any window `(t - length, t]`, for several lengths in one pass. Exact. It holds the
 * instants of the longest window before a client's last request, which serve the shorter ones, too.
 */
export class ClientWindows {
  /** In ms, ascending. */
  readonly #lengths: readonly number[]
  readonly #index = new RowIndex()
  readonly #instants = new Instants()
  /** By row and window: requests in the present window, and in the worst so far. */
  #present: Uint32Array
  #worst: Uint32Array
  /** By row: whether it has a good client, and its requests. */
  #good = new Uint32Array(1024)
  #requests = new Uint32Array(1024)

  constructor(lengths: readonly number[]) {
    this.#lengths = lengths
    this.#present = new Uint32Array(1024 * lengths.length)
    this.#worst = new Uint32Array(1024 * lengths.length)
  }

  get size(): number {
    return this.#index.size
  }

  nameOf(row: number): string {
    return this.#index.nameOf(row)
  }

  requestsOf(row: number): number {
    return this.#requests[row] as number
  }

  /** The worst window of a client by the place of its length. */
  worstOf(row: number, window: number): number {
    return this.#worst[row * this.#lengths.length + window] as number
  }

  isGood(row: number): boolean {
    return this.#good[row] === 1
  }

  /** @param at no earlier than that of the request before, of whatever client */
  count(client: string, at: number, isGood: boolean): void {
    const row = this.#index.rowOf(client)
    if (row >= this.#requests.length) this.#addRows()
    this.#requests[row] = (this.#requests[row] as number) + 1
    if (isGood) this.#good[row] = 1
    this.#forget(row, at)
    this.#instants.push(row, at)
    const first = row * this.#lengths.length
    for (let cell = first; cell < first + this.#lengths.length; cell++) {
      const present = (this.#present[cell] as number) + 1
      this.#present[cell] = present
      if (present > (this.#worst[cell] as number)) this.#worst[cell] = present
    }
  }

  /** Leaves the instants that are in no window that ends now. */
  #forget(row: number, at: number): void {
    const instants = this.#instants
    const length = instants.lengthOf(row)
    const first = row * this.#lengths.length
    let longest = length
    for (let window = this.#lengths.length - 1; window >= 0; window--) {
      const since = at - (this.#lengths[window] as number)
      let present = this.#present[first + window] as number
      while (present > 0 && instants.at(row, length - present) <= since) present--
      this.#present[first + window] = present
      if (window === this.#lengths.length - 1) longest = present
    }
    for (let dropped = length; dropped > longest; dropped--) instants.dropFirst(row)
  }

  #addRows(): void {
    const size = 2 * this.#requests.length
    this.#requests = grown(this.#requests, size)
    this.#good = grown(this.#good, size)
    this.#present = grown(this.#present, size * this.#lengths.length)
    this.#worst = grown(this.#worst, size * this.#lengths.length)
  }
}
