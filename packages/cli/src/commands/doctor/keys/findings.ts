import { bytes, counted, grouped, listed } from '@sluice/core/internal'
import { type CheckResult, ok, warning } from '../finding.js'
import type { DoctorOptions } from '../options.js'
import { KEY_LAYOUT } from '../store-needs.js'
import type { KeyUse } from './classify.js'
import type { Survey } from './survey.js'

/** Policies that are named; there may be thousands. */
const MAX_POLICIES = 5

/** Findings about the keys of all servers together. */
export function keyFindings(surveys: readonly Survey[], options: DoctorOptions): CheckResult[] {
  const found = new Tally(surveys)
  if (found.keys() === 0) return [nothingFound(surveys, found, options)]
  return [summary(found), ...byPolicy(found), ...withoutExpiry(found, options), ...otherLayouts(found)]
}

/** The sampled keys, scaled up to all keys, server by server. */
class Tally {
  readonly groups: readonly { layout: string; use: KeyUse; policy?: string; keys: number }[]
  readonly total: number
  readonly seen: number
  readonly calls: number
  readonly measured: Survey['measured']
  /** Keys without an expiry where that is certain: where every key was seen and is ours. */
  readonly permanent: number | undefined

  constructor(surveys: readonly Survey[]) {
    this.total = sum(surveys.map(({ total }) => total))
    this.seen = sum(surveys.map(({ seen }) => seen))
    this.calls = sum(surveys.map(({ calls }) => calls))
    this.measured = surveys.flatMap(({ measured }) => measured)
    const groups = new Map<string, Tally['groups'][number]>()
    for (const { ours, seen, total } of surveys) {
      for (const group of ours) {
        const name = JSON.stringify([group.layout, group.use, group.policy])
        const before = groups.get(name)?.keys ?? 0
        groups.set(name, { ...group, keys: before + (group.keys * total) / Math.max(1, seen) })
      }
    }
    this.groups = [...groups.values()]
    const isOursAlone = this.isWhole && this.keys() === this.total
    const known = surveys.flatMap(({ permanent }) => permanent ?? [])
    this.permanent = isOursAlone && known.length === surveys.length ? sum(known) : undefined
  }

  /** Whether every key was seen. */
  get isWhole(): boolean {
    return this.seen >= this.total
  }

  keys(fits: (group: Tally['groups'][number]) => boolean = () => true): number {
    return Math.round(sum(this.groups.filter(fits).map(({ keys }) => keys)))
  }

  /** Estimated bytes of a number of keys of a policy, or of any. Undefined if none was measured. */
  bytesOf(keys: number, policy?: string): number | undefined {
    const sizes = this.measured
      .filter((each) => policy === undefined || each.policy === policy)
      .flatMap((each) => each.bytes ?? [])
    return sizes.length === 0 ? undefined : Math.round((sum(sizes) / sizes.length) * keys)
  }

  about(keys: number): string {
    return `${this.isWhole ? '' : 'about '}${grouped(keys)}`
  }
}

function summary(found: Tally): CheckResult {
  const keys = found.keys()
  const blocks = found.keys(({ use }) => use === 'block')
  const size = found.bytesOf(keys)
  const memory = size === undefined ? '' : `, ${bytes(size)}`
  const others = found.total - keys
  const beside = others > 0 ? `, beside ${grouped(others)} of others` : ''
  const estimated =
    found.measured.length < keys && size !== undefined
      ? ` (memory from a sample of ${grouped(found.measured.length)})`
      : ''
  const partial = found.isWhole ? '' : `; estimated from ${grouped(found.seen)} of ${grouped(found.total)} keys`
  const text = `${found.about(keys)} ${keys === 1 ? 'key' : 'keys'} of Sluice${memory}${estimated}${beside}, ${counted(blocks, 'block')} among them${partial}.`
  return ok(`${text.charAt(0).toUpperCase()}${text.slice(1)}`, {
    keys,
    blocks,
    bytes: size,
    otherKeys: others,
    isEstimated: !found.isWhole,
    keysSeen: found.seen,
    keysTotal: found.total,
    keysMeasured: found.measured.length,
    scanCalls: found.calls,
  })
}

