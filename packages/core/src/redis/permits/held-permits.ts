import { CELL_KINDS } from '../../store/cell-kinds.js'
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

interface Held {
  readonly request: StoreRequest
  readonly result: StoreResult
  readonly slot: number
}

/**
 * The permits of `concurrency` limits that this process holds, to be released when the store is closed. Those that
 * expire without a release are forgotten a generation at a time, each as long as the longest `ttl`.
 */
export class HeldPermits {
  #young = new Map<string, Held>()
  #old = new Map<string, Held>()
  #longestMs = 0
  /** When the young generation began, by the store's clock. */
  #since = 0

  /** Call it with every result of a request that names permits. */
  heard(request: StoreRequest, result: StoreResult, slot: number): void {
    const { op, permitId } = request
    // The parts of one decision on several slots share a permit id.
    const id = slot === 0 ? permitId : `${slot} ${permitId}`
    if (op === CONSUME || op === CHARGE) {
      if (result.allowed) this.#hold(id, { request, result, slot })
    } else if (op === RELEASE || (op === REFUND && this.#isWhole(id, request))) {
      if (!this.#young.delete(id)) this.#old.delete(id)
    } else if (op === RENEW) {
      const held = this.#old.get(id)
      if (held && this.#old.delete(id)) this.#young.set(id, held)
    }
  }

  /** Requests that release all permits, by slot. From then on none is held. */
  takeAll(): { request: StoreRequest; slot: number }[] {
    const all = [...this.#old.values(), ...this.#young.values()]
    this.#old.clear()
    this.#young.clear()
    return all.map(({ request, result, slot }) => ({
      request: { ...request, op: RELEASE, charge: result } as const,
      slot,
    }))
  }

  #hold(id: string, held: Held): void {
    const { now } = held.result
    this.#longestMs = Math.max(this.#longestMs, ttlOf(held.request))
    if (now - this.#since > this.#longestMs) {
      this.#old = this.#young
      this.#young = new Map()
      this.#since = now
    }
    this.#young.set(id, held)
  }

  #isWhole(id: string, { costs }: StoreRequest): boolean {
    const held = this.#young.get(id) ?? this.#old.get(id)
    return held?.request.costs.every((cost, c) => cost === costs[c]) ?? true
  }
}

function ttlOf({ plan }: StoreRequest): number {
  let ttlMs = 0
  for (const { kernel, limits } of plan.cells) {
    if (CELL_KINDS[kernel].hasPermits) ttlMs = Math.max(ttlMs, (limits[0] as ResolvedLimit).windowMs)
  }
  return ttlMs
}
