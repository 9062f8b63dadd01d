/** Entries of a client's first ring. */
const FIRST = 4

/**
 * The most units of each client within any window of one length, of `(t - window, t]`. Each client has a ring of the instants in its
 * present window, so memory grows with the requests within a window.
 */
export class WorstWindows {
  readonly #windowMs: number
  /** By row of the client: instants, as a ring of a power of two. */
  readonly #rings: (Float64Array | undefined)[] = []
  readonly #starts: number[] = []
  readonly #lengths: number[] = []
  readonly #worst: number[] = []

  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  /** `units`: whole; as many are counted at this instant. */
  count(row: number, now: number, units = 1): void {
    let ring = this.#rings[row]
    if (!ring) {
      ring = new Float64Array(FIRST)
      // Rows come in any order, where a policy sees only some of the clients.
      for (let each = this.#rings.length; each <= row; each++) {
        this.#rings[each] = undefined
        this.#starts[each] = this.#lengths[each] = this.#worst[each] = 0
      }
      this.#rings[row] = ring
    }
    let start = this.#starts[row] as number
    let length = this.#lengths[row] as number
    const since = now - this.#windowMs
    while (length > 0 && (ring[start & (ring.length - 1)] as number) <= since) {
      start++
      length--
    }
    for (let unit = 0; unit < Math.min(units, MAX_UNITS); unit++) {
      if (length === ring.length) {
        ring = grown(ring, start)
        start = 0
        this.#rings[row] = ring
      }
      ring[(start + length++) & (ring.length - 1)] = now
    }
    this.#starts[row] = start & (ring.length - 1)
    this.#lengths[row] = length
    if (length > (this.#worst[row] as number)) this.#worst[row] = length
  }

  /** The worst windows of the clients whose row fits, highest first. */
  sorted(isOf: (row: number) => boolean): Float64Array {
    const worst = this.#worst.filter((units, row) => units > 0 && isOf(row))
    return Float64Array.from(worst).sort().reverse()
  }
}

/** A request of more units would take as much memory. */
const MAX_UNITS = 10_000

function grown(ring: Float64Array, start: number): Float64Array {
  const larger = new Float64Array(2 * ring.length)
  const at = start & (ring.length - 1)
  larger.set(ring.subarray(at))
  larger.set(ring.subarray(0, at), ring.length - at)
  return larger
}
