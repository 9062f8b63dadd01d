import type { Limit } from '@sluice/core'
import { countedHash, getOrInsert, ipRange, isSecretKind, RANGE_FORMS } from '@sluice/core/internal'
import type { LimitData, OverrideData } from '../document/document.js'
import { type Path, type Problem, shown } from '../problems/problem.js'
import { checkLimit, fieldsOfLimit } from '../schema/check.js'
import type { Keys } from './keys.js'
import { makeLimits } from './limits.js'
import { Overrides, RANK } from './overrides.js'
import {
  type ChangedLimits,
  type CompiledPolicy,
  checkConsistency,
  type Override,
  type Variant,
  variantsOf,
} from './policy.js'
import { uncountedKind } from './uncounted-kind.js'

/** Makes the overrides of a document, one by one, by policy. */
export function* makeOverrides(
  data: readonly OverrideData[],
  policies: ReadonlyMap<string, CompiledPolicy>,
  keys: Keys,
  problems: Problem[],
  advice: Problem[],
): Generator<void, ReadonlyMap<CompiledPolicy, Overrides>> {
  const byPolicy = new Map<CompiledPolicy, Overrides>()
  /** One object for equal changes of one policy: most clients with an override share its limits with many others. */
  const changes = new Map<CompiledPolicy, Map<string, ChangedLimits>>()
  const advised = new Set<string>()
  for (const [index, each] of data.entries()) {
    yield
    const path: Path = ['overrides', index]
    const policy = policies.get(each.policy)
    if (!policy) {
      const known = [...policies.keys()].slice(0, 20).map(shown).join(' or ')
      problems.push({ path: [...path, 'policy'], message: `expected ${known}, got ${shown(each.policy)}` })
      continue
    }
    const ofPolicy = getOrInsert(changes, policy, () => new Map<string, ChangedLimits>())
    const changed = getOrInsert(ofPolicy, JSON.stringify(each.limits), () =>
      changedLimits(each, policy, keys, [...path, 'limits'], problems),
    )
    const until = timeOf(each.until, [...path, 'until'], problems)
    const overrides = getOrInsert(byPolicy, policy, () => new Overrides())
    const [kind = 'ip'] = Object.keys(each.key ?? each.prefix ?? {})
    if (!advised.has(`${each.policy} ${kind}`)) {
      advised.add(`${each.policy} ${kind}`)
      const message = uncountedKind(policy, kind)
      if (message) advice.push({ path: [...path, each.key ? 'key' : 'prefix'], message })
    }
    add(overrides, each, { index, changed, until }, keys, path, problems)
  }
  return byPolicy
}

const TWICE = 'expected one override for each client and policy, got it twice'

function add(
  overrides: Overrides,
  { key, prefix, range }: OverrideData,
  own: Omit<Override, 'rank'>,
  keys: Keys,
  path: Path,
  problems: Problem[],
): void {
  const fail = (field: string, message: string) => problems.push({ path: [...path, field], message })
  const forms = [key, prefix, range].filter((each) => each !== undefined).length
  if (forms !== 1) {
    problems.push({ path, message: `expected one of key, prefix and range, got ${forms === 0 ? 'none' : forms}` })
    return
  }
  if (range !== undefined) {
    addRange(overrides, range, own, (message) => fail('range', message))
    return
  }
  const field = key ? 'key' : 'prefix'
  const [kind, value] = Object.entries(key ?? prefix ?? {})[0] as [string, string | number]
  // An address is the smallest range.
  if (key && kind === 'ip') {
    addRange(overrides, String(value), own, (message) => fail('key', message))
    return
  }
  const keyFunction = keys.make(kind, [...path, field, kind], problems)
  if (!keyFunction) return
  const ofKind = overrides.ofKind(kind, keyFunction)
  const override = ranked(own, key ? RANK.exact : RANK.prefix)
  if (isSecretKind(kind)) {
    const counted = countedHash(String(value))
    if (!key || counted === undefined) {
      const remedy = 'as `printf %s VALUE | sha256sum` prints it'
      problems.push({ path: [...path, field, kind], message: `expected sha256: and 64 hexadecimal digits, ${remedy}` })
      return
    }

    if (ofKind.exact.has(counted)) fail('key', TWICE)
    ofKind.exact.set(counted, override)
  } else if (key) {
    if (ofKind.exact.has(String(value))) fail('key', TWICE)
    ofKind.exact.set(String(value), override)
  } else if (!ofKind.prefixes.add(String(value), override)) fail('prefix', TWICE)
}

