import type { TrafficFilter, TrafficTop } from './answers.js'
import { isRefusal } from './decisions.js'
import { type Field, TABLES, type TrafficCounts, valuesOf } from './traffic-counts.js'

interface TopsOf {
  readonly by: 'decisions' | 'refused'
  readonly top: number
  readonly filter: TrafficFilter
}

/** The largest values of a field among the traffic that a filter admits. */
export function topOf({ tables }: TrafficCounts, field: Field, { by, top, filter }: TopsOf): TrafficTop {
  // What a field is filtered by is not all that there is of it: the others can be chosen instead.
  const others = (Object.entries(filter) as [Field, string][]).filter(([name]) => name !== field)
  const needed = [field, ...others.map(([name]) => name)]
  const t = TABLES.findIndex(({ fields }) => needed.every((each) => fields.includes(each)))
  const { fields } = TABLES[t] as (typeof TABLES)[number]
  const table = tables[t] as TrafficCounts['tables'][number]
  const at = fields.indexOf(field)
  const conditions = others.map(([name, value]) => [fields.indexOf(name), value] as const)
  const [reasonAt, refusedAt] = [fields.indexOf('reason'), fields.indexOf('refused')]
  const sums = new Map<string, { decisions: number; refused: number }>()
  for (const [name, count] of table.entries) {
    const values = valuesOf(name)
    const value = values[at] as string
    if (value === '' || conditions.some(([i, wanted]) => values[i] !== wanted)) continue
    const sum = sums.get(value) ?? { decisions: 0, refused: 0 }
    sums.set(value, sum)
    sum.decisions += count
    if (refusedAt < 0 ? isRefusal(values[reasonAt] as string) : values[refusedAt] === '1') sum.refused += count
  }
  const ordered = [...sums].sort(([, one], [, other]) => other[by] - one[by] || other.decisions - one.decisions)
  // Those that are refused, and those that are not.
  const ofPairs = refusedAt < 0 ? Number.POSITIVE_INFINITY : 2 * table.error
  return {
    entries: ordered.slice(0, top).map(([value, sum]) => ({ value, ...sum })),
    error: Math.min(ofPairs, table.lost),
  }
}
