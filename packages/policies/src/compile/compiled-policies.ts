import {
  type GivenClient,
  type HttpContext,
  type IdentityByKind,
  type Limit,
  type MatchedPolicies,
  SluiceError,
} from '@sluice/core'
import {
  ignorePromises,
  type KnownPolicy,
  type KnownRequest,
  MAX_LIMITS,
  PathTree,
  propertyOf,
} from '@sluice/core/internal'
import { type ShownDocument, shownDocument } from '../document/shown-document.js'
import { type Problem, shown } from '../problems/problem.js'
import { Combinations } from './combinations.js'
import { contextFor, type Explanation, type RequestToExplain } from './explain.js'
import { type LimitsForIdentity, limitsForIdentity, type RequestOfIdentity } from './for-identity.js'
import { variantsForKnown } from './for-known.js'
import { variantForClient } from './given-client.js'
import type { Keys } from './keys.js'
import { type Overrides, variantBy } from './overrides.js'
import { type ClientOfOverride, type EffectOfOverride, effectOf } from './planned-override.js'
import { type CompiledPolicy, pathsOf, type Variant, variantsOf } from './policy.js'
import type { CheckOverride } from './table-overrides.js'

// biome-ignore lint/suspicious/noExplicitAny: a document serves any framework's requests
type Context = HttpContext<any>
// biome-ignore lint/suspicious/noExplicitAny: as above
type Matched = MatchedPolicies<any>

/** What checks an override that is given apart from the document. */
export interface ChecksOfOverrides {
  /** The overrides of the document. */
  readonly own: ReadonlyMap<CompiledPolicy, Overrides>
  readonly keys: Keys
  readonly check: CheckOverride | undefined
}

const MAX_SHOWN = 20

/** The policies of one version of a document. */
export class CompiledPolicies {
  readonly byName: ReadonlyMap<string, Matched>
  /** The number of policies, limits and overrides: a document that was cut off has fewer. */
  readonly size: number
  readonly #policies: readonly CompiledPolicy[]
  readonly #checks: ChecksOfOverrides
  readonly #variants: ReadonlyMap<string, Variant>
  readonly #paths = new PathTree()
  #shown: ShownDocument | undefined
  readonly #combinations: Combinations = new Combinations((variants) => together(variants, this.#combinations))

