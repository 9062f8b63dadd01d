import type { HttpContext } from '../request/context.js'
import { invalidPolicy } from '../util/errors.js'
import { wholeNumber } from '../util/validate.js'
import { ignorePromises, type MaybePromise, whenAllKnown, whenKnown } from '../util/when-known.js'
import { checkName, checkNumber } from './costs.js'
import { entriesIn } from './given-identities.js'
import type { OrFunction } from './limits/limit.js'
import type { PolicyChoice } from './policy.js'

/** Units by name, each a number or a function of the request. */
export type CostByUnit<Subject> = Readonly<Record<string, OrFunction<number, Subject>>>

/** Units of `requests`, units by name, or a function of the request that returns either. */
export type CostOption<Subject> =
  | number
  | CostByUnit<Subject>
  | ((
      subject: Subject,
      context: HttpContext<Subject>,
    ) => number | CostByUnit<Subject> | Promise<number | CostByUnit<Subject>>)

/** Returns the cost of a request, unchecked: a number, or numbers by unit. */
export type CostFunction<Subject> = (subject: Subject, context: HttpContext<Subject>) => MaybePromise<unknown>

type Entries = readonly (readonly [unit: string, units: unknown])[]

/**
 * The option `cost`, checked as far as it shows its units.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function costFor<Subject>(
  policy: Pick<PolicyChoice<Subject>, 'where' | 'units'>,
  option: unknown,
): number | CostFunction<Subject> {
  const { where } = policy
  if (typeof option === 'function') {
    return (subject, context) =>
      whenKnown(option(subject, context), (cost) => {
        const entries = entriesIn(cost)
        if (!entries) return cost
        // First, as values may be functions: of a unit that no limit counts none is called.
        for (const [unit] of entries) checkName(policy, unit, 'INVALID_COST')
        return unitsIn(entries, subject, context)
      })
  }
  const entries = entriesIn(option)
  if (entries) {
    for (const [unit, units] of entries) {
      checkName(policy, unit, 'INVALID_POLICY')
      if (typeof units !== 'function') wholeNumber(where, `cost: ${unit}`, units, 0)
    }
    return (subject, context) => unitsIn(entries, subject, context)
  }
  if (typeof option !== 'number') {
    invalidPolicy(
      where,
      'cost',
      'a whole number of at least 0, such numbers by unit, or a function of the request',
      option,
    )
  }
  const cost = wholeNumber(where, 'cost', option, 0)
  if (cost > 1) checkNumber(policy, cost, 'INVALID_POLICY')
  return cost
}

/** The units of a request, by name. */
function unitsIn<Subject>(entries: Entries, subject: Subject, context: HttpContext<Subject>): MaybePromise<unknown> {
  const costs = entries.map(([, each]) => each)
  return resolveAll(costs, subject, context, (known) =>
    Object.fromEntries(entries.map(([unit], i) => [unit, known[i]])),
  )
}

/** Calls those that are functions of the request, all at once, and hands their results on with the other values. */
export function resolveAll<Subject, Result>(
  costs: readonly unknown[],
  subject: Subject,
  context: HttpContext<Subject>,
  next: (costs: readonly unknown[]) => Result,
): MaybePromise<Result> {
  const known: unknown[] = []
  try {
    for (const cost of costs) known.push(typeof cost === 'function' ? cost(subject, context) : cost)
  } catch (error) {
    ignorePromises(known)
    throw error
  }
  return whenAllKnown(known, next)
}
