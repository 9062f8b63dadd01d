const SLOT_MS = 10_000
const SLOTS = 12
/** One failure says nothing yet. */
const SPARED = 5

/** The requests of two minutes. */
export interface CircuitCounts {
  /** Those that have ended, and those that were kept back. */
  readonly requests: number
  readonly accepts: number
}

/**
 * Asks a service less while it fails: client-side throttling, as in *Site Reliability Engineering*, chapter "Handling Overload".
 *
 * A request is kept back with the probability (requests − K × accepts) / (requests + 1), of the last two minutes in steps of ten
 * seconds. The first five requests without success do not count, as in the breaker of go-zero.
 */
export class Circuit {
  readonly #k: number
  readonly #slots = Array.from({ length: SLOTS }, () => ({ number: -1, requests: 0, accepts: 0 }))

  constructor(k: number) {
    this.#k = k
  }

  /** Whether the next request is sent. `random`: at least 0, below 1. */
  admits(now: number, random: number): boolean {
    const { requests, accepts } = this.counts(now)
    const isSent = random * (requests + 1) >= requests - SPARED - this.#k * accepts
    if (!isSent) this.#slot(now).requests++
    return isSent
  }

  /** A request has ended. */
  ended(now: number, isAccepted: boolean): void {
    const slot = this.#slot(now)
    slot.requests++
    if (isAccepted) slot.accepts++
  }

  counts(now: number): CircuitCounts {
    const oldest = Math.floor(now / SLOT_MS) - SLOTS + 1
    let [requests, accepts] = [0, 0]
    for (const slot of this.#slots) {
      if (slot.number < oldest) continue
      requests += slot.requests
      accepts += slot.accepts
    }
    return { requests, accepts }
  }

  #slot(now: number) {
    const number = Math.floor(now / SLOT_MS)
    const slot = this.#slots[number % SLOTS] as { number: number; requests: number; accepts: number }
    if (slot.number !== number) Object.assign(slot, { number, requests: 0, accepts: 0 })
    return slot
  }
}
