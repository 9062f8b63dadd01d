/** Entries of a client's first ring. */
const FIRST = 4

/** The units of one client in its present window, oldest first: a ring of a power of two of pairs of an instant and its units. */
interface Ring {
  pairs: Float64Array
  start: number
  length: number
  /** Units in the window. */
  units: number
  worst: number
}

/**
 * The most units of each client within any window of one length, of `(t - window, t]`. Memory grows with the instants within a
 * window at which a client takes units, and not with the units.
 */
export class WorstWindows {
  readonly #windowMs: number
  /** By row of the client. */
  readonly #rings: (Ring | undefined)[] = []

  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  /** `units`: as many are counted at this instant, which is no earlier than the one before. */
  count(row: number, now: number, units: number): void {
    if (units <= 0) return
    const ring = this.#ringOf(row)
    const since = now - this.#windowMs
    while (ring.length > 0 && instantAt(ring, 0) <= since) dropFirst(ring)
    if (ring.length > 0 && instantAt(ring, ring.length - 1) === now) addToLast(ring, units)
    else append(ring, now, units)
    ring.units += units
    if (ring.units > ring.worst) ring.worst = ring.units
  }

  /** The worst windows of the clients whose row fits, highest first. Clients that took no units are left out. */
  sorted(isOf: (row: number) => boolean): Float64Array {
    const worst = this.#rings.flatMap((ring, row) => (ring && isOf(row) ? ring.worst : []))
    return Float64Array.from(worst).sort().reverse()
  }

  #ringOf(row: number): Ring {
    let ring = this.#rings[row]
    if (!ring) {
      // Rows come in any order, where a policy sees only some of the clients.
      for (let each = this.#rings.length; each < row; each++) this.#rings[each] = undefined
      ring = { pairs: new Float64Array(2 * FIRST), start: 0, length: 0, units: 0, worst: 0 }
      this.#rings[row] = ring
    }
    return ring
  }
}

/** Bounds of worst windows where the clock is coarse: by windows that are shorter and longer by its resolution. */
export class WorstWindowBounds {
  readonly #windowMs: number
  #resolutionMs = 0
  #isBroken = false
  #shorter: WorstWindows | undefined
  #longer: WorstWindows | undefined

  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  count(row: number, now: number, units: number, resolutionMs: number): void {
    if (resolutionMs > this.#resolutionMs) {
      // What came before was counted by another resolution.
      if (this.#resolutionMs > 0) this.#isBroken = true
      this.#resolutionMs = resolutionMs
      if (resolutionMs > 1) {
        const byMs = resolutionMs - 1
        if (this.#windowMs > byMs) this.#shorter = new WorstWindows(this.#windowMs - byMs)
        this.#longer = new WorstWindows(this.#windowMs + byMs)
      }
    }
    this.#shorter?.count(row, now, units)
    this.#longer?.count(row, now, units)
  }

  /** The least and the greatest of the worst windows of clients whose row fits, each highest first. */
  sorted(isOf: (row: number) => boolean): readonly [least: Float64Array, greatest: Float64Array] | undefined {
    if (!this.#longer || this.#isBroken) return undefined
    const greatest = this.#longer.sorted(isOf)
    // No two requests are surely within one window: one is.
    return [this.#shorter?.sorted(isOf) ?? new Float64Array(greatest.length).fill(1), greatest]
  }
}

/** Where the pair at a place of the ring begins. */
function indexOf({ pairs, start }: Ring, place: number): number {
  return (2 * (start + place)) & (pairs.length - 1)
}

function instantAt(ring: Ring, place: number): number {
  return ring.pairs[indexOf(ring, place)] as number
}

function dropFirst(ring: Ring): void {
  const index = indexOf(ring, 0)
  ring.start = (ring.start + 1) & (ring.pairs.length / 2 - 1)
  ring.length--
  // Sums beyond 2^53 are rounded. The sum of nothing is not.
  ring.units = ring.length === 0 ? 0 : ring.units - (ring.pairs[index + 1] as number)
}

function addToLast(ring: Ring, units: number): void {
  const index = indexOf(ring, ring.length - 1) + 1
  ring.pairs[index] = (ring.pairs[index] as number) + units
}

function append(ring: Ring, now: number, units: number): void {
  if (2 * ring.length === ring.pairs.length) grow(ring)
  const index = indexOf(ring, ring.length++)
  ring.pairs[index] = now
  ring.pairs[index + 1] = units
}

function grow(ring: Ring): void {
  const { pairs } = ring
  const larger = new Float64Array(2 * pairs.length)
  const at = indexOf(ring, 0)
  larger.set(pairs.subarray(at))
  larger.set(pairs.subarray(0, at), pairs.length - at)
  ring.pairs = larger
  ring.start = 0
}
