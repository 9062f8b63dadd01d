import type { TrafficFilter, TrafficTop } from './answers.js'
import { isRefusal, REFUSED } from './decisions.js'
import { type Field, policyNames, TABLES, type TrafficCounts, valuesOf } from './traffic-counts.js'

interface TopsOf {
  readonly by: 'decisions' | 'refused'
  readonly top: number
  readonly filter: TrafficFilter
}

/** The largest values of a field among the traffic that fits a filter, also one by this field. */
export function topOf({ tables }: TrafficCounts, field: Field, { by, top, filter }: TopsOf): TrafficTop {
  const isOfRefusals = filter.reason === REFUSED
  const wanted = (Object.entries(filter) as [Field, string][]).filter(([name]) => name !== 'reason' || !isOfRefusals)
  // Every table says what was refused, be it by the reason.
  const needed = [field, ...wanted.map(([name]) => name)]
  const t = TABLES.findIndex(({ fields }) => needed.every((each) => fields.includes(each)))
  const { fields } = TABLES[t] as (typeof TABLES)[number]
  const table = tables[t] as TrafficCounts['tables'][number]
  const conditions = wanted.map(([name, value]) => [fields.indexOf(name), value] as const)
  const [at, policyAt] = [fields.indexOf(field), fields.indexOf('policy')]
  const [reasonAt, refusedAt] = [fields.indexOf('reason'), fields.indexOf('refused')]
  const namesAt = (i: number, value: string) => (i === policyAt ? policyNames.split(value) : [value])
  const sums = new Map<string, { decisions: number; refused: number }>()
  for (const [name, count] of table.entries) {
    const values = valuesOf(name)
    const isRefused = refusedAt < 0 ? isRefusal(values[reasonAt] as string) : values[refusedAt] === '1'
    if (isOfRefusals && !isRefused) continue
    if (!conditions.every(([i, value]) => namesAt(i, values[i] as string).includes(value))) continue
    for (const value of namesAt(at, values[at] as string)) {
      if (value === '') continue
      const sum = sums.get(value) ?? { decisions: 0, refused: 0 }
      sums.set(value, sum)
      sum.decisions += count
      if (isRefused) sum.refused += count
    }
  }
  const ordered = [...sums].sort(([, one], [, other]) => other[by] - one[by] || other.decisions - one.decisions)
  // Those that are refused, and those that are not.
  const ofPairs = refusedAt < 0 ? Number.POSITIVE_INFINITY : 2 * table.error
  return {
    entries: ordered.slice(0, top).map(([value, sum]) => ({ value, ...sum })),
    error: Math.min(ofPairs, table.lost),
  }
}
