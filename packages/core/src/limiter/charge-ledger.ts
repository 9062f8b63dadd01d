import { takesNothing } from '../policy/costs.js'
import type { ReadablePlan } from '../policy/plan.js'
import { CELL_KINDS } from '../store/cell-kinds.js'
import { type Cell, REFUND, RELEASE, RENEW, type Store, type StoreRequest, type StoreResult } from '../store/store.js'
import { invalidPolicy } from '../util/errors.js'
import { type Charge, checkActualCost, SETTLED_BYTES, SETTLED_COST, Verdict } from '../verdict/verdict.js'
import { isUnavailable } from './fallback.js'
import { Resets } from './resets.js'
import { activeCounter } from './watching.js'

/**
 * What happens to the charges of a limiter after its decisions: refunds, settlements, releases and renewals, each
 * charge refunded once at most, and not at all after a reset.
 */
export class ChargeLedger {
  readonly #where: string
  readonly #policy: string
  readonly #onRoom: (request: StoreRequest) => void
  readonly #onChange: (store: Store, request: StoreRequest, result: StoreResult) => void
  readonly #resets = new Resets()

  /** `onRoom`: called with a request whose limits may have room again; `onChange`: called with the result of a changed charge, where the store returns promises. */
  constructor(
    where: string,
    policy: string,
    onRoom: (request: StoreRequest) => void,
    onChange: (store: Store, request: StoreRequest, result: StoreResult) => void,
  ) {
    this.#where = where
    this.#policy = policy
    this.#onRoom = onRoom
    this.#onChange = onChange
  }

  /** How many resets there were. Verdicts carry the number at their decision. */
  get resets(): number {
    return this.#resets.count
  }

  /** Forgets the charges on these identities so far: they are not refunded any more. */
  forget(tier: string | undefined, identities: readonly string[]): void {
    this.#resets.note(tier, identities)
  }

  /**
   * The charge of a verdict; undefined where nothing was charged, or all has been refunded.
   *
   * @throws SluiceError `INVALID_POLICY` for what is no verdict of this limiter
   */
  open(verdict: Verdict): Charge | undefined {
    const charge = this.#find(verdict)
    return charge?.refunded ? undefined : charge
  }

  /** Refunds what an allowed verdict charged, and releases its permits. Resolves to whether this call refunded anything. */
  async refund(verdict: Verdict): Promise<boolean> {
    const charge = this.open(verdict)
    if (!charge) return false
    // A charge that was settled still holds its permits.
    charge.refunded = charge.settled === 0
    return this.#reduce(charge, SETTLED_COST | SETTLED_BYTES, () => 0)
  }

  /** Replaces the cost that was charged by the actual one, once. Resolves to whether anything was refunded. */
  async settle(verdict: Verdict, actualCost: number): Promise<boolean> {
    const charge = this.#find(verdict)
    checkActualCost(this.#where, actualCost, Verdict.mostToSettle(verdict))
    return charge ? this.#reduce(charge, SETTLED_COST, () => actualCost) : false
  }

  /** Replaces the bytes that were charged by those received, once; by no more than were charged. */
  async settleBytes(verdict: Verdict, received: number): Promise<boolean> {
    const charge = this.#find(verdict)
    return charge ? this.#reduce(charge, SETTLED_BYTES, (charged) => Math.min(received, charged)) : false
  }

  async release(verdict: Verdict): Promise<void> {
    const charge = this.open(verdict)
    if (charge?.request.permitId && (await this.#send(charge, { ...charge.request, op: RELEASE })))
      this.#onRoom(charge.request)
  }

  async renew(verdict: Verdict): Promise<void> {
    const charge = this.open(verdict)
    if (charge?.request.permitId) await this.#send(charge, { ...charge.request, op: RENEW })
  }

  #find(verdict: Verdict): Charge | undefined {
    if (!(verdict instanceof Verdict)) invalidPolicy(this.#where, 'verdict', 'a verdict of this limiter', verdict)
    const charge = Verdict.chargeOf(verdict)
    const policy = charge?.request.plan.policy ?? this.#policy
    if (policy !== this.#policy) {
      invalidPolicy(this.#where, 'verdict', 'a verdict of this limiter', `one of policy ${policy}`)
    }
    return charge
  }

  /** Refunds what exceeds `actual`, in the cells of these units that have not been settled yet. */
  async #reduce(charge: Charge, units: number, actual: (charged: number) => number): Promise<boolean> {
    const open = units & ~charge.settled
    charge.settled |= units
    const { request } = charge
    const { byteUnits } = request.plan as ReadablePlan
    const costs = request.costs.map((charged, c) => {
      if ((open & (byteUnits?.[c] ? SETTLED_BYTES : SETTLED_COST)) === 0) return 0
      return this.#isForgotten(charge, request.plan.cells[c] as Cell) ? 0 : charged - actual(charged)
    })
    if (takesNothing(costs)) return false
    if (!(await this.#send(charge, { ...request, op: REFUND, costs }))) return false
    this.#onRoom(request)
    return true
  }

  #isForgotten({ resets, tier, request }: Charge, { kernel, identity }: Cell): boolean {
    // Permits are released by their id, whatever was reset.
    if (CELL_KINDS[kernel].hasPermits) return false
    return this.#resets.wasResetAfter(resets, tier, request.identities[identity] as string)
  }

  /**
   * Sends a change of a charge to the store that made it, once: a store that fails may have applied it all the same.
   * Resolves to whether it was applied for sure; if not, the charge expires by itself.
   */
  async #send({ store, result }: Charge, request: StoreRequest): Promise<boolean> {
    try {
      const decided = store.decide({ ...request, charge: result })
      // A store that decides at once is in this process and has no outages, so its results are not remembered for one.
      if (decided instanceof Promise) this.#onChange(store, request, await decided)
      if (request.permitId !== '') activeCounter()?.changedPermits(request)
      return true
    } catch (error) {
      if (isUnavailable(error)) return false
      throw error
    }
  }
}
