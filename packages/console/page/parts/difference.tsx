import { duration, isForever, shortTime, whole } from './format.js'

/** Fields that other columns of a change show. */
const SHOWN = ['reason', 'kind', 'value', 'by', 'at', 'version', 'sameAs', 'policy']
const TIMES = ['until', 'since', 'expiresAt']

/** What was changed, a line for each field: `limit: 5 → 30`. Of what was used, what was left. */
export function differenceOf(before: unknown, after: unknown): readonly string[] {
  if (Array.isArray(before)) return before.flatMap(usedIn)
  const [was, is] = [fieldsOf(before), fieldsOf(after)]
  return [...new Set([...is.keys(), ...was.keys()])].flatMap((field) => {
    const [old, now] = [was.get(field), is.get(field)]
    if (old === now) return []
    if (after === undefined) return [`${field} was ${old}`]
    return [`${field}: ${old === undefined ? '' : `${old} → `}${now ?? 'none'}`]
  })
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A block as it is given, with its end: what a block replaces has its end alone. */
export function blockFrom(at: number, given: unknown) {
  const { for: lasts } = (given ?? {}) as { readonly for?: number | string }
  const [, amount, unit = ''] = /^([\d.]+) *([a-z]+)$/.exec(String(lasts)) ?? []
  const ms = typeof lasts === 'number' ? lasts : Number(amount) * (UNIT_MS[unit] ?? Number.NaN)
  return { for: typeof lasts === 'number' ? duration(lasts) : lasts, ...(ms >= 0 && { until: at + ms }) }
}

function fieldsOf(value: unknown, path = '', into = new Map<string, string>()): Map<string, string> {
  if (typeof value !== 'object' || value === null) {
    if (value !== undefined) into.set(path, textOf(path, value))
    return into
  }
  const entries = Array.isArray(value)
    ? value.map((each, i) => [nameIn(each, i, value.length), each])
    : Object.entries(value)
  for (const [name, each] of entries as [string, unknown][]) {
    if (path === '' && SHOWN.includes(name)) continue
    // Limits of an override stand by their names, and one alone without.
    const inner = name === 'limits' || name === '' ? path : `${path}${path && ' '}${name}`
    fieldsOf(each, inner, into)
  }
  return into
}

function nameIn(each: unknown, i: number, count: number): string {
  const { name } = (each ?? {}) as { readonly name?: unknown }
  return typeof name === 'string' ? name : count === 1 ? '' : String(i + 1)
}

function textOf(field: string, value: unknown): string {
  if (typeof value !== 'number') return String(value)
  if (TIMES.includes(field)) return isForever(value) ? 'it is ended' : shortTime(value)
  return field.endsWith('Ms') ? duration(value) : whole(value)
}

interface UsedLimits {
  readonly limits?: readonly { readonly name: string; readonly remaining: number; readonly capacity: number }[]
}

/** Of a reset: the limits of which something was used. */
function usedIn({ limits = [] }: UsedLimits): string[] {
  const used = limits.filter(({ remaining, capacity }) => remaining < capacity)
  return used.map(
    ({ name, remaining, capacity }) => `${name}: ${whole(remaining)} → ${whole(capacity)} of ${whole(capacity)} left`,
  )
}

/** Lines for people. */
export function Difference({ lines }: { lines: readonly string[] }) {
  return (
    <ul class="lines">
      {lines.map((line) => (
        <li key={line}>
          <bdi>{line}</bdi>
        </li>
      ))}
    </ul>
  )
}
