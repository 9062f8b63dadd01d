import { type Cost, checkCost, checkedCost } from '../../policy/costs.js'
import { entriesIn } from '../../policy/given-identities.js'
import type { LimitCost } from '../../policy/limits/limit.js'
import type { PolicyChoice } from '../../policy/policy.js'
import { type CostFunction, costFor, resolveAll } from '../../policy/request-cost.js'
import type { HttpContext } from '../../request/context.js'
import { isOwnUnit, PERMITS } from '../../store/units.js'
import { invalidPolicy } from '../../util/errors.js'
import type { MaybePromise } from '../../util/when-known.js'

/** The costs of a request that matches policies of a document, unchecked: of the limiter, and of limits whose policy has its own. */
class CostsOfPolicies {
  readonly own: unknown
  readonly #ofLimits: ReadonlyMap<LimitCost, unknown>

  constructor(own: unknown, ofLimits: ReadonlyMap<LimitCost, unknown>) {
    this.own = own
    this.#ofLimits = ofLimits
  }

  get ofLimits(): ReadonlyMap<LimitCost, unknown> {
    return this.#ofLimits
  }

  /** Not by `instanceof`: a cost that is a proxy may throw then. */
  static is(cost: unknown): cost is CostsOfPolicies {
    return typeof cost === 'object' && cost !== null && #ofLimits in cost
  }
}

/**
 * The cost of the requests of a limiter, or a function that returns it.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function requestCostFor<Request>(
  policy: PolicyChoice<Request>,
  option: unknown,
): number | CostFunction<Request> {
  const uncounted = policy.limits.find(({ unit, cost }) => isOwnUnit(unit) && cost === undefined)
  if (option === undefined && uncounted) {
    invalidPolicy(policy.where, 'cost', `one that names ${uncounted.unit}, as a limit counts them`, undefined)
  }
  const costOption = costFor(policy, option === undefined ? 1 : option)
  const costs = [...new Set(policy.limits.flatMap(({ cost }) => (cost === undefined ? [] : [cost])))]
  return costs.length === 0 ? costOption : (request, context) => costsOfPolicies(costOption, costs, request, context)
}

function costsOfPolicies<Request>(
  own: number | CostFunction<Request>,
  costs: readonly LimitCost[],
  request: Request,
  context: HttpContext<Request>,
): MaybePromise<CostsOfPolicies> {
  return resolveAll([own, ...costs], request, context, ([known, ...units]) => {
    return new CostsOfPolicies(known, new Map(costs.map((cost, i) => [cost, units[i]])))
  })
}

/** @throws SluiceError `INVALID_COST` */
export function requestCost(policy: Pick<PolicyChoice<never>, 'where' | 'units'>, cost: unknown): Cost {
  if (!CostsOfPolicies.is(cost)) return checkedCost(policy, cost)
  const { own, ofLimits } = cost
  const checked = checkedCost(policy, own)
  const named = typeof checked === 'number' ? ofNumber(checked) : checked.named
  const entries = [...ofLimits].map(([limit, units]): [LimitCost, number] => [
    limit,
    checkCost(policy.where, 'cost', units),
  ])
  return { named, ofLimits: new Map(entries) }
}

/** Whether a request's cost has a number that is none: computed from the request, unlike any other wrong value. */
export function hasWrongNumber(cost: unknown): boolean {
  if (CostsOfPolicies.is(cost)) return [cost.own, ...cost.ofLimits.values()].some(hasWrongNumber)
  const units = entriesIn(cost)?.map(([, each]) => each) ?? [cost]
  return units.some((each) => typeof each === 'number' && !(Number.isSafeInteger(each) && each >= 0))
}

function ofNumber(requests: number): ReadonlyMap<string, number> {
  return new Map([
    ['requests', requests],
    [PERMITS, Math.min(requests, 1)],
  ])
}
