import { type ChargesOptions, keepTerms } from '../../policy/charges.js'
import { Policy, type PolicyChoice } from '../../policy/policy.js'
import { SluiceError, show } from '../../util/errors.js'
import { byIp } from '../identity/ip.js'
import type { PolicySource } from './policy-source.js'

/** Policies that are data, for the methods of a limiter: they name a policy where another limiter names a tier. */
export function policiesByHand<Request>(
  where: string,
  name: string,
  source: PolicySource<Request>,
  charges: ChargesOptions | undefined,
): PolicyChoice<Request> {
  let made: PolicySource<Request>['byName'] | undefined
  let policies: ReadonlyMap<string, Policy<Request>> = new Map()
  /** Rebuilt once the policies have changed. */
  const byName = () => {
    if (made === source.byName) return policies
    const all = [...source.byName].map(([policy, { options }]): [string, Policy<Request>] => {
      const { limits, ban, sharedTurns, key = byIp<Request>() } = options
      return [policy, new Policy<Request>({ name, key, limits, ban, sharedTurns, ...(charges && { charges }) })]
    })
    policies = new Map(all)
    made = source.byName
    return policies
  }
  return {
    name,
    where,
    ban: undefined,
    keeps: charges && keepTerms(where, charges, {}, []),
    get all() {
      return [...byName().values()]
    },
    get limits() {
      return this.all.flatMap(({ limits }) => limits)
    },
    get units() {
      return new Set(this.limits.map(({ unit }) => unit))
    },
    /** @throws SluiceError `INVALID_KEY` without the name of a policy */
    of(_subject, _context, named) {
      const policy = byName().get(String(named))
      if (policy) return policy
      const known = [...byName().keys()].map(show).join(' or ')
      throw new SluiceError(
        'INVALID_KEY',
        `${where}: tier: expected the name of a policy, ${known}, got ${show(named)}`,
      )
    },
  }
}
