import type { Limit } from '@sluice/core'
import { isBytes } from '@sluice/core/internal'
import type { CostData, PolicyData } from '../document/document.js'
import { type Path, type Problem, shown } from '../problems/problem.js'
import { resolverOf } from './resolver-of.js'
import { ANY_RESOLVER, type Resolvers } from './resolvers.js'

/** Units, or a function of the request. */
// biome-ignore lint/suspicious/noExplicitAny: a document serves any framework's requests
type Cost = number | ((request: any, context: any) => Promise<number>)

/** The costs of a policy by unit; none where its cost is one for all. The same function for all limits of a unit. */
export type CostsOfPolicy = ReadonlyMap<string, Cost>

export function costsOfPolicy(
  { cost }: PolicyData,
  resolvers: Resolvers | typeof ANY_RESOLVER,
  path: Path,
  problems: Problem[],
): CostsOfPolicy {
  const costs = new Map<string, Cost>()
  for (const [unit, each] of typeof cost === 'object' ? Object.entries(cost) : []) {
    const resolved = resolvedCost(each, resolvers, [...path, 'cost', unit], problems)
    // Without the code that registers it, it is only known to be a function.
    costs.set(unit, resolved ?? (async () => 0))
  }
  return costs
}

/** A unit that no limit of its policy counts would be charged nowhere. */
export function checkUnits(costs: CostsOfPolicy, limits: readonly Limit[], path: Path, problems: Problem[]): void {
  const counted = new Set(limits.map(({ unit }) => unit).filter((unit) => !isBytes(unit)))
  for (const unit of costs.keys()) {
    if (counted.has(unit)) continue
    const expected = [...counted].map(shown).join(' or ') || 'no cost of a policy that counts bytes alone'
    problems.push({
      path: [...path, 'cost', unit],
      message: `expected a unit that its limits count, ${expected}`,
      isField: true,
    })
  }
}

/** A cost, with the function that its name stands for. */
export function resolvedCost(
  cost: CostData | undefined,
  resolvers: Resolvers | typeof ANY_RESOLVER,
  path: Path,
  problems: Problem[],
): Cost | undefined {
  if (typeof cost !== 'string') return cost
  const resolver = resolverOf(cost, resolvers === ANY_RESOLVER ? resolvers : resolvers.costs, 'costs', path, problems)
  return resolver && (async (request, context) => resolver(request, context))
}
