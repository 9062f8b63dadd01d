import { BANS, type Cell, type Plan, type Store, type StoreRequest } from '@sluice/core/store'

/** Parameters of a window of the calendar before its bounds. */
const FIRST_BOUND = 4

/** The store as a process sees it whose time zone data differ: each period begins and ends `shiftMs` later. */
export function withOtherTimeZones(store: Store, shiftMs: number): Store {
  const plans = new WeakMap<Plan, Plan>()
  const shifted = (cell: Cell): Cell => ({
    ...cell,
    params: cell.params.map((param, i) => (i < FIRST_BOUND ? param : param + shiftMs)),
  })
  const planOf = (plan: Plan): Plan => {
    const known = plans.get(plan) ?? { ...plan, cells: plan.cells.map(shifted) }
    plans.set(plan, known)
    return known
  }
  return {
    ...(store.clock && { clock: store.clock }),
    decide: (request: StoreRequest) => store.decide({ ...request, plan: planOf(request.plan) }),
    reset: (plan, identities) => store.reset(plan, identities),
    [BANS]: store[BANS],
    close: () => store.close(),
  }
}
