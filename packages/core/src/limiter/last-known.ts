import { CELL_KINDS } from '../store/cell-kinds.js'
import { type Cell, CONSUME, PEEK, type Plan, STRIDE, type StoreRequest, type StoreResult } from '../store/store.js'
import { dropOldest } from '../util/drop-oldest.js'

/** Maximum of states remembered, for all limiters on a store. */
const MAX_STATES = 10_000

/** A store in this process, which can also decide as of an earlier instant. */
export interface LocalStore {
  decide(request: StoreRequest, now?: number): StoreResult
}

/** The store's last result for a cell, with its time by the clock of this process. */
interface Known {
  readonly at: number
  /** The limit with the least left: its remaining units, its capacity, and the time in ms until it is full again. */
  readonly remaining: number
  readonly capacity: number
  readonly resetMs: number
}

/**
 * The store's last results for clients that had used more than half of a limit, without blocks. In an outage counting continues
 * from there, and not from a full quota.
 */
export class LastKnown {
  readonly #clock: () => number
  readonly #isStores: boolean
  readonly #known = new Map<string, Known>()

  /** @param isStores whether results have the time of this clock */
  constructor(clock: () => number, isStores: boolean) {
    this.#clock = clock
    this.#isStores = isStores
  }

  /** Records a result of the store. Call it with each. */
  record({ plan, identities }: StoreRequest, { now, values, offset, block }: StoreResult): void {
    if (block) return
    let at = offset
    for (let c = 0; c < plan.cells.length; c++) {
      const cell = plan.cells[c] as Cell
      let fullest = -1
      let least = 0.5
      for (let l = 0; l < cell.limits.length; l++, at += STRIDE) {
        const { capacity } = cell.limits[l] as Cell['limits'][number]
        const left = (values[at] as number) / capacity
        if (left < least) {
          least = left
          fullest = l
        }
      }
      if (fullest < 0 && this.#known.size === 0) continue
      const key = keyOf(plan, cell, identities)
      // Deleted first, so that the newest entries are last: a map is in order of insertion.
      this.#known.delete(key)
      if (fullest < 0 || CELL_KINDS[cell.kernel].hasPermits) continue
      const from = at - (cell.limits.length - fullest) * STRIDE
      const { capacity } = cell.limits[fullest] as Cell['limits'][number]
      const [remaining, resetMs] = [values[from] as number, values[from + 2] as number]
      this.#known.set(key, { at: this.#isStores ? now : this.#clock(), remaining, capacity, resetMs })
    }
    dropOldest(this.#known, MAX_STATES)
  }

  forget(plan: Plan, identities: readonly string[]): void {
    for (const cell of plan.cells) this.#known.delete(keyOf(plan, cell, identities))
  }

  /** Charges a local store, once, for the known use of a decision's cells. `scaled`: the local plan, which may be a share. */
  charge(local: LocalStore, { plan, identities }: StoreRequest, scaled: Plan): void {
    if (this.#known.size === 0) return
    for (let c = 0; c < plan.cells.length; c++) {
      const cell = plan.cells[c] as Cell
      const key = keyOf(plan, cell, identities)
      const known = this.#known.get(key)
      if (!known) continue
      this.#known.delete(key)
      if (known.at + known.resetMs > this.#clock()) chargeCell(local, { plan: scaled, identities }, c, known)
    }
  }
}

function keyOf({ policy }: Plan, cell: Cell, identities: readonly string[]): string {
  return `${policy}\n${cell.id}\n${identities[cell.identity]}`
}

function chargeCell(
  local: LocalStore,
  { plan, identities }: Pick<StoreRequest, 'plan' | 'identities'>,
  c: number,
  { at, remaining, capacity, resetMs }: Known,
): void {
  const cell = plan.cells[c] as Cell
  const max = Math.min(...cell.limits.map((limit) => limit.capacity))
  const used = Math.min(max, Math.ceil(((capacity - remaining) * max) / capacity))
  const request = { plan, identities, permitId: '' }
  const costs = (units: number) => plan.cells.map((_, i) => (i === c ? units : 0))
  // The charges of an earlier outage in this store count already.
  const before = local.decide({ ...request, op: PEEK, costs: costs(0) })
  const offset = before.offset + STRIDE * plan.cells.slice(0, c).reduce((sum, { limits }) => sum + limits.length, 0)
  const room = Math.min(...cell.limits.map((_, l) => before.values[offset + l * STRIDE] as number))
  const units = used - (max - room)
  if (units <= 0) return
  const windowMs = cell.limits[0]?.windowMs ?? 0
  const chargedAt = CELL_KINDS[cell.kernel].chargedAt(cell.params, { windowMs, used, at, resetMs })
  local.decide({ ...request, op: CONSUME, costs: costs(units) }, chargedAt)
}
