import {
  concurrency,
  fixedWindow,
  gcra,
  type KeyFunction,
  type Limit,
  leakyBucket,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '@sluice/core'
import { hasPermits } from '@sluice/core/internal'
import type { Carry, LimitData } from '../document/document.js'
import { type Path, type Problem, shown } from '../problems/problem.js'
import type { CostsOfPolicy } from './costs.js'
import type { DocumentNames } from './document-names.js'
import type { Keys } from './keys.js'
import type { RespondersOfPolicy } from './responders.js'
import { tried } from './tried.js'

// biome-ignore lint/suspicious/noExplicitAny: options are checked by the schema, and by each of these
const CONSTRUCTORS: Readonly<Record<string, (options: any) => Limit>> = {
  slidingLog,
  fixedWindow,
  slidingWindow,
  gcra,
  tokenBucket,
  leakyBucket,
  concurrency,
}

/** Properties that the limits of one list share. */
export interface LimitsOf {
  readonly policy: string
  /** A unique name: the policy's, with that of its tier. */
  readonly space: string
  // biome-ignore lint/suspicious/noExplicitAny: a document serves any framework's requests
  readonly key: KeyFunction<any>
  readonly respond: LimitData['respond']
  /** Whether used units still count when amounts change. */
  readonly carry: Carry
  readonly responders: RespondersOfPolicy
  readonly keys: Keys
  /** Their costs by unit. */
  readonly costs: CostsOfPolicy
}

/** `names`: their names in headers. Undefined, with problems, where one of them is wrong. */
export function makeLimits(
  data: readonly LimitData[],
  names: readonly string[],
  of: LimitsOf,
  path: Path,
  problems: Problem[],
): readonly Limit[] | undefined {
  const limits = data.map((each, i) => makeLimit(each, names[i] as string, of, [...path, i], problems))
  return limits.includes(undefined) ? undefined : (limits as Limit[])
}

function makeLimit(data: LimitData, name: string, of: LimitsOf, path: Path, problems: Problem[]): Limit | undefined {
  const { algorithm = 'slidingLog', name: _, key, respond: ownRespond, ...options } = data
  const respond = ownRespond ?? of.respond
  const limitKey = key === undefined ? of.key : of.keys.make(key, [...path, 'key'], problems)
  if (!limitKey) return undefined
  const limit = tried(path, problems, () => {
    const limit = (CONSTRUCTORS[algorithm] as NonNullable<(typeof CONSTRUCTORS)[string]>)({
      ...options,
      name,
      key: limitKey,
      ...(respond !== undefined && { respond: of.responders.make(ownRespond ? name : '', respond) }),
    })
    return limit
  })
  if (!limit) return undefined
  const cost = of.costs.get(limit.unit)
  return Object.freeze({
    ...limit,
    policy: of.space,
    ...(of.carry === 'keep' && { carry: carryOf(limitKey, of.key) }),
    ...(cost !== undefined && { cost }),
  })
}

/**
 * The kinds of their keys distinguish limits that count the same way. Their order does not, as users may change it.
 */
function carryOf({ kind = 'key' }: LimitsOf['key'], policys: LimitsOf['key']): string {
  return kind === (policys.kind ?? 'key') ? '' : `@${kind.replace(/[^\w-]/g, '_')}`
}

/**
 * Their names in headers: the policy's name, with the limit's own, or its window where there are several, as in code. Given names
 * come first. A name that another limit has gets a number.
 */
export function namesOf(
  data: readonly LimitData[],
  policy: string,
  names: DocumentNames,
  path: Path,
  problems: Problem[],
): string[] {
  const usedNames = new Set<string>()
  for (const [i, { name }] of data.entries()) {
    if (name === undefined) continue
    if (usedNames.has(name.toLowerCase())) {
      const message = `expected limits whose names differ by more than case, got ${shown(name)} twice`
      problems.push({ path: [...path, i, 'name'], message })
    }
    usedNames.add(name.toLowerCase())
  }
  const list = new Set<string>()
  const named = data.map(({ name }) => {
    if (name === undefined) return undefined
    return names.nameFor(name === policy ? name : `${policy}-${name}`, policy, list)
  })
  return data.map(({ algorithm, window, every }, i) => {
    if (named[i] !== undefined) return named[i]
    const kind = String(hasPermits(algorithm) ? algorithm : (window ?? every ?? algorithm))
    return names.nameFor(data.length === 1 ? policy : `${policy}-${kind.replace('.', '_')}`, policy, list)
  })
}
