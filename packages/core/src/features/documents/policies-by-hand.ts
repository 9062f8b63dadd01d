import { byIp } from '../../http/identity/ip.js'
import { entriesIn, isData } from '../../policy/given-identities.js'
import { Policy, type PolicyChoice } from '../../policy/policy.js'
import type { PolicyFeature } from '../../policy/policy-feature.js'
import { SluiceError, show } from '../../util/errors.js'
import { getOrInsert } from '../../util/get-or-insert.js'
import { Parts } from '../../util/parts.js'
import { type MaybePromise, whenKnown } from '../../util/when-known.js'
import { KEPT, keepTerms } from '../charges/charge-terms.js'
import type { PolicyOptions } from '../policy-options.js'
import type { GivenClient, MatchedPolicies, PolicySource } from './policy-source.js'

/**
 * Policies that are data, for the methods of a limiter: they name a policy where another limiter names a tier. The policy is the
 * client's, with its override.
 */
export function policiesByHand<Request>(
  where: string,
  name: string,
  source: PolicySource<Request>,
  { charges, consistency: ofAll }: Pick<PolicyOptions<Request>, 'charges' | 'consistency'>,
  features: readonly PolicyFeature[],
): PolicyChoice<Request> {
  const policyOfMatched = new WeakMap<MatchedPolicies<Request>, Policy<Request>>()
  /** The names of policies, by which a call that waits finds the one in force. */
  const names = new WeakMap<Policy<Request>, string>()
  const policyOf = (given: string, matched: MatchedPolicies<Request>): Policy<Request> =>
    getOrInsert(policyOfMatched, matched, () => {
      const { limits, ban, sharedTurns, consistency = ofAll, key = byIp<Request>() } = matched.options
      const policyOptions = { name, key, limits, ban, sharedTurns, consistency, ...(charges && { charges }) }
      const policy = new Policy<Request>(policyOptions, features)
      names.set(policy, given)
      return policy
    })
  /** Undefined if there is no policy of this name. */
  const policyFor = (given: string, subject: unknown): MaybePromise<Policy<Request>> | undefined => {
    const matched = source.byName.get(given)
    if (!matched) return undefined
    const policy = policyOf(given, matched)
    const client = source.forClient && clientOf(policy, subject)
    if (!client) return policy
    return whenKnown(source.forClient?.(given, client), (its) => (its ? policyOf(given, its) : policy))
  }
  return {
    name,
    where,
    parts: partsOf(where, charges),
    get all() {
      return [...source.byName].map(([given, matched]) => policyOf(given, matched))
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
      const policy = policyFor(String(named), subject)
      if (policy) return policy
      const known = [...source.byName.keys()].map(show).join(' or ')
      throw new SluiceError(
        'INVALID_KEY',
        `${where}: tier: expected the name of a policy, ${known}, got ${show(named)}`,
      )
    },
    inPlaceOf(policy, subject) {
      return whenKnown(policyFor(names.get(policy) as string, subject), (now) =>
        now && haveEqualUnits(now, policy) ? now : undefined,
      )
    },
  }
}

/** The parts that do not depend on the policy: whether charges are kept. */
function partsOf(where: string, charges: PolicyOptions<never>['charges']): Parts {
  const parts = new Parts()
  if (charges) parts.set(KEPT, keepTerms(where, charges, {}, []))
  return parts
}

function haveEqualUnits({ units }: Policy<never>, other: Policy<never>): boolean {
  return units.size === other.units.size && [...units].every((unit) => other.units.has(unit))
}

/** Undefined for an argument that names no identity: the policy says what is wrong with it. */
function clientOf(policy: Policy<never>, subject: unknown): GivenClient | undefined {
  if (!isData(subject)) return { request: subject }
  const [[kind, value] = [undefined, undefined], ...others] = entriesIn(subject) ?? [[policy.kinds[0], subject]]
  return kind === undefined || others.length > 0 ? undefined : { kind, value }
}