  constructor(policies: readonly CompiledPolicy[], overrides: number, checks: ChecksOfOverrides) {
    this.#policies = policies
    this.#checks = checks
    this.size = policies.reduce(
      (sum, each) => sum + 1 + variantsOf(each).flatMap(({ limits }) => limits).length,
      overrides,
    )
    policies.forEach(({ data }, i) => {
      for (const path of pathsOf(data)) this.#paths.add(path, i)
    })
    this.#variants = new Map(policies.flatMap(variantsOf).map((each) => [nameOf(each), each]))
    this.byName = new Map([...this.#variants].map(([name, each]) => [name, this.#combinations.of([each])]))
  }

  /** The policies for people. */
  get shown(): ShownDocument {
    this.#shown ??= shownDocument(this.#policies)
    return this.#shown
  }

  /** How each policy applies to a request, in the order of the document. */
  async explain(request: RequestToExplain): Promise<Explanation[]> {
    const context = contextFor(request)
    const found = this.#paths.find(context.path)
    return Promise.all(this.#policies.map((policy, i) => explanationOf(policy, found.includes(i), context)))
  }

  /** The limits of each policy for one identity, by tier, in the order of the document. */
  async forIdentity(identity: IdentityByKind, request: RequestOfIdentity): Promise<LimitsForIdentity[]> {
    const [path, method] = [propertyOf(request, 'path'), propertyOf(request, 'method')]
    const tier = propertyOf(request, 'tier')
    const context = path === undefined ? undefined : contextFor({ path, ...(method !== undefined && { method }) })
    const found = context && this.#paths.find(context.path)
    const all = this.#policies.filter((policy, i) => {
      if (!context || !found) return true
      const why = found.includes(i) ? policy.test?.(context) : 'path'
      // Hosts and headers are unknown here.
      return why === undefined || (why !== 'path' && why !== 'method')
    })
    return (await Promise.all(all.map((policy) => limitsForIdentity(policy, identity, tier)))).flat()
  }

  /** The policies, by tier, that may apply to a request that is known in part. */
  async forKnown(known: KnownRequest): Promise<KnownPolicy[]> {
    const { path, method } = known
    const context = path === undefined ? undefined : contextFor({ path, method })
    const found = context && this.#paths.find(context.path)
    const all = this.#policies.filter((_, i) => !found || found.includes(i))
    const ofAll = await Promise.all(all.map((policy) => variantsForKnown(policy, known, context)))
    return ofAll.flat().map(({ variant, ...rest }) => ({ ...rest, matched: this.#combinations.of([variant]) }))
  }

  /** The policy of this name for a client that is given by hand, with its override. Undefined if there is none of the name. */
  forClient(name: string, client: GivenClient): Matched | undefined | Promise<Matched | undefined> {
    const base = this.#variants.get(name)
    const variant = base && variantForClient(base, client)
    if (variant instanceof Promise) return variant.then((known) => this.#combinations.of([known]))
    return variant && this.#combinations.of([variant])
  }

  /** The effect of an override beside the document. Undefined, with problems, where it is not valid. */
  effectOf(
    name: unknown,
    client: ClientOfOverride,
    limits: unknown,
    problems: Problem[],
  ): EffectOfOverride | undefined {
    const policy = this.#policies.find((each) => each.name === name)
    const { own, keys, check } = this.#checks
    if (policy) return effectOf(policy, client, limits, own.get(policy), keys, check, problems)
    const known = this.#policies.slice(0, MAX_SHOWN).map((each) => shown(each.name))
    problems.push({ path: ['policy'], message: `expected ${known.join(' or ')}, got ${shown(name)}` })
    return undefined
  }

  /** The policies that apply to a request. A promise only where a resolver returns one. */
  match(context: Context): Matched | undefined | Promise<Matched | undefined> {
    const found = this.#paths.find(context.path)
    if (found.length === 1) return this.#matchOne(this.#policies[found[0] as number] as CompiledPolicy, context)
    const variants: (Variant | Promise<Variant>)[] = []
    let isLate = false
    for (const index of found) {
      const policy = this.#policies[index] as CompiledPolicy
      if (policy.test?.(context)) continue
      try {
        const variant = variantFor(policy, context)
        isLate ||= variant instanceof Promise
        variants.push(variant)
      } catch (error) {
        ignorePromises(variants)
        throw error
      }
    }
    if (isLate) return this.#matchLater(variants)
    return variants.length === 0 ? undefined : this.#combinations.of(variants as Variant[])
  }

  #matchOne(policy: CompiledPolicy, context: Context): Matched | undefined | Promise<Matched | undefined> {
    if (policy.test?.(context)) return undefined
    const variant = variantFor(policy, context)
    return variant instanceof Promise ? this.#matchLater([variant]) : this.#combinations.ofOne(variant)
  }

  /** A separate method: for a closure in `match`, V8 would allocate in each call. */
  async #matchLater(pending: readonly (Variant | Promise<Variant>)[]): Promise<Matched | undefined> {
    return this.#combinations.of(await Promise.all(pending))
  }
}

/** Its name in methods of a limiter. */
function nameOf({ policy, tier }: Variant): string {
  return tier === undefined ? policy.name : `${policy.name}.${tier}`
}

async function explanationOf(policy: CompiledPolicy, hasPath: boolean, context: Context): Promise<Explanation> {
  const { name } = policy
  const none = { policy: name, applies: false, tier: undefined, override: undefined, limits: [] }
  const why = hasPath ? policy.test?.(context) : 'path'
  if (why) return { ...none, why }
  try {
    const { tier, base, limits } = await variantFor(policy, context)
    const override = base && (await policy.overrides?.find(context))?.index
    const shown = limits.map(({ name = '', algorithm, limit, window: length, calendar, unit }) => {
      const window = calendar?.window ?? length
      const countsRequests = unit === 'requests' || unit === 'concurrent-requests'
      return { name, algorithm, limit, window, ...(!countsRequests && { unit }) }
    })
    return { policy: name, applies: true, why: undefined, tier, override, limits: shown }
  } catch (error) {
    return { ...none, why: (error as Error).message }
  }
}

function variantFor(policy: CompiledPolicy, context: Context): Variant | Promise<Variant> {
  const variant = policy.base ?? tierOf(policy, context)
  const { overrides } = policy
  if (!overrides) return variant
  return variant instanceof Promise
    ? variantLater(variant, overrides, context)
    : variantBy(overrides.find(context), variant)
}

/** A separate function for the same reason as `#matchLater`. */
async function variantLater(
  pending: Promise<Variant>,
  overrides: NonNullable<CompiledPolicy['overrides']>,
  context: Context,
): Promise<Variant> {
  const base = await pending
  return variantBy(overrides.find(context), base)
}

function tierOf(policy: CompiledPolicy, context: Context): Variant | Promise<Variant> {
  const named = policy.tierOf?.(context.request, context)
  if (typeof named === 'string') return tierNamed(policy, named)
  return Promise.resolve(named).then((late) => tierNamed(policy, late))
}

function tierNamed({ name, tiers }: CompiledPolicy, tier: unknown): Variant {
  const variant = tiers.get(tier as string)
  if (variant) return variant
  const known = [...tiers.keys()].map(shown).join(' or ')
  throw new SluiceError('INVALID_POLICY', `policy ${shown(name)}: tier: expected ${known}, got ${shown(tier)}`)
}

/**
 * All limits as those of one limiter, or of several one by one where they are too many for a decision. Policies with options of
 * their own come after them, one by one. Policies in report mode are apart.
 */
function together(variants: readonly Variant[], combinations: Combinations): Matched {
  const enforced = variants.filter(({ policy }) => !isReported(policy))
  const groups = [
    ...decidedTogether(enforced.filter(({ policy }) => !policy.own)),
    ...enforced.filter(({ policy }) => policy.own).map((each) => [each]),
  ]
  const reported = reportedOf(variants.filter(({ policy }) => isReported(policy)))
  let matched: Matched | undefined
  for (const group of groups.reverse()) {
    const options = { ...group[0]?.policy.own, limits: limitsOf(group) }
    matched = Object.freeze({ options, base: baseOf(group, combinations), next: matched, reported: undefined })
  }
  if (!matched) return reported as Matched
  return reported ? Object.freeze({ ...matched, reported }) : matched
}

/** Policies in groups of as many limits as one decision takes. */
function decidedTogether(variants: readonly Variant[]): Variant[][] {
  const groups: Variant[][] = []
  let size = MAX_LIMITS
  for (const variant of variants) {
    size += variant.limits.length
    if (size > MAX_LIMITS) {
      groups.push([])
      size = variant.limits.length
    }
    groups.at(-1)?.push(variant)
  }
  return groups
}

/** The same policies without overrides; undefined if they have none. */
function baseOf(group: readonly Variant[], combinations: Combinations): Matched | undefined {
  return group.some(({ base }) => base) ? combinations.of(group.map((each) => each.base ?? each)) : undefined
}

function isReported({ data }: CompiledPolicy): boolean {
  return data.enforce?.mode === 'report'
}

/** Each by itself, as nothing has to be undone. */
function reportedOf(variants: readonly Variant[]): Matched | undefined {
  let matched: Matched | undefined
  for (const { policy, limits } of [...variants].reverse()) {
    const options = { ...policy.own, limits, enforce: { mode: 'report' } as const }
    matched = Object.freeze({ options, base: undefined, next: matched, reported: undefined })
  }
  return matched
}

function limitsOf(variants: readonly Variant[]): readonly Limit[] {
  return variants.flatMap(({ limits }) => limits)
}
