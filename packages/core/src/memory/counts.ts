import { afterKind } from '../store/identity.js'
import {
  type Cell,
  CHARGE,
  CONSUME,
  DEBIT,
  isDecision,
  PEEK,
  type Plan,
  REFUND,
  RENEW,
  receiptsOf,
  resultOf,
  STRIDE,
  type StoreRequest,
  type StoreResult,
} from '../store/store.js'
import { countsPermits } from '../store/units.js'
import type { MemoryBase } from './base.js'
import type { MemoryLayer } from './layer.js'
import type { Table } from './table.js'

let decided = false

/** Whether any memory store of this process has decided: the process serves requests by then. */
export function hasDecided(): boolean {
  return decided
}

/** The counts of a memory store: decides by them, and changes them. */
export class Counts implements MemoryLayer {
  readonly #base: MemoryBase

  constructor(base: MemoryBase) {
    this.#base = base
  }

  /** Reads the state of every cell first. Only then does it write, and only if all admit or the op charges refusals too. */
  decide(request: StoreRequest, now: number): StoreResult {
    decided = true
    const { op, plan, costs, needs = costs } = request
    const { states } = this.#base
    const { tables, values: identities } = states.placesOf(request)
    const decides = isDecision(op)
    let allowed = true
    let possible = true
    for (let c = 0; c < tables.length; c++) {
      const identity = identities[(plan.cells[c] as Cell).identity] as string
      const wait = (tables[c] as Table).look(identity, now, decides ? (needs[c] as number) : 0)
      if (!decides) continue
      // The decision: `look` has read the state, and nothing is written so far.
      if (wait !== 0) allowed = false
      if (wait < 0) possible = false
    }

    const values = plan.reports === 1 ? [0, 0, 0, 0] : new Array<number>(STRIDE * plan.reports)
    const result = resultOf(now, allowed, values, 0)
    const change = decides ? undefined : changeOf(request)
    for (let c = 0, at = 0; c < tables.length; c++) {
      const table = tables[c] as Table
      const { hasState } = table
      if (change) change(table, c, result)
      else charge(request, table, c, allowed, possible)
      const from = at
      at = table.report(values, from, allowed)
      if (!allowed && op !== PEEK && hasToWait(values, from, at)) table.noteRefusal()
      if (decides && table.refunded !== 0) {
        result.refunded ??= tables.map(() => 0)
        ;(result.refunded as number[])[c] = table.refunded
      }
      if (table.hasState !== hasState) states.resized(table, now)
    }
    // After every table has written: an eviction must not remove the current state of another table.
    if (states.areTooMany) states.makeRoom(now, tables)
    return result
  }

  reset(plan: Plan, identities: readonly string[]): void {
    const { tables, values } = this.#base.states.placesOf({ plan, identities })
    for (const [c, table] of tables.entries()) table.forget(values[(plan.cells[c] as Cell).identity] as string)
  }

  forget(identity: string): void {
    const start = afterKind(identity)
    this.#base.states.forget(identity.slice(0, start), identity.slice(start))
  }

  /** They are in the base, which is cleared first. */
  clear(): void {}
}

/** Charges a cell whose state was looked up, if its decision charges. */
function charge(
  { op, plan, costs, permitId }: StoreRequest,
  table: Table,
  c: number,
  allowed: boolean,
  possible: boolean,
): void {
  const cost = costs[c] as number
  if (allowed && op !== PEEK) {
    if (cost !== 0) table.charge(cost, permitId)
  } else if (op === CHARGE && possible) {
    // A refused request is not in flight, so no one would release its permit.
    if (cost !== 0 && !countsPermits(plan.cells[c] as Cell)) table.charge(cost, permitId)
  } else if (op === CONSUME) table.heal()
}

/** Changes a cell whose state was looked up, by an op that decides nothing. */
function changeOf({ op, plan, costs, permitId, charge }: StoreRequest) {
  if (op === DEBIT) {
    return (table: Table, c: number): void => {
      if (costs[c] !== 0) table.debit(costs[c] as number)
    }
  }
  const charged = charge as StoreResult
  const receipts = receiptsOf(plan, charged)
  return (table: Table, c: number, result: { outcome: StoreResult['outcome'] }): void => {
    const cost = costs[c] as number
    if (op === RENEW) {
      if (!table.renew(cost, permitId)) result.outcome = 'unknown'
    } else if (cost !== 0 && (op === REFUND || countsPermits(plan.cells[c] as Cell))) {
      table.refund(cost, receipts[c] as number, charged.now, permitId, charged.refunded?.[c] ?? 0)
    }
  }
}

/** Whether a cell refuses for now, by its reports. */
function hasToWait(values: readonly number[], from: number, to: number): boolean {
  for (let at = from; at < to; at += STRIDE) if ((values[at + 1] as number) > 0) return true
  return false
}
