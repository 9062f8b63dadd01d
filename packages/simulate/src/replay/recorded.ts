import { isKind, listed, quoted } from '@sluice/core/internal'
import type { ReadDocument, Resolvers } from '@sluice/policies'
import { ID } from '../formats/recording.js'
import type { LogRecord } from '../record.js'

type Data = Readonly<Record<string, unknown>>

/** The functions that a document names, as far as recordings have their results. */
export function recordedResolvers({ policies = {} }: ReadDocument): Resolvers {
  const keys: Record<string, (record: LogRecord) => string | undefined> = {}
  const tiers: Record<string, (record: LogRecord) => string> = {}
  const costs: Record<string, (record: LogRecord) => number | Record<string, number>> = {}
  for (const [name, policy] of Object.entries(policies as Readonly<Record<string, Data>>)) {
    for (const kind of kindsIn(policy)) keys[kind] = (record) => record.field(ID + kind)
    const { tier, cost } = policy
    if (typeof tier === 'string') {
      const others = tiers[tier]
      tiers[tier] = (record) => record.field(`.tiers.${name}`) ?? others?.(record) ?? ''
    }
    if (typeof cost === 'string') costs[cost] = (record) => costOf(record, name)
    for (const [unit, resolver] of Object.entries(Object(cost) as Data)) {
      if (typeof resolver === 'string') costs[resolver] = (record) => costOf(record, name, unit)
    }
  }
  return { keys, tiers, costs } as Resolvers
}

/** Kinds of keys anywhere in a policy. */
function kindsIn(data: unknown): readonly string[] {
  if (typeof data !== 'object' || data === null) return []
  return Object.entries(data).flatMap(([name, value]) => {
    if (name !== 'key' && name !== 'by') return kindsIn(value)
    return [value].flat().filter((kind): kind is string => isKind(kind) && !kind.includes('+'))
  })
}

function costOf(record: LogRecord, policy: string, unit?: string): never {
  const units = JSON.parse(record.field(`.costs.${policy}`) ?? '{}') as Record<string, number>
  if (unit !== undefined) return (units[unit] ?? 1) as never
  return (Object.keys(units).every((each) => each === 'requests') ? (units.requests ?? 1) : units) as never
}

/** The lengths of networks that recordings have. */
const PREFIXES: Readonly<Record<string, readonly number[]>> = { ipv4Prefix: [24, 32], ipv6Prefix: [48, 64, 128] }

/** A sentence about what a document has of clients that recordings cannot be matched with. Undefined where they can. */
export function unmatched({ policies = {}, overrides = [] }: ReadDocument): string | undefined {
  const parts = Object.entries(policies as Readonly<Record<string, Data>>).flatMap(([name, policy]) => [
    ...['allow', 'deny'].flatMap((list) => (policy[list] === undefined ? [] : [`${quoted(name)}: ${list}`])),
    ...((policy.match as Data | undefined)?.headers === undefined ? [] : [`${quoted(name)}: match: headers`]),
    ...prefixesIn(policy).map((prefix) => `${quoted(name)}: ${prefix}`),
  ])
  const overridden = new Set((overrides as readonly { readonly policy: string }[]).map(({ policy }) => policy))
  parts.push(...[...overridden].map((name) => `overrides of ${quoted(name)}`))
  return parts.length === 0
    ? undefined
    : `Recordings have HMACs of clients, which match nothing of this: ${listed(parts)}. It had no effect, or one on all.`
}

function prefixesIn(data: unknown): readonly string[] {
  if (typeof data !== 'object' || data === null) return []
  return Object.entries(data).flatMap(([name, value]) => {
    const known = PREFIXES[name]
    return known && !known.includes(value) ? [`${name} ${value}`] : prefixesIn(value)
  })
}
