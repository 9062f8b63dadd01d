import { takesNothing } from '../policy/costs.js'
import type { ReadablePlan } from '../policy/plan.js'
import { CELL_KINDS } from '../store/cell-kinds.js'
import {
  type Cell,
  type QuotaUnit,
  REFUND,
  RELEASE,
  RENEW,
  type Store,
  type StoreRequest,
  type StoreResult,
} from '../store/store.js'
import { checkActualCost, type Decision, isHeld, maxToSettle, REFUNDED } from '../verdict/decision.js'
import { isUnavailable } from './fallback.js'
import { Resets } from './resets.js'
import { activeCounter } from './watching.js'

/**
 * Changes the charges of a limiter after its decisions: refunds, settlements, releases and renewals. Each
 * charge is refunded once at most, and never after a reset.
 */
export class ChargeLedger {
  readonly #where: string
  readonly #onRoom: (request: StoreRequest) => void
  readonly #onChange: (store: Store, request: StoreRequest, result: StoreResult) => void
  /** The resets of keys: earlier charges are not refunded. */
  readonly resets = new Resets()

  /**
   * `onRoom`: called with a request whose limits may have room again. `onChange`: called with the result of a changed charge, where
   * the store returns promises.
   */
  constructor(
    where: string,
    onRoom: (request: StoreRequest) => void,
    onChange: (store: Store, request: StoreRequest, result: StoreResult) => void,
  ) {
    this.#where = where
    this.#onRoom = onRoom
    this.#onChange = onChange
  }

  /** Refunds a charge and releases its permits. Resolves to whether this call refunded anything. */
  async refund(decision: Decision): Promise<boolean> {
    if (!isHeld(decision)) return false
    const { settled } = decision
    decision.settled = REFUNDED
    return this.#reduce(decision, (unit) => (settled?.has(unit) ? undefined : 0))
  }

  /**
   * Replaces the charged cost with the actual one, once. Resolves to whether anything was refunded.
   *
   * @throws SluiceError `INVALID_COST`
   */
  async settle(decision: Decision, actualCost: number): Promise<boolean> {
    checkActualCost(this.#where, actualCost, maxToSettle(decision))
    return this.#settle(decision, 'requests', () => actualCost)
  }

  /** Replaces the charged bytes with those received, once; never with more than were charged. */
  async settleBytes(decision: Decision, received: number): Promise<boolean> {
    return this.#settle(decision, 'content-bytes', (charged) => Math.min(received, charged))
  }

  async release(decision: Decision): Promise<void> {
    const { request } = decision
    if (!isHeld(decision) || !request.permitId) return
    if (await this.#send(decision, { ...request, op: RELEASE })) this.#onRoom(request)
  }

  async renew(decision: Decision): Promise<void> {
    const { request } = decision
    if (isHeld(decision) && request.permitId) await this.#send(decision, { ...request, op: RENEW })
  }

  /** Replaces the charge of one unit, once. */
  async #settle(decision: Decision, unit: QuotaUnit, actual: (charged: number) => number): Promise<boolean> {
    const { settled } = decision
    if (!isHeld(decision) || settled?.has(unit)) return false
    decision.settled = new Set(settled).add(unit)
    return this.#reduce(decision, (each, charged) => (each === unit ? actual(charged) : undefined))
  }

  /** Refunds the excess over `actual` per cell; nothing where that is undefined. */
  async #reduce(
    decision: Decision,
    actual: (unit: QuotaUnit, charged: number) => number | undefined,
  ): Promise<boolean> {
    const { request } = decision
    const { units, cells } = request.plan as ReadablePlan
    const costs = request.costs.map((charged, c) => {
      const left = actual(units[c] as QuotaUnit, charged) ?? charged
      return this.#isForgotten(decision, cells[c] as Cell) ? 0 : Math.max(0, charged - left)
    })
    if (takesNothing(costs)) return false
    if (!(await this.#send(decision, { ...request, op: REFUND, costs }))) return false
    this.#onRoom(request)
    return true
  }

  #isForgotten({ request, by: { resets, tier } }: Decision, { kernel, identity }: Cell): boolean {
    // Permits are released by their id, even after a reset.
    if (CELL_KINDS[kernel].hasPermits) return false
    return this.resets.wasResetAfter(resets, tier, request.identities[identity] as string)
  }

  /**
   * Sends a change of a charge to the store that made it, once: a store that fails may still have applied it.
   * Resolves to whether it was certainly applied; if not, the charge expires by itself.
   */
  async #send({ by, result }: Decision, request: StoreRequest): Promise<boolean> {
    const store = by.store as Store
    try {
      const decided = store.decide({ ...request, charge: result })
      // A store that decides synchronously is in this process and has no outages, so its results are not recorded.
      if (decided instanceof Promise) this.#onChange(store, request, await decided)
      activeCounter()?.changedCharge(request)
      return true
    } catch (error) {
      if (isUnavailable(error)) return false
      throw error
    }
  }
}
