import { type ChargesOptions, keepTerms } from '../../policy/charges.js'
import { entriesIn, isData } from '../../policy/given-identities.js'
import { Policy, type PolicyChoice } from '../../policy/policy.js'
import { SluiceError, show } from '../../util/errors.js'
import { whenKnown } from '../../util/when-known.js'
import { byIp } from '../identity/ip.js'
import type { GivenClient, MatchedPolicies, PolicySource } from './policy-source.js'

/**
 * Policies that are data, for the methods of a limiter: they name a policy where another limiter names a tier. The policy is the
 * client's, with its override.
 */
export function policiesByHand<Request>(
  where: string,
  name: string,
  source: PolicySource<Request>,
  charges: ChargesOptions | undefined,
): PolicyChoice<Request> {
  const made = new WeakMap<MatchedPolicies<Request>, Policy<Request>>()
  const policyOf = (matched: MatchedPolicies<Request>): Policy<Request> => {
    let policy = made.get(matched)
    if (!policy) {
      const { limits, ban, sharedTurns, key = byIp<Request>() } = matched.options
      policy = new Policy<Request>({ name, key, limits, ban, sharedTurns, ...(charges && { charges }) })
      made.set(matched, policy)
    }
    return policy
  }
  return {
    name,
    where,
    ban: undefined,
    keeps: charges && keepTerms(where, charges, {}, []),
    get all() {
      return [...source.byName.values()].map(policyOf)
    },
    get limits() {
      return this.all.flatMap(({ limits }) => limits)
    },
    get units() {
      return new Set(this.limits.map(({ unit }) => unit))
    },
    /** @throws SluiceError `INVALID_KEY` without the name of a policy, where there are several */
    of(subject, _context, given) {
      const [only, ...others] = source.byName.keys()
      const named = given === undefined && others.length === 0 ? only : given
      const matched = source.byName.get(String(named))
      if (!matched) {
        const known = [...source.byName.keys()].map(show).join(' or ')
        throw new SluiceError(
          'INVALID_KEY',
          `${where}: tier: expected the name of a policy, ${known}, got ${show(named)}`,
        )
      }
      const own = policyOf(matched)
      const client = source.forClient && clientOf(own, subject)
      if (!client) return own
      return whenKnown(source.forClient?.(String(named), client), (its) => (its ? policyOf(its) : own))
    },
  }
}

/** Undefined for an argument that names no identity: the policy says what is wrong with it. */
function clientOf(policy: Policy<never>, subject: unknown): GivenClient | undefined {
  if (!isData(subject)) return { request: subject }
  const [[kind, value] = [undefined, undefined], ...others] = entriesIn(subject) ?? [[policy.kinds[0], subject]]
  return kind === undefined || others.length > 0 ? undefined : { kind, value }
}
