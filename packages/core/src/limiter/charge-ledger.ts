import { actualUnits, type Counting, takesNothing, type Units } from '../policy/costs.js'
import { entriesIn } from '../policy/given-identities.js'
import type { ReadablePlan } from '../policy/plan.js'
import { keptPlanNow, planNow } from '../policy/plan-now.js'
import { outcomeOf, type PartOutcome, takesNone } from '../store/kept-charge.js'
import {
  type Cell,
  type ChargeOutcome,
  DEBIT,
  type Keep,
  type KeptCharge,
  type QuotaUnit,
  REFUND,
  RELEASE,
  RENEW,
  type Store,
  type StoreRequest,
  type StoreResult,
} from '../store/store.js'
import { countsPermits } from '../store/units.js'
import { getOrInsert } from '../util/get-or-insert.js'
import type { Resets } from '../util/resets.js'
import { checkActualCost, type Decision, isHeld, maxToSettle, REFUNDED, refuseRelaxed } from '../verdict/decision.js'
import type { Meter, MeterOptions } from '../verdict/meter.js'
import { type ActualUnits, isOpen, releasing, renewing, settling } from './charge-changes.js'
import { isUnavailable } from './fallback.js'
import { activeCounter } from './watching.js'

/** Makes a meter: see `ChargeLedger.meter`. */
export type MakeMeter = (
  decision: Decision,
  unit: QuotaUnit,
  options: MeterOptions,
  goesOn: boolean | 'beyond',
) => Meter

/** A change of a kept charge, and the store that keeps it. */
export interface ChangeOfKept {
  readonly store: Store
  readonly request: StoreRequest
}

/** Settles units of a charge by itself. */
export interface OpenSettlement {
  /** Ends it, once, with a total. Resolves to whether that refunded or charged anything. */
  close(total: number): Promise<boolean>
}

/** What is open of each decision, for every ledger that changes its charge. */
const openOf = new WeakMap<Decision, Map<QuotaUnit, OpenSettlement>>()

/**
 * Changes the charges of a limiter after its decisions: refunds, settlements, releases and renewals. Each
 * charge is refunded once at most, and never after a reset.
 */
export class ChargeLedger {
  readonly #policy: Counting
  readonly #document: Counting | undefined
  readonly #onRoom: (request: StoreRequest) => void
  readonly #onChange: (store: Store, request: StoreRequest, result: StoreResult) => void
  readonly #makeMeter: MakeMeter
  /** The resets of keys: earlier charges are not refunded. */
  readonly resets: Resets

  /**
   * `onRoom`: called with a request whose limits may have room again. `onChange`: called with the result of a changed charge, where
   * the store returns promises. `resets`: those of the limiter, whose charges may be in several ledgers.
   * `document`: all policies of the document that the policy is of.
   */
  constructor(
    policy: Counting,
    onRoom: (request: StoreRequest) => void,
    onChange: (store: Store, request: StoreRequest, result: StoreResult) => void,
    makeMeter: MakeMeter,
    resets: Resets,
    document: Counting | undefined,
  ) {
    this.resets = resets
    this.#makeMeter = makeMeter
    this.#policy = policy
    this.#document = document
    this.#onRoom = onRoom
    this.#onChange = onChange
  }

  /** A handler cannot know which policies of a document, and which of their tiers, its request matches. */
  counts(unit: QuotaUnit): boolean {
    return this.#policy.units.has(unit) || this.#document?.units.has(unit) === true
  }