function byPolicy(found: Tally): CheckResult[] {
  const names = [...new Set(found.groups.flatMap(({ policy }) => policy ?? []))]
  const policies = names
    .map((name) => {
      const keys = found.keys(({ policy }) => policy === name)
      return { name, keys, bytes: found.bytesOf(keys, name) }
    })
    .sort((a, b) => b.keys - a.keys)
  if (policies.length === 0) return []
  const shown = policies.slice(0, MAX_POLICIES).map(({ name, keys, bytes: size }) => {
    return `${JSON.stringify(name)} ${found.about(keys)}${size === undefined ? '' : ` (${bytes(size)})`}`
  })
  const more = policies.length > MAX_POLICIES ? [counted(policies.length - MAX_POLICIES, 'other')] : []
  return [ok(`Keys by policy: ${listed([...shown, ...more])}.`, { policies: policies.slice(0, 1000) })]
}

function withoutExpiry(found: Tally, { prefix }: DoctorOptions): CheckResult[] {
  const known = found.measured.filter(({ hasExpiry }) => hasExpiry !== undefined)
  const permanent = known.filter(({ hasExpiry }) => !hasExpiry)
  const estimate = Math.round((permanent.length / Math.max(1, known.length)) * found.keys())
  const keys = found.permanent ?? estimate
  if (keys === 0) return []
  const isWhole = found.permanent !== undefined || (found.isWhole && known.length === found.keys())
  const policies = [...new Set(permanent.map(({ policy, use }) => policy ?? use))].slice(0, MAX_POLICIES)
  const where = policies.length > 0 ? ` (${policies.map((name) => JSON.stringify(name)).join(', ')})` : ''
  return [
    warning(
      `${isWhole ? '' : 'About '}${counted(keys, 'key')} of Sluice ${keys === 1 ? 'has' : 'have'} no expiry${where}: another program made them permanent, and they stay until their identity is counted again.`,
      `Find out what runs PERSIST, or restores keys without their TTL, on ${prefix}*; deleting such keys forgets what they count.`,
      { keys, isEstimated: !isWhole, policies },
    ),
  ]
}

function otherLayouts(found: Tally): CheckResult[] {
  const layouts = [...new Set(found.groups.map(({ layout }) => layout))].filter((layout) => layout !== KEY_LAYOUT)
  return layouts.map((layout) => {
    const keys = found.keys((group) => group.layout === layout)
    const isNewer = /^v\d/.test(layout) && Number(layout.slice(1)) > Number(KEY_LAYOUT.slice(1))
    return warning(
      `${found.isWhole ? '' : 'About '}${counted(keys, 'key')} ${keys === 1 ? 'is' : 'are'} of ${isNewer ? 'a newer' : 'an older'} layout (${layout}): processes of another release count apart from those of this one.`,
      isNewer
        ? 'Use the doctor of that release, and finish the deployment: both count apart until then.'
        : 'Finish the deployment; keys of the older layout then expire by themselves, and its blocks end with them.',
      { layout, keys },
    )
  })
}

function nothingFound(surveys: readonly Survey[], found: Tally, { prefix }: DoctorOptions): CheckResult {
  const data = { keys: 0, otherKeys: found.total, isEstimated: !found.isWhole, scanCalls: found.calls }
  const databases = [...new Set(surveys.flatMap(({ otherDatabases }) => otherDatabases))].sort((a, b) => a - b)
  const elsewhere =
    databases.length > 0
      ? `; there are keys in ${databases.length === 1 ? 'database' : 'databases'} ${listed(databases.map(String))}`
      : ''
  const where = found.isWhole ? '' : ` among the ${grouped(found.seen)} of ${grouped(found.total)} that were looked at`
  return ok(
    `No key starts with ${JSON.stringify(prefix)}${where}: nothing is counted now, or stores use another prefix (--prefix)${elsewhere}.`,
    { ...data, otherDatabases: databases },
  )
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