function addRange(
  overrides: Overrides,
  text: string,
  own: Omit<Override, 'rank'>,
  fail: (message: string) => void,
): void {
  const range = ipRange(text)
  if (!range) return fail(`expected ${RANGE_FORMS}, got ${shown(text)}`)
  const isAddress = range.first.every((word, i) => word === range.last[i])
  if (!overrides.addRange(range, ranked(own, isAddress ? RANK.address : RANK.range))) fail(TWICE)
}

/** Not by spreading: V8 would give every such object a hidden class of its own, and requests would take twice as long. */
function ranked({ index, changed, until }: Omit<Override, 'rank'>, rank: number): Override {
  return { index, rank, changed, until }
}

function timeOf(text: string | undefined, path: Path, problems: Problem[]): number | undefined {
  if (text === undefined) return undefined
  const time = Date.parse(text)
  const [year, month, day] = text.split(/[-T]/, 3).map(Number) as [number, number, number]
  // `Date` turns the 30th of February into the 2nd of March.
  const isDay = new Date(Date.UTC(year, month - 1, day)).getUTCDate() === day
  if (Number.isNaN(time) || !isDay)
    problems.push({ path, message: `expected a time that there is, got ${shown(text)}` })
  return time
}

/** The changed limits of a policy, or of each of its tiers that has limits of these names. */
export function changedLimits(
  { limits: changes }: Pick<OverrideData, 'limits'>,
  policy: CompiledPolicy,
  keys: Keys,
  path: Path,
  problems: Problem[],
): ChangedLimits {
  const { data } = policy
  const lists: ListOfTier[] = data.limits ? [[undefined, data.limits]] : Object.entries(data.tiers ?? {})
  const byTier = new Map<string | undefined, readonly Limit[]>()
  const found = new Set<number>()
  const repeated = new Set<number>()
  let admitsMore = false
  for (const [tier, list] of lists) {
    const { merged, sources } = mergedWith(list, changes, found, repeated)
    if (sources.size === 0) continue
    const limits = makeMerged(policy, tier, merged, sources, keys, path, problems)
    if (!limits) continue
    for (const [i, c] of sources) checkUnit(limits[i] as Limit, policy, [...path, c, 'unit'], problems)
    byTier.set(tier, limits)
    const base = (tier === undefined ? policy.base : policy.tiers.get(tier)) as Variant
    const madeOf = (datas: readonly LimitData[], of: readonly Limit[], i: number) =>
      ({ data: datas[i] as LimitData, limit: of[i] as Limit }) as const
    admitsMore ||= [...sources].some(([i, c]) =>
      mayAdmitMore(changes[c] as LimitData, madeOf(list, base.limits, i), madeOf(merged, limits, i)),
    )
  }
  for (const c of repeated) {
    problems.push({ path: [...path, c], message: 'expected one change of each limit of the policy, got a second one' })
  }
  for (const [c, { name }] of changes.entries()) if (!found.has(c)) problems.push(notFound(name, c, lists, path))
  return { byTier, mayAdmitMore: admitsMore, firstBase: undefined, firstVariant: undefined, others: undefined }
}

/** Its limiter reads and measures what the limits of its policy count. */
function checkUnit({ unit }: Limit, policy: CompiledPolicy, path: Path, problems: Problem[]): void {
  if (unit === 'requests' || unit === 'concurrent-requests') return
  const counted = new Set(variantsOf(policy).flatMap(({ limits }) => limits.map((limit) => limit.unit)))
  if (counted.has(unit)) return
  const known = [...new Set(['requests', ...counted])].map(shown).join(' or ')
  problems.push({ path, message: `expected a unit that its policy counts, ${known}, got ${shown(unit)}` })
}

type ListOfTier = readonly [tier: string | undefined, limits: readonly LimitData[]]

/**
 * A list with changes, and the change of each limit that has one. Notes changes that match a limit, and those whose limit has
 * changed already.
 */
function mergedWith(
  list: readonly LimitData[],
  changes: readonly LimitData[],
  found: Set<number>,
  repeated: Set<number>,
): { merged: readonly LimitData[]; sources: ReadonlyMap<number, number> } {
  const merged = [...list]
  const sources = new Map<number, number>()
  for (const [c, change] of changes.entries()) {
    const i = placeOf(change, list)
    if (i === undefined) continue
    found.add(c)
    // The last one alone would count.
    if (sources.has(i)) repeated.add(c)
    merged[i] = changed(list[i] as LimitData, change)
    sources.set(i, c)
  }
  return { merged, sources }
}

