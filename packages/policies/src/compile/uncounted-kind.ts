import { shown } from '../problems/problem.js'
import { type CompiledPolicy, variantsOf } from './policy.js'

/**
 * Why an override for clients of a kind may be misunderstood. None of the policy's limits counts that kind, so the client
 * shares its count with others. Undefined if one does; and for addresses, by which many clients are overridden at once.
 */
export function uncountedKind(policy: CompiledPolicy, kind: string): string | undefined {
  if (kind === 'ip') return undefined
  const keys = variantsOf(policy).flatMap(({ limits }) => limits.map(({ key = policy.key }) => key.kind ?? 'key'))
  const counted = [...new Set(keys)]
  if (counted.some((each) => each.split('+').includes(kind))) return undefined
  const counts = counted.map(shown).join(' and ')
  return `policy ${shown(policy.name)} counts by ${counts}, so this client shares the limit with others; to count it by itself, give the policy key: ${kind}`
}
