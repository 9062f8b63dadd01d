import { byIp, type HttpContext, type KeyFunction, type Limit, type MatchedPolicies, memoryStore } from '@sluice/core'
import { createGuard, LIMITER_WARNINGS, type MaybePromise, stateNamesOf } from '@sluice/core/internal'
import type { Carry, LimitData, PolicyData } from '../document/document.js'
import type { LimitChanges } from '../limit-changes.js'
import { requestTest } from '../match/request-test.js'
import { type Path, type Problem, shown } from '../problems/problem.js'
import { type CostsOfPolicy, checkUnits, costsOfPolicy } from './costs.js'
import type { CountedOf } from './counted-of.js'
import type { DocumentNames } from './document-names.js'
import type { Keys } from './keys.js'
import { type LimitsOf, makeLimits, namesOf } from './limits.js'
import { type OwnOptions, ownOptions } from './own-options.js'
import { resolverOf } from './resolver-of.js'
import { ANY_RESOLVER, type ResolverOf, type Resolvers } from './resolvers.js'
import { makeResponder, RespondersOfPolicy } from './responders.js'
import { tried } from './tried.js'

/** The limits of a policy for some of its clients: of a tier, of an override, or its own. */
export interface Variant {
  readonly policy: CompiledPolicy
  readonly limits: readonly Limit[]
  /** The tier of the variant. */
  readonly tier: string | undefined
  /** The variant that the override changes. Undefined for others. */
  readonly base: Variant | undefined
  /** Its match where it applies alone. `Combinations` stores it here, as no other look-up is as fast. */
  // biome-ignore lint/suspicious/noExplicitAny: a document serves any framework's requests
  alone: MatchedPolicies<any> | undefined
}

/** An override, for people. */
export interface GivenOverride {
  /** Its index in the document, from 0, or its table. */
  readonly index: number | string
  /** When it ends, in ms since 1970. */
  readonly until: number | undefined
}

/** Changed limits for some clients of a policy. */
export interface Override extends GivenOverride {
  /** One of `RANK`: among several overrides for one request, the highest counts. */
  readonly rank: number
  readonly changed: ChangedLimits
}

/** Changed limits. Overrides of one policy with equal changes share them, and their limiter. */
export interface ChangedLimits {
  /** By the tier that they replace; `undefined` for those of a policy without tiers. */
  readonly byTier: ReadonlyMap<string | undefined, readonly Limit[]>
  /** Whether they may admit more than the limits that they replace. */
  readonly mayAdmitMore: boolean
  /** The variant for its policy, or for the first tier of a request. */
  firstBase: Variant | undefined
  firstVariant: Variant | undefined
  /** Variants for other tiers. */
  others: Map<Variant, Variant> | undefined
}

/** The overrides for some clients of a policy. */
export interface OverridesOfPolicy {
  /** The override for an identity that is given by its kind, whatever the request. `value`: as it is counted. */
  findGiven(kind: string, value: string): MaybePromise<Override | undefined>
  /** The override for a request, or for a client whose values are given apart. A promise only where something has to be awaited. */
  // biome-ignore lint/suspicious/noExplicitAny: as above
  find(context: HttpContext<any>, countedOf?: CountedOf): MaybePromise<Override | undefined>
}

/** A policy of a document, ready to decide. */
export interface CompiledPolicy {
  readonly name: string
  readonly data: PolicyData
  /** Why it does not apply to a request, whatever its path. Undefined if it always applies. */
  readonly test: ReturnType<typeof requestTest>
  /** Undefined if it has tiers. */
  readonly base: Variant | undefined
  readonly tiers: ReadonlyMap<string, Variant>
  readonly tierOf: ResolverOf<string> | undefined
  // biome-ignore lint/suspicious/noExplicitAny: a document serves any framework's requests
  readonly key: KeyFunction<any>
  readonly carry: Carry
  /** Its costs by unit. */
  readonly costs: CostsOfPolicy
  /** Its options of a limiter beside its limits. Undefined if it has none: then it shares a limiter with others. */
  readonly own: OwnOptions | undefined
  readonly responders: RespondersOfPolicy
  /** Undefined if it has none. */
  overrides: OverridesOfPolicy | undefined
  /** Takes the ends of its overrides. Undefined if no request waits. */
  changes: LimitChanges | undefined
}

const EVERY_PATH = ['/**']

/** The paths of a policy: every one, where it names none. */
export function pathsOf({ match }: PolicyData): readonly string[] {
  return match?.paths ?? EVERY_PATH
}

/** What the policies of a document share. */
export interface OfDocument {
  readonly keys: Keys
  readonly names: DocumentNames
}

