import type { Outcome } from '../../http/guard/outcome.js'
import type { Limit } from '../../policy/limits/limit.js'
import type { ReadablePlan } from '../../policy/plan.js'
import type { PolicyChoice } from '../../policy/policy.js'
import { getOrInsert } from '../../util/get-or-insert.js'
import { propertyOf } from '../../util/property-of.js'
import { DECISION } from '../../verdict/verdict.js'
import type { MatchedPolicies } from './policy-source.js'

type Matched<Request> = MatchedPolicies<Request>

/** The names of policies, without those of tiers. */
type Policies = ReadonlySet<string>

export const NO_POLICIES: Policies = new Set()

/**
 * The passage of one request through the guard of one match. It knows the policies that the request has passed before: each
 * policy decides on it once, however they are grouped when it goes on after a wait.
 */
export class Passage<Request> {
  readonly #matched: Matched<Request>
  readonly #passed: Policies
  /** The policies that the request has waited for. */
  #waitedFor: Policies | undefined

  constructor(matched: Matched<Request>, passed: Policies) {
    this.#matched = matched
    this.#passed = passed
  }

  /** Whether the request has waited: other policies may be in force since. */
  get hasWaited(): boolean {
    return this.#waitedFor !== undefined
  }

  /**
   * The first match in force with a policy that the request waits for. Left out are policies that it has passed, and those that
   * count units that its guard does not: it holds and settles no others. Undefined if there is none.
   */
  inForce(head: Matched<Request> | undefined, { units }: PolicyChoice<Request>): Matched<Request> | undefined {
    const waitedFor = this.#waitedFor ?? policiesIn(this.#matched)
    this.#waitedFor = waitedFor
    for (let now = head; now && !isReported(now); now = now.next) {
      const others = (now.options.limits ?? []).filter(({ unit }) => !units.has(unit))
      const left = without(now, new Set([...this.#passed, ...namesOf(others)]))
      const names = left ? [...policiesIn(left)] : []
      if (!names.some((name) => waitedFor.has(name))) continue
      this.#waitedFor = new Set([...waitedFor, ...names])
      return left
    }
    return undefined
  }

  /** Whether a policy that the request waits for is only reported in these. */
  isReportedIn(head: Matched<Request> | undefined): boolean {
    const reported = head ? reportedIn(head) : []
    return reported.some((name) => this.#waitedFor?.has(name))
  }

  /** The policies that the request has passed, with this outcome of the guard. */
  passedWith({ verdict }: Outcome): Policies {
    if (!this.hasWaited) return new Set([...this.#passed, ...policiesIn(this.#matched)])
    // The last verdict is one of the policies that were in force.
    const { definitions = [] } = (verdict?.[DECISION].request.plan as ReadablePlan | undefined) ?? {}
    return new Set([...this.#passed, ...namesOf(definitions)])
  }
}

/** The policies of a match, without those that come after it. */
function policiesIn({ options }: Matched<never>): Policies {
  return new Set(namesOf(options.limits ?? []))
}

/** The policies that are only reported. */
export function reportedIn(head: Matched<never>): string[] {
  const names: string[] = []
  for (let now = isReported(head) ? head : head.reported; now; now = now.next) names.push(...policiesIn(now))
  return names
}

/** Without names where limits have none: such policies are never taken for one another. */
function namesOf(limits: readonly Pick<Limit, 'policy'>[]): string[] {
  return limits.flatMap(({ policy }) => (policy === undefined ? [] : [nameOf(policy)]))
}

/** The name of a policy, of which a client may get another tier. */
function nameOf(policy: string): string {
  return policy.split('.', 1)[0] as string
}

function isReported({ options }: Matched<never>): boolean {
  return propertyOf(options, 'enforce')?.mode === 'report'
}

/** Matches without some of their policies, by the names of these: equal ones are one object, which has one guard. */
const parts = new WeakMap<Matched<never>, Map<string, Matched<never>>>()

/** A match without the policies of these names. Undefined if none is left. */
export function without<Request>(matched: Matched<Request>, policies: Policies): Matched<Request> | undefined {
  if (policies.size === 0) return matched
  const omitted = [...policiesIn(matched)].filter((name) => policies.has(name))
  if (omitted.length === 0) return matched
  const { options, base } = matched
  const limits = options.limits?.filter(({ policy }) => policy === undefined || !policies.has(nameOf(policy))) ?? []
  if (limits.length === 0) return undefined
  const ofMatch = getOrInsert(parts, matched, () => new Map<string, Matched<Request>>())
  return getOrInsert(ofMatch, omitted.join(), () =>
    Object.freeze({
      options: { ...options, limits },
      base: base && without(base, policies),
      next: undefined,
      reported: undefined,
    }),
  ) as Matched<Request>
}
