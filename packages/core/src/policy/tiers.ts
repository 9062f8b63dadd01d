import type { HttpContext } from '../request/context.js'
import type { QuotaUnit } from '../store/store.js'
import { invalidPolicy, neverBeside, neverWithout, show } from '../util/errors.js'
import { isRecord } from '../util/is-record.js'
import type { Parts } from '../util/parts.js'
import { headerName } from '../util/validate.js'
import { whenKnown } from '../util/when-known.js'
import type { Limit } from './limits/limit.js'
import type { TierOf } from './plan.js'
import { type BasicPolicyOptions, Policy, type PolicyChoice } from './policy.js'
import type { PolicyFeature } from './policy-feature.js'
import { unitsOf } from './units.js'

/**
 * A policy per tier under one name. The tiers of a policy share its blocks and nothing else: a client that
 * moves to another tier starts afresh there, even if its limits are equal. Only a limit that is in several tiers as one and the
 * same object is one limit over all of them.
 */
class Tiers<Subject> implements PolicyChoice<Subject> {
  readonly name: string
  readonly limits: readonly Limit<Subject>[]
  readonly all: readonly Policy<Subject>[]
  readonly units: ReadonlySet<QuotaUnit>
  readonly parts: Parts
  readonly #byName: ReadonlyMap<string, Policy<Subject>>
  readonly #tier: NonNullable<BasicPolicyOptions<Subject>['tier']>

  constructor(options: BasicPolicyOptions<Subject>, features: readonly PolicyFeature[]) {
    const { tiers, tier, limit, window, limits, ...rest } = options
    const where = `policy ${show(options.name ?? 'default')}`
    if (tiers === undefined) neverWithout(where, 'tier', 'tiers', tier)
    if (limit !== undefined || window !== undefined || limits !== undefined) {
      neverBeside(where, 'tiers', 'limit, window and limits', tiers)
    }
    if (!isRecord(tiers) || Object.keys(tiers).length === 0) {
      invalidPolicy(where, 'tiers', 'an object of limits by tier, such as { free: [perMinute(20)] }', tiers)
    }
    if (typeof tier !== 'function') invalidPolicy(where, 'tier', 'a function that names the tier', tier)
    this.#tier = tier
    checkTiersOf(where, options.priority, tiers)
    const shared = sharedLimits(Object.values(tiers))
    const known: TierOf['known'] = new Map()
    this.#byName = new Map(
      Object.entries(tiers).map(([name, limits]) => {
        headerName(`${where}: tiers`, 'name', name)
        return [name, new Policy<Subject>({ ...rest, limits }, features, { name, shared, known })]
      }),
    )
    this.all = [...this.#byName.values()]
    this.name = (this.all[0] as Policy<Subject>).name
    // Features have the same options in each.
    this.parts = (this.all[0] as Policy<Subject>).parts
    this.limits = Object.freeze([...new Set(this.all.flatMap(({ limits }) => limits))])
    this.units = unitsOf(where, this.limits)
  }

  /** Policies of options stay. */
  inPlaceOf(): undefined {
    return undefined
  }

  get where(): string {
    return `policy "${this.name}"`
  }

  /** @throws SluiceError `INVALID_POLICY` for a name that is none of the tiers' */
  of(subject: Subject, context: HttpContext<Subject>, named?: string): Policy<Subject> | Promise<Policy<Subject>> {
    return whenKnown(named ?? this.#tier(subject, context), (name) => this.#named(name))
  }

  #named(name: unknown): Policy<Subject> {
    const policy = this.#byName.get(name as string)
    if (policy) return policy
    const known = [...this.#byName.keys()].map(show).join(' or ')
    return invalidPolicy(this.where, 'tier', known, name)
  }
}

/** A misspelt tier among the priorities would leave the intended tier at priority 0. */
function checkTiersOf(where: string, priority: unknown, tiers: object): void {
  if (typeof priority !== 'object' || priority === null) return
  for (const name of Object.keys(priority)) {
    if (!Object.hasOwn(tiers, name))
      invalidPolicy(where, 'priority', `priorities of the tiers ${Object.keys(tiers).map(show).join(', ')}`, name)
  }
}

/** One policy, or one by tier. */
export function choosePolicy<Subject>(
  options: BasicPolicyOptions<Subject>,
  features: readonly PolicyFeature[],
): PolicyChoice<Subject> {
  const isOne = options.tiers === undefined && options.tier === undefined
  return isOne ? new Policy(options, features) : new Tiers(options, features)
}

/** Limits that are in more than one tier, numbered. */
function sharedLimits(tiers: readonly (readonly Limit[])[]): ReadonlyMap<Limit, number> {
  const seen = new Set<Limit>()
  const shared = new Map<Limit, number>()
  for (const limits of tiers) {
    if (!Array.isArray(limits)) continue
    for (const limit of new Set<Limit>(limits)) {
      if (seen.has(limit) && !shared.has(limit)) shared.set(limit, shared.size + 1)
      seen.add(limit)
    }
  }
  return shared
}