/** Undefined, with problems, where something of it is wrong. */
export function compilePolicy(
  name: string,
  data: PolicyData,
  carry: Carry,
  { keys, names }: OfDocument,
  resolvers: Resolvers | typeof ANY_RESOLVER,
  problems: Problem[],
): CompiledPolicy | undefined {
  const path: Path = ['policies', name]
  const before = problems.length
  checkForm(data, path, problems)
  checkPaths(data, path, problems)
  const tierOf = resolverOf(
    data.tier,
    resolvers === ANY_RESOLVER ? resolvers : resolvers.tiers,
    'tiers',
    [...path, 'tier'],
    problems,
  )
  const key = data.key === undefined ? byAddress : keys.make(data.key, [...path, 'key'], problems)
  if (data.respond !== undefined) {
    const { respond } = data
    tried([...path, 'respond'], problems, () => makeResponder(respond))
  }
  if (!key || problems.length > before) return undefined
  const policyOptions = ownOptions(name, data, resolvers, path, problems)
  const responders = new RespondersOfPolicy()
  // Relaxed counts begin anew with other amounts.
  const carryOfPolicy = data.consistency ? 'reset' : carry
  const costs = costsOfPolicy(data, resolvers, path, problems)
  const terms = { policy: name, key, respond: data.respond, carry: carryOfPolicy, responders, keys, costs }
  const policy = {
    name,
    data,
    test: requestTest(data.match ?? {}),
    tierOf,
    key,
    carry: carryOfPolicy,
    costs,
    own: policyOptions,
    responders,
    tiers: new Map<string, Variant>(),
  }
  const compiled: CompiledPolicy & { base: Variant | undefined } = Object.assign(policy, {
    base: undefined,
    overrides: undefined,
    changes: undefined,
  })
  if (data.limits) {
    const limits = limitsIn(data.limits, names, { ...terms, space: name }, [...path, 'limits'], problems)
    if (limits) compiled.base = { policy: compiled, limits, tier: undefined, base: undefined, alone: undefined }
  }
  for (const [tier, each] of Object.entries(data.tiers ?? {})) {
    const limits = limitsIn(each, names, { ...terms, space: `${name}.${tier}` }, [...path, 'tiers', tier], problems)
    if (limits) policy.tiers.set(tier, { policy: compiled, limits, tier, base: undefined, alone: undefined })
  }
  checkLimits(compiled, path, problems)
  return problems.length > before ? undefined : compiled
}

/** A list of limits of a policy. Undefined, with problems, where one of them is wrong. */
function limitsIn(
  list: readonly LimitData[],
  names: DocumentNames,
  of: LimitsOf,
  path: Path,
  problems: Problem[],
): readonly Limit[] | undefined {
  const limits = makeLimits(list, namesOf(list, of.policy, names, path, problems), of, path, problems)
  for (const [i, { unit }] of limits?.entries() ?? []) names.checkUnit(unit, [...path, i, 'unit'], problems)
  return limits
}

/** Reports problems of a policy that depend on its limits. */
function checkLimits(compiled: CompiledPolicy, path: Path, problems: Problem[]): void {
  const { data, costs } = compiled
  const limits = variantsOf(compiled).flatMap((variant) => variant.limits)
  if (limits.length > 0) checkUnits(costs, limits, path, problems)
  if (data.count && variantsOf(compiled).some(countsResponses)) {
    const message = 'expected none beside limits of response-bytes: give them a policy of their own'
    problems.push({ path: [...path, 'count'], message, isField: true })
  } else if (compiled.own) checkOwn(compiled, path, problems)
}

/** Those that it has without overrides. */
export function variantsOf({ base, tiers }: Pick<CompiledPolicy, 'base' | 'tiers'>): Variant[] {
  return base ? [base] : [...tiers.values()]
}

function countsResponses({ limits }: Variant): boolean {
  return limits.some(({ unit }) => unit === 'response-bytes')
}

/** Options of code, which may be needed: code is checked when it uses the document. */
const OF_CODE = {
  body: { max: 1 },
  priority: () => 0,
  warnings: Object.fromEntries(LIMITER_WARNINGS.map((code) => [code, false])),
}

/** Checks options that depend on the limits: a ban and lists depend on the kinds that they count. */
function checkOwn({ name, key, own, ...variants }: CompiledPolicy, path: Path, problems: Problem[]): void {
  for (const { limits } of variantsOf(variants)) {
    const cost = own?.cost ?? (() => 0)
    tried(path, problems, () => createGuard({ ...OF_CODE, store: memoryStore(), ...own, name, key, limits, cost }))
  }
}

/** Whether limits can be counted as the policy says depends on their algorithms and windows. */
export function checkConsistency(
  { consistency }: PolicyData,
  limits: readonly Limit[],
  path: Path,
  problems: Problem[],
): void {
  if (consistency) tried(path, problems, () => stateNamesOf(limits, consistency))
}

const byAddress = byIp()

function checkForm(data: PolicyData, path: Path, problems: Problem[]): void {
  const { limits, tier, tiers, enforce = {} } = data
  const fail = (fields: Path, message: string) => problems.push({ path: [...path, ...fields], message, isField: true })
  if (limits && tiers) fail(['tiers'], 'expected none beside limits')
  if (!limits && !tiers) fail([], 'expected limits, or tiers; both are missing')
  if (tiers && tier === undefined) fail(['tiers'], 'expected tier beside it, the name of a resolver')
  if (tier !== undefined && !tiers) fail(['tier'], 'expected tiers beside it')
  if (enforce.mode === 'report' && enforce.percent !== undefined)
    fail(['enforce', 'percent'], 'expected none beside mode: report')
}

function checkPaths({ match }: PolicyData, path: Path, problems: Problem[]): void {
  for (const [i, pattern] of (match?.paths ?? []).entries()) {
    const fault = patternFault(pattern)
    if (fault) problems.push({ path: [...path, 'match', 'paths', i], message: `${fault}, got ${shown(pattern)}` })
  }
}

/** Most segments of a pattern. */
const MAX_SEGMENTS = 32

/** The fault of a pattern. Undefined for a valid one. */
function patternFault(pattern: string): string | undefined {
  const segments = pattern.split('/').slice(1)
  if (segments.length > MAX_SEGMENTS) return `expected at most ${MAX_SEGMENTS} segments`
  const rest = segments.indexOf('**')
  if (rest >= 0 && rest !== segments.length - 1) return 'expected ** as the last segment alone'
  for (const segment of segments) {
    if (segment === '*' || segment === '**' || /^:[A-Za-z0-9_]{1,64}$/.test(segment)) continue
    if (segment.includes('*') || segment.startsWith(':')) return `expected *, ** or :name as a whole segment`
    if (segment.includes('?') || segment.includes('#')) return 'expected a path without a query'
  }
  return undefined
}