  /** The policy, with those of these units that others of its document count. */
  counting(units: readonly QuotaUnit[]): Counting {
    const others = units.filter((unit) => this.counts(unit))
    return { where: this.#policy.where, units: new Set([...this.#policy.units, ...others]) }
  }

  /** Refunds a charge and releases its permits. Resolves to whether this call refunded anything. */
  async refund(decision: Decision): Promise<boolean> {
    if (!isHeld(decision)) return false
    const { settled } = decision
    decision.settled = REFUNDED
    const meters = [...(openOf.get(decision)?.values() ?? [])].map((meter) => meter.close(0))
    const refunds = this.reduce(decision, (unit) => (settled?.has(unit) ? undefined : 0))
    return (await Promise.all([refunds, ...meters])).includes(true)
  }

  /**
   * Replaces the charged units with the actual ones, each unit once. Resolves to whether anything was refunded or charged.
   *
   * @throws SluiceError `INVALID_COST`
   */
  async settle(decision: Decision, actual: number | Units): Promise<boolean> {
    const units = entriesIn(actual)
    if (units) {
      const named = actualUnits(this.counting(units.map(([unit]) => unit)), units)
      const { units: counted } = decision.request.plan as ReadablePlan
      if (counted.some((unit) => named.has(unit))) refuseRelaxed(this.#policy.where, decision, 'settle')
      return this.#settle(decision, named, true)
    }
    const requests = checkActualCost(this.#policy.where, actual, maxToSettle(decision))
    return this.#settle(decision, new Map([['requests', requests]]), false)
  }

  /** Replaces the charged bytes with those received, once; never with more than were charged. */
  async settleBytes(decision: Decision, received: number): Promise<boolean> {
    return this.#settle(decision, new Map([['content-bytes', received]]), false)
  }

  /**
   * A meter for units of a decided request. `goesOn`: whether it proceeds, and whether it does so beyond its limits.
   *
   * @throws SluiceError `INVALID_COST`, `INVALID_POLICY`
   */
  meter(decision: Decision, unit: QuotaUnit, options: MeterOptions, goesOn: boolean | 'beyond'): Meter {
    return this.#makeMeter(decision, unit, options, goesOn)
  }

  /** What settles units of a charge at its end, such as a meter, by its unit. */
  openFor(decision: Decision): Map<QuotaUnit, OpenSettlement> {
    return getOrInsert(openOf, decision, () => new Map<QuotaUnit, OpenSettlement>())
  }

  async release(decision: Decision): Promise<void> {
    const { request } = decision
    if (!isHeld(decision) || !request.permitId) return
    const kept = keptBy(decision)
    if (kept) await this.#changeOwn(decision, releasing(kept))
    else if (await this.#send(decision, { ...request, op: RELEASE })) this.#onRoom(request)
  }

  async renew(decision: Decision): Promise<void> {
    const { request } = decision
    if (!isHeld(decision)) return
    const kept = keptBy(decision)
    if (kept) await this.#changeOwn(decision, renewing(kept))
    else if (request.permitId) await this.#send(decision, { ...request, op: RENEW })
  }

  /** Replaces the charge of each unit that is not settled yet. `isFree`: whether more than was charged counts. */
  async #settle(decision: Decision, actual: ReadonlyMap<QuotaUnit, number>, isFree: boolean): Promise<boolean> {
    const { settled } = decision
    if (!isHeld(decision)) return false
    const open = new Map([...actual].filter(([unit]) => !settled?.has(unit)))
    const metered = [...(openOf.get(decision) ?? [])].flatMap(([unit, meter]) => {
      const total = open.get(unit)
      return total !== undefined && open.delete(unit) ? [meter.close(total)] : []
    })
    decision.settled = new Set([...(decision.settled ?? []), ...open.keys()])
    const done = await Promise.all([
      ...metered,
      this.reduce(decision, (unit) => open.get(unit), isFree),
      isFree && !keptBy(decision) && this.debit(decision, excessOf(decision, open)),
    ])
    return done.includes(true)
  }

  /**
   * Makes changes of a kept charge.
   *
   * @throws SluiceError `STORE_UNAVAILABLE`, once all others are made
   */
  async changeKept(given: readonly ChangeOfKept[]): Promise<ChargeOutcome> {
    const needed = given.filter(({ request }) => isNeeded(request))
    const changes = await Promise.allSettled(
      (needed.length > 0 ? needed : given).map(async ({ store, request }) => {
        return { takesNone: takesNone(request), outcome: await this.#change(store, request) }
      }),
    )
    const failure = changes.find((change) => change.status === 'rejected')
    if (failure) throw failure.reason
    return outcomeOf(changes.map((change) => (change as PromiseFulfilledResult<PartOutcome>).value))
  }

  async #change(store: Store, kept: StoreRequest): Promise<ChargeOutcome | undefined> {
    // Only more units open a window, which is of the present.
    const request = kept.op === DEBIT ? { ...kept, plan: keptPlanNow(kept.plan, store) } : kept
    const { outcome } = await this.#changeOn(store, request)
    if (outcome !== 'done') return outcome
    activeCounter()?.changedCharge(request)
    if (request.op === REFUND || request.op === RELEASE) this.#onRoom(request)
    return outcome
  }

  /** Refunds units of the charge of a verdict. `done before` where the charge is kept, and was settled before. */
  async settleOwn(decision: Decision, actual: ActualUnits): Promise<boolean | 'done before'> {
    const kept = keptBy(decision)
    if (!kept) return this.reduce(decision, actual)
    const outcome = await this.#outcomeOfOwn(decision, settling(kept, actual, false))
    return outcome === 'done before' ? outcome : outcome === 'done'
  }

  /** Changes the kept charge of a verdict. Resolves to whether this call changed it; false while the store is away. */
  async #changeOwn(decision: Decision, requests: readonly StoreRequest[]): Promise<boolean> {
    return requests.some(isNeeded) && (await this.#outcomeOfOwn(decision, requests)) === 'done'
  }

  /** Undefined while the store is away. */
  async #outcomeOfOwn({ by }: Decision, requests: readonly StoreRequest[]): Promise<ChargeOutcome | undefined> {
    try {
      const store = by.store as Store
      return await this.changeKept(requests.map((request) => ({ store, request })))
    } catch (error) {
      if (isUnavailable(error)) return undefined
      throw error
    }
  }

  /** Charges units per cell, whatever room there is. */
  async debit(decision: Decision, more: readonly number[]): Promise<boolean> {
    const { request } = decision
    // A limit of 0 refuses everything as it is.
    const costs = request.plan.cells.map((cell, c) => (isOpen(cell) ? (more[c] as number) : 0))
    if (takesNothing(costs)) return false
    const plan = planNow(request.plan as ReadablePlan, decision.by.store as Store)
    return this.#send(decision, { ...request, op: DEBIT, plan, costs, permitId: '' })
  }

  /** Refunds the excess over `actual` per cell; nothing where that is undefined. Of a kept charge, `isFree` charges more, too. */
  async reduce(decision: Decision, actual: ActualUnits, isFree = false): Promise<boolean> {
    const kept = keptBy(decision)
    if (kept) return this.#changeOwn(decision, settling(kept, actual, isFree))
    const { request } = decision
    const { units, cells } = request.plan as ReadablePlan
    const costs = request.costs.map((charged, c) => {
      const left = actual(units[c] as QuotaUnit, charged, c) ?? charged
      return this.#isForgotten(decision, cells[c] as Cell) ? 0 : Math.max(0, charged - left)
    })
    if (takesNothing(costs)) return false
    if (!(await this.#send(decision, { ...request, op: REFUND, costs }))) return false
    this.#onRoom(request)
    return true
  }

  #isForgotten({ request, by: { resets, policy } }: Decision, cell: Cell): boolean {
    // Permits are released by their id, even after a reset.
    if (countsPermits(cell)) return false
    return this.resets.wasResetAfter(resets, policy?.tier, request.identities[cell.identity] as string)
  }

  /**
   * Sends a change of a charge to the store that made it, once: a store that fails may still have applied it.
   * Resolves to whether it was certainly applied; if not, the charge expires by itself.
   */
  async #send({ by, result }: Decision, request: StoreRequest): Promise<boolean> {
    const store = by.store as Store
    try {
      await this.#changeOn(store, { ...request, charge: result, keep: undefined })
      activeCounter()?.changedCharge(request)
      return true
    } catch (error) {
      if (isUnavailable(error)) return false
      throw error
    }
  }

  async #changeOn(store: Store, request: StoreRequest): Promise<StoreResult> {
    const decided = store.decide(request)
    // A store that decides synchronously is in this process and has no outages, so its results are not recorded.
    if (!(decided instanceof Promise)) return decided
    const result = await decided
    this.#onChange(store, request, result)
    return result
  }
}

/** The units per cell by which the actual units exceed a charge. */
function excessOf({ request: { plan, costs } }: Decision, actual: ReadonlyMap<QuotaUnit, number>): readonly number[] {
  const { units } = plan as ReadablePlan
  return costs.map((charged, c) => Math.max(0, (actual.get(units[c] as QuotaUnit) ?? 0) - charged))
}

/** Whether a change does anything where its id is known. A renewal is of the id, too. */
function isNeeded(request: StoreRequest): boolean {
  return request.op === RENEW || !takesNone(request)
}

/** The kept charge of a verdict. Undefined if no store keeps it. */
function keptBy({ request, result }: Decision): KeptCharge | undefined {
  const { id } = result
  return id === undefined ? undefined : { request: { ...request, keep: { ...(request.keep as Keep), id } }, result }
}
