import type { Limit } from '@sluice/core'
import {
  capacityOf,
  countedHash,
  ipAddress,
  ipRange,
  isSecretKind,
  lastProxyTrust,
  stateNamesOf,
} from '@sluice/core/internal'
import type { LimitData, OverrideData } from '../document/document.js'
import { type Path, type Problem, shown } from '../problems/problem.js'
import { checkChanges } from '../schema/check.js'
import { contextFor } from './explain.js'
import type { Keys } from './keys.js'
import { changedLimits } from './make-overrides.js'
import { type Overrides, RANK } from './overrides.js'
import { type CompiledPolicy, type Variant, variantsOf } from './policy.js'
import type { CheckOverride } from './table-overrides.js'
import { uncountedKind } from './uncounted-kind.js'

/** The numbers of a limit. */
export interface LimitNumbers {
  readonly algorithm: string
  readonly limit: unknown
  /** In ms, or by the calendar: `month`. */
  readonly window: unknown
  /** The units that a bucket holds: its burst. Absent for other limits. */
  readonly capacity?: number
}

/** A limit that an override changes. */
export interface ChangedLimit {
  /** The tier whose limit it is. Absent for a policy without tiers. */
  readonly tier?: string
  /** Its name in headers. */
  readonly limit: string
  readonly before: LimitNumbers
  readonly after: LimitNumbers
  /** Whether used units count against the new numbers. The limit begins anew otherwise. */
  readonly isKept: boolean
}

/** The client that an override by an exact key is for. */
export interface ClientOfOverride {
  readonly kind: string
  /** For people: secrets as `sha256:` and the hash. */
  readonly value: string
  /** As it is looked up. */
  readonly identity: string
  /** As keys count it. */
  readonly counted: string
}

/** Longest value, in bytes: that of PostgreSQL's table. */
const MAX_VALUE = 1024

/** The client of `key`. Undefined, with a problem, where it is none. */
export function clientOfKey(key: unknown, problems: Problem[]): ClientOfOverride | undefined {
  const fail = (path: Path, message: string) => {
    problems.push({ path: ['key', ...path], message })
    return undefined
  }
  const isObject = typeof key === 'object' && key !== null && !Array.isArray(key)
  const [[keyKind, raw] = ['', undefined], ...others] = isObject ? Object.entries(key) : []
  if (others.length > 0 || !/^[A-Za-z0-9_-]{1,64}(:[A-Za-z0-9_.!#$&'*+^`|~-]{1,200})?$/.test(keyKind)) {
    return fail([], 'expected one value by its kind, such as { user: "42" }')
  }
  const kind = keyKind.startsWith('header:') ? keyKind.toLowerCase() : keyKind
  const value = typeof raw === 'string' || Number.isSafeInteger(raw) ? String(raw) : ''
  if (value === '' || Buffer.byteLength(value) > MAX_VALUE || !value.isWellFormed() || value.includes('\0')) {
    return fail([keyKind], `expected a text of 1 to ${MAX_VALUE} bytes, or a whole number`)
  }
  if (kind === 'ip') return clientOfAddress(value.trim(), fail)
  if (!isSecretKind(kind)) return { kind, value, identity: value, counted: value }
  const counted = countedHash(value)
  if (counted === undefined)
    return fail([keyKind], 'expected sha256: and 64 hexadecimal digits, as secrets are not stored')
  return { kind, value, identity: value, counted }
}

function clientOfAddress(
  value: string,
  fail: (path: Path, message: string) => undefined,
): ClientOfOverride | undefined {
  const address = ipAddress(value)
  const range = address && ipRange(value)
  if (!address || !range || range.first.some((word, i) => word !== range.last[i])) {
    return fail(
      ['ip'],
      `expected one address, got ${shown(value)}; a network is an override with range in the document`,
    )
  }
  const identity = address.first.map((word) => word.toString(16).padStart(8, '0')).join('')
  return { kind: 'ip', value, identity, counted: value }
}

/** An override that would be valid. */
export interface EffectOfOverride {
  readonly changes: readonly ChangedLimit[]
  /** What may be misunderstood about it. */
  readonly advice: readonly string[]
}

/** The effect of an override on a policy. Undefined, with problems, where it is not valid or another one decides. */
export function effectOf(
  policy: CompiledPolicy,
  client: ClientOfOverride,
  limits: unknown,
  own: Overrides | undefined,
  keys: Keys,
  check: CheckOverride | undefined,
  problems: Problem[],
): EffectOfOverride | undefined {
  const { kind } = client
  if (kind !== 'ip' && !keys.make(kind, ['key', kind], problems)) return undefined
  checkChanges(limits, ['limits'], problems)
  if (problems.length === 0) problems.push(...(check?.(limits as LimitData[]) ?? []))
  if (problems.length > 0) return undefined
  const data = { limits: limits as OverrideData['limits'] }
  const changed = changedLimits(data, policy, keys, ['limits'], problems)
  const deciding = ownFor(own, client)
  if (deciding !== undefined) {
    const message = `expected a client without one in the document, which has overrides[${deciding}] and decides: change that`
    problems.push({ path: ['key'], message })
  }
  if (problems.length > 0) return undefined
  const changes = variantsOf(policy).flatMap((base) => changesOf(base, changed.byTier.get(base.tier)))
  const advice = [uncountedKind(policy, kind) ?? [], forgeableAdvice(kind, changed.mayAdmitMore)].flat()
  return { changes, advice }
}

function forgeableAdvice(kind: string, mayAdmitMore: boolean): string[] {
  if (kind !== 'ip' || !mayAdmitMore) return []
  const trust = lastProxyTrust()
  if (typeof trust === 'object') {
    return ['an override by address that may admit more has no effect here, as the application trusts every proxy']
  }
  const has = 'where the framework trusts every proxy, an override by address that may admit more has no effect'
  return trust ? [] : [`${has}: this process has seen no request that tells`]
}

/** The exact override of the document for the same client: it decides before one beside the document. */
function ownFor(own: Overrides | undefined, { kind, value, counted }: ClientOfOverride): number | string | undefined {
  const context = contextFor({ path: '/', ...(kind === 'ip' && { ip: value }) })
  const found = own?.find(context, (wanted) => (wanted === kind && kind !== 'ip' ? counted : undefined))
  if (!found || found instanceof Promise || found.rank < (kind === 'ip' ? RANK.address : RANK.exact)) return undefined
  return found.index
}

function changesOf({ policy, tier, limits }: Variant, changed: readonly Limit[] | undefined): ChangedLimit[] {
  if (!changed) return []
  const { consistency } = policy.data
  const [names, next] = [stateNamesOf(limits, consistency), stateNamesOf(changed, consistency)]
  return changed.flatMap((after, i) => {
    const before = limits[i] as Limit
    const numbers = [numbersOf(before), numbersOf(after)] as const
    const isKept = names[i]?.whole === next[i]?.whole
    if (isKept && JSON.stringify(numbers[0]) === JSON.stringify(numbers[1])) return []
    const place = { ...(tier !== undefined && { tier }), limit: String(after.name) }
    return [{ ...place, before: numbers[0], after: numbers[1], isKept }]
  })
}

function numbersOf(given: Limit): LimitNumbers {
  const { algorithm, limit, window } = given
  const capacity = capacityOf(given)
  return { algorithm, limit, window, ...(capacity !== undefined && { capacity }) }
}