/** The limits of a list with changes. Undefined, with problems, where one is wrong. */
function makeMerged(
  policy: CompiledPolicy,
  tier: string | undefined,
  merged: readonly LimitData[],
  sources: ReadonlyMap<number, number>,
  keys: Keys,
  path: Path,
  problems: Problem[],
): readonly Limit[] | undefined {
  const { name, data, key, carry, costs, responders } = policy
  const before = problems.length
  for (const [i, c] of sources) checkLimit(merged[i], [...path, c], problems)
  if (problems.length > before) return undefined
  const found: Problem[] = []
  const space = tier === undefined ? name : `${name}.${tier}`
  const terms = { policy: name, space, key, respond: data.respond, carry, responders, keys, costs }
  // A changed window changes no name.
  const base = (tier === undefined ? policy.base : policy.tiers.get(tier)) as Variant
  const names = base.limits.map((limit) => limit.name as string)
  const limits = makeLimits(merged, names, terms, [], found)
  const apart: Problem[] = []
  if (limits) checkConsistency(data, limits, [], apart)
  // The policy determines the way of counting, so the changes are at fault.
  for (const { path: fields, message } of apart) problems.push({ path, message: `${fields.join(': ')}: ${message}` })
  // The change is to blame for each problem.
  for (const { path: place, ...problem } of found) {
    const [i, ...rest] = place
    problems.push({ ...problem, path: [...path, sources.get(i as number) ?? 0, ...rest] })
  }
  return limits
}

/** No limit has the name of the change, or the change has none. */
function notFound(given: string | undefined, c: number, lists: readonly ListOfTier[], path: Path): Problem {
  const names = [...new Set(lists.flatMap(([, list]) => list.map(({ name }) => name)))].filter(Boolean).map(shown)
  const expected = names.length > 0 ? `the name of a limit, ${names.join(' or ')}` : 'no name, as the limits have none'
  const got = given === undefined ? 'none, and the policy has several limits' : shown(given)
  return {
    path: given === undefined ? [...path, c] : [...path, c, 'name'],
    message: `expected ${expected}; got ${got}`,
  }
}

function placeOf({ name }: LimitData, list: readonly LimitData[]): number | undefined {
  if (name === undefined) return list.length === 1 ? 0 : undefined
  const i = list.findIndex((limit) => limit.name === name)
  return i < 0 ? undefined : i
}

/** Names of one field: a document may have either. */
const SAME = [
  ['limit', 'refill', 'leak'],
  ['window', 'every'],
]

/** The limit with a change. A change of the algorithm drops options that the new one does not have. */
function changed(limit: LimitData, change: LimitData): LimitData {
  const { algorithm = limit.algorithm ?? 'slidingLog' } = change
  const known = fieldsOfLimit(algorithm)
  const isReplaced = (field: string) =>
    SAME.some((names) => names.includes(field) && names.some((name) => name in change))
  const kept = Object.entries(limit).filter(([field]) => known.includes(field) && !isReplaced(field))
  return { ...Object.fromEntries(kept), ...change, ...(algorithm !== 'slidingLog' && { algorithm }) }
}

/** The fields whose smaller values admit less. A different value of any other field may admit more. */
const AMOUNTS = ['name', 'limit', 'refill', 'leak', 'capacity', 'burst', 'window', 'every']

/** A limit, and the data that it was made of. */
interface MadeLimit {
  readonly data: LimitData
  readonly limit: Limit
}

/** Whether a limit that overrides another one may admit more than that: unless each of its amounts is as small, it may. */
function mayAdmitMore(change: LimitData, before: MadeLimit, after: MadeLimit): boolean {
  const isOther = ([field, value]: [string, unknown]) => !AMOUNTS.includes(field) && value !== before.data[field]
  if (Object.entries(change).some(isOther)) return true
  const isSlower = Number(after.limit.limit) <= Number(before.limit.limit)
  const isAsLong = after.limit.window === before.limit.window || after.limit.window >= before.limit.window
  return !(isSlower && isAsLong && atOnce(after) <= atOnce(before))
}

/** Units that are admitted in a burst. */
function atOnce({ data, limit }: MadeLimit): number {
  return Number(data.burst ?? data.capacity ?? limit.limit)
}
