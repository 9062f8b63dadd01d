import { type List, list, type MatchedPolicies, storeList } from '@sluice/core'
import { isSecretKind } from '@sluice/core/internal'
import type { BanData, ListsData, PolicyData } from '../document/document.js'
import type { Path, Problem } from '../problems/problem.js'
import { resolvedCost } from './costs.js'
import type { ANY_RESOLVER, Resolvers } from './resolvers.js'
import { makeResponder } from './responders.js'
import { tried } from './tried.js'

// biome-ignore lint/suspicious/noExplicitAny: a document serves any framework's requests
export type OwnOptions = MatchedPolicies<any>['options']

/** The options of a policy that concern a whole limiter. Undefined if it has none. */
export function ownOptions(
  policy: string,
  data: PolicyData,
  resolvers: Resolvers | typeof ANY_RESOLVER,
  path: Path,
  problems: Problem[],
): OwnOptions | undefined {
  const { anonymous, count, enforce: { percent = 100 } = {}, consistency, sharedTurns } = data
  const cost = costOf(data, resolvers, path, problems)
  const allow = listsOf(data.allow, data.allowLists, [...path, 'allow'], problems)
  const deny = listsOf(data.deny, data.denyLists, [...path, 'deny'], problems)
  const ban = data.ban && banOf(policy, data.ban, [...path, 'ban'], problems)
  const options: OwnOptions = {
    ...(anonymous && anonymous !== 'error' && { anonymous }),
    ...(count && { count }),
    ...(percent < 100 && { enforce: { percent } }),
    ...(cost !== undefined && cost !== 1 && { cost }),
    ...(consistency && { consistency }),
    ...(sharedTurns && { sharedTurns: sharedTurns as NonNullable<OwnOptions['sharedTurns']> }),
    ...(allow && { allow }),
    ...(deny && { deny }),
    ...(ban && { ban }),
  }
  return Object.keys(options).length > 0 ? Object.freeze(options) : undefined
}

function costOf(
  { cost }: PolicyData,
  resolvers: Resolvers | typeof ANY_RESOLVER,
  path: Path,
  problems: Problem[],
): OwnOptions['cost'] {
  // Costs by unit are those of its limits.
  return typeof cost === 'object' ? undefined : resolvedCost(cost, resolvers, [...path, 'cost'], problems)
}

/** Each policy has its own bans, though all are decided under the name of one limiter. */
function banOf(policy: string, { respond, ...ban }: BanData, path: Path, problems: Problem[]): OwnOptions['ban'] {
  const responder =
    respond === undefined ? undefined : tried([...path, 'respond'], problems, () => makeResponder(respond))
  return { ...ban, policy, ...(responder && { respond: responder }) } as unknown as OwnOptions['ban']
}

function listsOf(
  data: ListsData | undefined,
  names: readonly string[] = [],
  path: Path,
  problems: Problem[],
): List | List[] | undefined {
  const list = listOf(data, path, problems)
  return names.length === 0 ? list : [...(list ? [list] : []), ...names.map(storeList)]
}

function listOf(data: ListsData | undefined, path: Path, problems: Problem[]): List | undefined {
  if (!data) return undefined
  for (const kind of Object.keys(data)) {
    if (!isSecretKind(kind)) continue
    problems.push({ path: [...path, kind], message: 'expected no secrets in lists: give them an override' })
    return undefined
  }
  return tried(path, problems, () => list(data))
}
