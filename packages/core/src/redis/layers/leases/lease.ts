import { CELL_KINDS } from '../../../store/cell-kinds.js'
import { type Plan, REFUND, receiptsOf, STRIDE, type StoreRequest, type StoreResult } from '../../../store/store.js'
import type { Moment } from './lease-clock.js'

/**
 * Units that one charge has taken from every cell of a plan, to be spent in this process while its life lasts.
 *
 * Invariants: each of the `units` is spent, left or refunded, never two of these; and none is spent when
 * `lifeMs` have passed since before the charge was sent.
 */
export class Lease {
  readonly request: StoreRequest
  readonly began: Moment
  readonly lifeMs: number
  /** Units that may still be spent. */
  left: number
  /** Whether units that come back may be spent again, as far as its life lasts. */
  isOpen = true
  /** Its charge is not there any more, so nothing of it is ever refunded. */
  isForgotten = false
  /** Units refunded to the store. */
  #returned = 0
  /** What the store said when it was charged, and how long after `began` it was heard. */
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

  /** The report of a decision made `sinceMs` after the result. What others took meanwhile is not known here. */
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
   * The result of its charge of which `units` are not refunded yet, as a refund must see it: as if nothing else had
   * been in its buckets, then or since. A lease returns its charge in parts, and of one charge no part may count
   * twice: what is sure to be still in a bucket of it is what time has left of those units. Whatever is refunded
   * in whatever order then leaves no less in a bucket than what was spent.
   */
  #standingAlone(units: number): StoreResult {
    const { cells } = this.request.plan
    const values = this.#values.slice()
    let at = STRIDE - 1
    for (const { kernel, params, limits } of cells) {
      values[at] = CELL_KINDS[kernel].lease.receiptAlone(params, values[at] as number, units)
      at += STRIDE * limits.length
    }
    // Nothing that is refunded can have been any of it.
    const refunded = cells.map(() => Number.MAX_SAFE_INTEGER)
    return { now: this.now, allowed: true, values, offset: 0, refunded }
  }
}

/** The result of a request that was met from a lease, or of the `isFirst`, for which the units were taken: the store has decided that. */
export class Spent implements StoreResult {
  readonly now: number
  readonly allowed = true
  readonly values: readonly number[]
  readonly offset = 0
  readonly source: StoreResult['source']
  readonly lease: Lease

  constructor(lease: Lease, elapsedMs: number, isFirst: boolean) {
    // Both are infinite where the clock stepped back under way.
    const sinceMs = elapsedMs > lease.repliedAfterMs ? Math.floor(elapsedMs - lease.repliedAfterMs) : 0
    this.now = lease.now + sinceMs
    this.lease = lease
    this.values = lease.report(sinceMs)
    this.source = isFirst ? undefined : 'lease'
  }
}

/** How long the units of a charge may be spent, from before it was sent. See `leased` in limits/lease.ts. */
function lifeOf(plan: Plan, result: StoreResult): number {
  const receipts = receiptsOf(plan, result)
  const lives = plan.cells.map(({ kernel, params, lease }, c) => {
    const end = CELL_KINDS[kernel].lease.windowEnd(params, receipts[c] as number, result.now)
    // The store's clock was up to a ms further than it said.
    return Math.min(lease?.ttlMs ?? 0, end - result.now - 1)
  })
  return Math.min(...lives)
}
