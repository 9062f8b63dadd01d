import type { Cell } from '../store/store.js'
import type { Limit } from './limits/limit.js'
import type { ConsistencyOptions } from './limits/relaxed.js'
import { Policy } from './policy.js'

/** What a limit's counts are kept under, beside whose they are. */
export interface StateName {
  /** Of its own state. */
  readonly own: string
  /** Of all that it is kept together with: another one where any of that is another. */
  readonly whole: string
}

/**
 * What the counts of limits are kept under where these are decided together: where both names are what they were before, what was
 * used goes on to count. For limits that name their keys, and whose numbers are known.
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
    const own = cell.kernel === 'log' ? `log ${(plan.resolved[i] as { windowMs: number }).windowMs}` : cell.id
    return { own: start + own.slice(own.lastIndexOf('/') + 1), whole: start + (cell.joint ?? cell.id) }
  })
}
