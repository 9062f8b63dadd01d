import { CELL_KINDS } from '../../kinds/all.js'
import {
  type Plan,
  REFUND,
  receiptsOf,
  resultOf,
  STRIDE,
  type StoreRequest,
  type StoreResult,
} from '../../store/store.js'
import type { Moment } from './lease-clock.js'

/**
 * Units that one charge has taken from every cell of a plan, to be spent in this process during the lease's life.
 *
 * Invariants: each unit is spent, left or refunded, never two of these. None is spent later than `lifeMs` from before
 * the charge was sent.
 */
export class Lease {
  readonly request: StoreRequest
  readonly began: Moment
  readonly lifeMs: number
  /** Units that may still be spent. */
  left: number
  /** Whether refunded units may be spent again during its life. */
  isOpen = true
  /** Its charge was forgotten by the store, so no part of it is ever refunded. */
  isForgotten = false
  /** Units refunded to the store. */
  #returned = 0
  /** The store's time at the charge, and the ms from `began` until the reply. */
  readonly now: number
  readonly repliedAfterMs: number
  readonly #values: readonly number[]

  constructor(request: StoreRequest, result: StoreResult, began: Moment, repliedAfterMs: number) {
    const { plan, costs } = request
    this.request = request
    this.began = began
    this.left = costs[0] as number
    this.lifeMs = lifeOf(plan, result)
    this.now = result.now
    this.#values = result.values.slice(result.offset, result.offset + plan.reports * STRIDE)
    this.repliedAfterMs = repliedAfterMs
  }

  /** The report of a decision made `sinceMs` after the result. Units taken by others meanwhile are unknown here. */
  report(sinceMs: number): readonly number[] {
    const values = this.#values.slice()
    for (let i = 0; i < values.length; i += STRIDE) {
      values[i] = (values[i] as number) + this.left
      values[i + 1] = 0
      values[i + 2] = Math.max(0, (values[i + 2] as number) - sinceMs)
    }
    return values
  }

  /** The request that returns `units` of its charge to the store. */
  refund(units: number): StoreRequest {
    const { request } = this
    const charge = this.#standingAlone((request.costs[0] as number) - this.#returned)
    this.#returned += units
    return { ...request, op: REFUND, costs: request.costs.map(() => units), charge }
  }

  /**
   * The result of its charge for a refund, while `units` are not refunded yet. It is as if nothing else had been in its
   * buckets, then or since. A lease returns its charge in parts, and no part may count twice. Only the part of those
   * units that time has not paid off is certainly still in a bucket. Refunds in any order then leave no less in a
   * bucket than was spent.
   */
  #standingAlone(units: number): StoreResult {
    const { cells } = this.request.plan
    const values = this.#values.slice()
    let at = STRIDE - 1
    for (const { kernel, params, limits } of cells) {
      values[at] = CELL_KINDS[kernel].lease.receiptAlone(params, values[at] as number, units)
      at += STRIDE * limits.length
    }
    // Assumes that no earlier refund was part of this charge.
    const refunded = cells.map(() => Number.MAX_SAFE_INTEGER)
    return { ...resultOf(this.now, true, values, 0), refunded }
  }
}

/**
 * The result of a request served from a lease. The store itself decided the first request, for which the units were
 * taken (`isFirst`).
 */
export class Spent implements StoreResult {
  readonly now: number
  readonly date = undefined
  readonly allowed = true
  readonly values: readonly number[]
  readonly offset = 0
  readonly refunded = undefined
  readonly id = undefined
  readonly outcome = undefined
  readonly block = undefined
  readonly behindMs = undefined
  readonly source: StoreResult['source']
  readonly lease: Lease

  constructor(lease: Lease, elapsedMs: number, isFirst: boolean) {
    // Both are infinite if the clock stepped back meanwhile.
    const sinceMs = elapsedMs > lease.repliedAfterMs ? Math.floor(elapsedMs - lease.repliedAfterMs) : 0
    this.now = lease.now + sinceMs
    this.lease = lease
    this.values = lease.report(sinceMs)
    this.source = isFirst ? undefined : 'lease'
  }
}

/** How long the units of a charge may be spent, in ms from before it was sent. See `leased` in limits/lease.ts. */
function lifeOf(plan: Plan, result: StoreResult): number {
  const receipts = receiptsOf(plan, result)
  const lives = plan.cells.map(({ kernel, params, lease }, c) => {
    const end = CELL_KINDS[kernel].lease.windowEnd(params, receipts[c] as number, result.now)
    // The store's clock was up to a ms further than its reply says.
    return Math.min(lease?.ttlMs ?? 0, end - result.now - 1)
  })
  return Math.min(...lives)
}
