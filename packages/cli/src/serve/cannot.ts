import { setImmediate } from 'node:timers/promises'
import { hasPermits } from '@sluice/core/internal'
import type { Path, Problem, ReadDocument } from '@sluice/policies'

/** Names that callers send, so that a document may use them. */
export interface Named {
  readonly keys: readonly string[]
  readonly tiers: readonly string[]
  /** Whether callers settle and release charges by the ids of decisions. */
  readonly keepsCharges?: boolean
}

type Fields = Readonly<Record<string, unknown>>

const OUTCOME = 'expected none: a decider does not see what becomes of a request'
const CODE = 'expected none of code: a decider has none'
/** Policies and overrides that are checked in one go. */
const MAX_AT_ONCE = 500
const BUILT_IN = /^(ip|path|method|everyone|credentials|header:.+|cookie:.+)$/

/** Fields of a document that a decider cannot apply: it decides at once, and sees neither bodies nor responses. */
export async function cannotIn(
  { policies = {}, overrides = [] }: ReadDocument,
  named: Named,
): Promise<readonly Problem[]> {
  const problems: Problem[] = []
  let looked = 0
  // Requests are decided in between.
  const between = async () => {
    if (++looked % MAX_AT_ONCE === 0) await setImmediate()
  }
  for (const [name, policy] of Object.entries(policies)) {
    checkPolicy(policy as Fields, ['policies', name], named, problems)
    await between()
  }
  for (const [i, override] of overrides.entries()) {
    const { limits } = override as unknown as { limits?: unknown }
    checkLimits(limits, ['overrides', i, 'limits'], named, problems)
    await between()
  }
  return problems
}

/** The same of the limits of one override, which may be in a table beside the document. */
export function cannotInLimits(limits: readonly object[], named: Named): readonly Problem[] {
  const problems: Problem[] = []
  checkLimits(limits, ['limits'], named, problems)
  return problems
}

function checkPolicy(policy: Fields, path: Path, named: Named, problems: Problem[]): void {
  const { count, cost, tier, ban, limits, tiers, key, respond, consistency } = policy
  if (consistency !== undefined && named.keepsCharges) {
    problems.push({ path: [...path, 'consistency'], message: 'expected none beside --charges', isField: true })
  }
  if (count !== undefined) problems.push({ path: [...path, 'count'], message: OUTCOME, isField: true })
  if (typeof cost === 'string') problems.push({ path: [...path, 'cost'], message: CODE })
  for (const [unit, each] of Object.entries(typeof cost === 'object' ? (cost as Fields) : {})) {
    if (typeof each === 'string') problems.push({ path: [...path, 'cost', unit], message: CODE })
  }
  if (typeof tier === 'string' && !named.tiers.includes(tier)) {
    problems.push({
      path: [...path, 'tier'],
      message: `${CODE}; with --dialect json, --tier ${tier} takes it from callers`,
    })
  }
  checkKey(key, [...path, 'key'], named, problems)
  checkRespond(respond, [...path, 'respond'], problems)
  checkLimits(limits, [...path, 'limits'], named, problems)
  for (const [name, each] of Object.entries((tiers ?? {}) as Fields)) {
    checkLimits(each, [...path, 'tiers', name], named, problems)
  }
  const { count: strikes, respond: banned } = (ban ?? {}) as Fields
  if (strikes !== undefined) problems.push({ path: [...path, 'ban', 'count'], message: OUTCOME, isField: true })
  checkRespond(banned, [...path, 'ban', 'respond'], problems)
}

function checkLimits(limits: unknown, path: Path, named: Named, problems: Problem[]): void {
  for (const [i, limit] of ((limits ?? []) as readonly Fields[]).entries()) {
    const at = [...path, i]
    const { algorithm, unit, queue, estimate, key, respond } = limit
    if (hasPermits(algorithm) && !named.keepsCharges) {
      const message =
        'expected another algorithm: a decider does not see when a request is done; with --dialect json, --charges 1h lets ' +
        'callers release permits'
      problems.push({ path: [...at, 'algorithm'], message })
    }
    if (unit === 'content-bytes' || unit === 'response-bytes') {
      problems.push({ path: [...at, 'unit'], message: 'expected requests: a decider does not see bodies' })
    }
    if (queue === true) problems.push({ path: [...at, 'queue'], message: 'expected false: a decider responds at once' })
    if (estimate !== undefined && !named.keepsCharges) {
      const message =
        'expected none, as nobody settles an estimate; with --dialect json, --charges 1h lets callers settle it'
      problems.push({ path: [...at, 'estimate'], message, isField: true })
    }
    checkKey(key, [...at, 'key'], named, problems)
    checkRespond(respond, [...at, 'respond'], problems)
  }
}

function checkKey(key: unknown, path: Path, named: Named, problems: Problem[]): void {
  const parts = Array.isArray(key) ? key : key === undefined ? [] : [key]
  for (const [i, part] of parts.entries()) {
    if (typeof part !== 'string' || BUILT_IN.test(part) || named.keys.includes(part)) continue
    const message =
      part === 'route'
        ? 'expected another key, such as path: gateways do not send routes'
        : `expected ip, path, method, everyone, credentials, header:<name> or cookie:<name>; with --dialect json, --key ${part} takes it from callers`
    problems.push({ path: Array.isArray(key) ? [...path, i] : path, message })
  }
}

function checkRespond(respond: unknown, path: Path, problems: Problem[]): void {
  if (respond === undefined) return
  const name = typeof respond === 'string' ? respond : Object.keys(respond as object)[0]
  if (name === 'reject') return
  problems.push({ path, message: `expected reject: a decider responds at once, and cannot ${name}` })
}
