import type { Limit } from '../../policy/limits/limit.js'
import { hasPermits } from '../../store/cell-kinds.js'
import type { OptionsOfPolicies } from './policy-source.js'

/**
 * Whether two sets of options say nothing but limits, and those are the same but for their algorithms and numbers: one guard serves
 * both.
 */
export function differInNumbers<Request>(one: OptionsOfPolicies<Request>, other: OptionsOfPolicies<Request>): boolean {
  const { limits: some = [], ...rest } = one
  const { limits: others = [], ...otherRest } = other
  if (some.length !== others.length || !isEmpty(rest) || !isEmpty(otherRest)) return false
  return some.every((limit, i) => isLike(limit, others[i] as Limit))
}

/** What a guard has of a limit beside its plan. */
function isLike(one: Limit, other: Limit): boolean {
  return (
    one.name === other.name &&
    one.policy === other.policy &&
    one.key === other.key &&
    one.respond === other.respond &&
    one.unit === other.unit &&
    one.lease === other.lease &&
    one.reserve === other.reserve &&
    hasPermits(one.algorithm) === hasPermits(other.algorithm)
  )
}

function isEmpty(options: object): boolean {
  return Object.keys(options).length === 0
}
