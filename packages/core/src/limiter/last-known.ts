import { kindOfCell } from '../kinds/known.js'
import {
  type Cell,
  DEBIT,
  type Plan,
  type ResolvedLimit,
  requestOf,
  STRIDE,
  type StoreRequest,
  type StoreResult,
} from '../store/store.js'
import { countsPermits } from '../store/units.js'
import { type CellState, StatesByIdentity } from '../util/states-by-identity.js'

/** Number of identities with remembered states, for all limiters on a store: the last ones, and up to as many more. */
const IDENTITIES = 10_000

/** A store in this process, which can also decide as of an earlier instant. */
export interface LocalStore {
  decide(request: StoreRequest, now?: number): StoreResult
}

/** The store's last result for a cell, with its time by the clock of this process. */
interface Known extends CellState {
  readonly at: number
  /** The plan of the decision. Its limits may have had other numbers than those in force. */
  readonly plan: Plan
  readonly identities: readonly string[]
  /** The number of the cell in the plan. */
  readonly cell: number
  /** The number of the limit with the least left, its remaining units, and the time in ms until it is full again. */
  readonly limit: number
  readonly remaining: number
  readonly resetMs: number
}

/**
 * The store's last results for clients that had used more than half of a limit, without blocks. In an outage counting continues
 * from there, and not from a full quota.
 */
export class LastKnown {
  readonly #clock: () => number
  readonly #isStores: boolean
  readonly #known = new StatesByIdentity<Known>(IDENTITIES)

  /** @param isStores whether results have the time of this clock */
  constructor(clock: () => number, isStores: boolean) {
    this.#clock = clock
    this.#isStores = isStores
  }

  /** Records a result of the store. Call it with each. */
  record({ plan, identities }: StoreRequest, { now, values, offset, block, source }: StoreResult): void {
    // A refusal that is repeated was recorded when it came.
    if (block || source === 'deny-cache') return
    let end = offset
    for (let c = 0; c < plan.cells.length; c++) {
      const cell = plan.cells[c] as Cell
      let fullest = -1
      let least = 0.5
      for (let l = 0; l < cell.limits.length; l++, end += STRIDE) {
        const { capacity } = cell.limits[l] as ResolvedLimit
        const left = (values[end] as number) / capacity
        if (left < least) {
          least = left
          fullest = l
        }
      }
      if (fullest < 0 && this.#known.isEmpty) continue
      const identity = identities[cell.identity] as string
      if (fullest < 0 || countsPermits(cell)) {
        this.#known.delete(plan.policy, cell.id, identity)
        continue
      }
      const from = end - (cell.limits.length - fullest) * STRIDE
      const [remaining, resetMs] = [values[from] as number, values[from + 2] as number]
      const at = this.#isStores ? now : this.#clock()
      const { policy } = plan
      const known = { policy, cellId: cell.id, at, plan, identities, cell: c, limit: fullest, remaining, resetMs }
      this.#known.set(identity, known)
    }
  }

  forget(plan: Plan, identities: readonly string[]): void {
    for (const { id, identity } of plan.cells) this.#known.delete(plan.policy, id, identities[identity] as string)
  }

  /**
   * Charges a local store, once, for the known use of a decision's cells, by the limits that the store decided by. `localOf`: the
   * local plan of a plan, which may be a share.
   */
  charge(local: LocalStore, { plan, identities }: StoreRequest, localOf: (plan: Plan) => Plan): void {
    if (this.#known.isEmpty) return
    for (const cell of plan.cells) {
      const identity = identities[cell.identity] as string
      const known = this.#known.find(plan.policy, cell.id, identity)
      if (!known) continue
      this.#known.delete(plan.policy, cell.id, identity)
      if (known.at + known.resetMs > this.#clock()) chargeCell(local, known, localOf(known.plan))
    }
  }
}

function chargeCell(
  local: LocalStore,
  { at, plan: whole, identities, cell: c, limit: l, remaining, resetMs }: Known,
  plan: Plan,
): void {
  const cell = plan.cells[c] as Cell
  const { capacity, windowMs } = cell.limits[l] as ResolvedLimit
  const { capacity: ofWhole } = (whole.cells[c] as Cell).limits[l] as ResolvedLimit
  const used = Math.ceil((usedOf(whole.cells[c] as Cell, ofWhole, remaining, resetMs) * capacity) / ofWhole)
  // Debits have no regard to bans of this process, nor to smaller limits that share a log.
  const debit = (units: number) =>
    requestOf(
      DEBIT,
      plan,
      identities,
      plan.cells.map((_, i) => (i === c ? units : 0)),
    )
  // The charges of an earlier outage in this store count already.
  const before = local.decide(debit(0))
  const earlier = plan.cells.slice(0, c).reduce((sum, { limits }) => sum + limits.length, l)
  const [left, , leftMs] = before.values.slice(before.offset + STRIDE * earlier) as [number, number, number]
  const units = used - usedOf(cell, capacity, left, leftMs)
  if (units <= 0) return
  const chargedAt = kindOfCell(cell).chargedAt(cell.params, { windowMs, used, at, resetMs })
  local.decide(debit(units), chargedAt)
}

/** The used units of a limit: those of a debt, too. */
function usedOf(cell: Cell, capacity: number, remaining: number, resetMs: number): number {
  if (remaining > 0) return capacity - remaining
  return Math.max(capacity, kindOfCell(cell).usedUntil?.(cell.params, resetMs) ?? 0)
}
