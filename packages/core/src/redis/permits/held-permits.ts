import {
  CHARGE,
  CONSUME,
  REFUND,
  RELEASE,
  RENEW,
  type ResolvedLimit,
  type StoreRequest,
  type StoreResult,
} from '../../store/store.js'
import { countsPermits } from '../../store/units.js'

interface Held {
  readonly request: StoreRequest
  readonly result: StoreResult
  /** When the permits expire, by the store's clock. */
  until: number
}

/**
 * The permits of `concurrency` limits that this process holds, to be released when the store is closed. Permits that
 * expire without a release are removed together, once per longest `ttl`.
 */
export class HeldPermits {
  readonly #held = new Map<string, Held>()
  #longestMs = 0
  /** When expired permits were last removed, by the store's clock. */
  #sweptAt = 0

  /** Call it with every result of a request that names permits. */
  record(request: StoreRequest, result: StoreResult, slot: number): void {
    const { op, permitId, costs } = request
    // The parts of one decision on several slots share a permit id. A decision that was not divided is released by its
    // first slot.
    const id = slot === 0 ? permitId : `${slot} ${permitId}`
    const held = this.#held.get(id)
    if (op === CONSUME || op === CHARGE) {
      if (result.allowed) this.#hold(id, { request, result, until: result.now + ttlOf(request) })
    } else if (op === RELEASE || (op === REFUND && held?.request.costs.every((cost, c) => cost === costs[c]))) {
      this.#held.delete(id)
    } else if (op === RENEW && held) held.until = result.now + ttlOf(request)
  }

  /** Returns requests that release all permits, and forgets the permits. */
  takeAll(): StoreRequest[] {
    const all = [...this.#held.values()]
    this.#held.clear()
    return all.map(({ request, result }) => ({ ...request, op: RELEASE, charge: result }))
  }

  #hold(id: string, held: Held): void {
    const { now } = held.result
    this.#longestMs = Math.max(this.#longestMs, held.until - now)
    if (now - this.#sweptAt > this.#longestMs) {
      for (const [id, { until }] of this.#held) if (until <= now) this.#held.delete(id)
      this.#sweptAt = now
    }
    this.#held.set(id, held)
  }
}

function ttlOf({ plan }: StoreRequest): number {
  let ttlMs = 0
  for (const cell of plan.cells) {
    if (countsPermits(cell)) ttlMs = Math.max(ttlMs, (cell.limits[0] as ResolvedLimit).windowMs)
  }
  return ttlMs
}
