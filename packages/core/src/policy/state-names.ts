import type { Cell, ResolvedLimit } from '../store/store.js'
import type { Policy } from './policy.js'
import { idOfUnit } from './units.js'

/** The names under which a limit's counts are stored, apart from the identity. */
export interface StateName {
  /** The name of its own state. */
  readonly own: string
  /** The name of everything that is stored together with it: it changes where any part of that changes. */
  readonly whole: string
}

/** The names of the counts of a policy's limits, which name their keys and have known numbers. */
export function stateNamesIn(policy: Policy<unknown>): readonly StateName[] {
  const plan = policy.plan(undefined, {} as never)
  if (plan instanceof Promise) return []
  return policy.limits.map((_, i) => {
    const cell = plan.cells[plan.cellOf[i] as number] as Cell
    const start = plan.starts[cell.identity] as string
    const { windowMs, unit } = plan.resolved[i] as ResolvedLimit
    const name = cell.kernel === 'log' ? `log ${windowMs}${idOfUnit(unit)}` : cell.id
    return { own: start + name.slice(name.lastIndexOf('/') + 1), whole: start + (cell.joint ?? cell.id) }
  })
}
