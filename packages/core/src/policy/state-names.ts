import type { ConsistencyOptions } from '../features/relaxed/relaxed-terms.js'
import type { Cell, ResolvedLimit } from '../store/store.js'
import type { Limit } from './limits/limit.js'
import { Policy } from './policy.js'
import { idOfUnit } from './units.js'

/** The names under which a limit's counts are stored, apart from the identity. */
export interface StateName {
  /** The name of its own state. */
  readonly own: string
  /** The name of everything that is stored together with it: it changes where any part of that changes. */
  readonly whole: string
}

/**
 * The names of the counts of limits that are decided together. Where both names stay the same, used units still count. For
 * limits that name their keys, and whose numbers are known.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function stateNamesOf(limits: readonly Limit[], consistency?: ConsistencyOptions): readonly StateName[] {
  const policy = new Policy<unknown>({ limits, ...(consistency && { consistency }) })
  const plan = policy.plan(undefined, {} as never)
  if (plan instanceof Promise) return []
  return limits.map((_, i) => {
    const cell = plan.cells[plan.cellOf[i] as number] as Cell
    const start = plan.starts[cell.identity] as string
    const { windowMs, unit } = plan.resolved[i] as ResolvedLimit
    const own = cell.kernel === 'log' ? `log ${windowMs}${idOfUnit(unit)}` : cell.id
    return { own: start + own.slice(own.lastIndexOf('/') + 1), whole: start + (cell.joint ?? cell.id) }
  })
}
