import { LONGEST_VALUE, type MergedCounts, nameOf, TABLES, type TrafficCounts, valuesOf } from './traffic-counts.js'

/** Another form has another number. */
const FORM = 1
/** Characters of the text of a process and a minute. */
const MAX_TEXT = 16_384

/** The clients in counts, as they are. */
export function clientsIn({ tables }: MergedCounts): string[] {
  const clients = new Set<string>()
  for (const [i, { fields }] of TABLES.entries()) {
    const at = fields.indexOf('client')
    if (at < 0) continue
    for (const name of tables[i]?.entries.keys() ?? []) clients.add(valuesOf(name)[at] as string)
  }
  return [...clients]
}

/** Counts as text, with an id in place of each client. Where it would be too long, it has fewer entries. */
export function textOf(counts: TrafficCounts, idOf: ReadonlyMap<string, string>): string {
  for (let part = 1; ; part /= 2) {
    const text = textOfPart(counts, idOf, part)
    if (text.length <= MAX_TEXT) return text
  }
}

function textOfPart({ decisions, refused, tables }: TrafficCounts, idOf: ReadonlyMap<string, string>, part: number) {
  const values = new Map<string, number>()
  const numberOf = (value: string) => {
    const number = values.get(value) ?? values.size
    values.set(value, number)
    return number
  }
  const rows = tables.map((table, i) => {
    const { fields, written } = TABLES[i] as (typeof TABLES)[number]
    const at = fields.indexOf('client')
    const { entries, total, error } = table.largest(Math.floor(written * part))
    return [
      total,
      error,
      [...entries].map(([name, count]) => [
        ...valuesOf(name).map((value, v) => numberOf(v === at ? (idOf.get(value) ?? '') : value)),
        count,
      ]),
    ]
  })
  return JSON.stringify([FORM, decisions, refused, [...values.keys()], rows])
}

/** Undefined for a text of another version, or of anyone. */
export function countsIn(text: string): MergedCounts | undefined {
  try {
    const [form, decisions, refused, values, rows] = JSON.parse(text)
    if (form !== FORM || !areCounts([decisions, refused]) || !Array.isArray(values) || !values.every(isValue)) return
    if (!Array.isArray(rows) || rows.length !== TABLES.length) return
    return { decisions, refused, tables: rows.map((row, i) => tableIn(row, i, values)) }
  } catch {
    return undefined
  }
}

function tableIn(row: unknown, i: number, values: readonly string[]): MergedCounts['tables'][number] {
  const { fields } = TABLES[i] as (typeof TABLES)[number]
  const [total, error, rows] = row as [number, number, number[][]]
  if (!areCounts([total, error])) throw new Error('no counts')
  const entries = rows.map((numbers): [string, number] => {
    const count = numbers[fields.length]
    const texts = fields.map((_, f) => values[numbers[f] as number])
    if (!areCounts([count]) || !texts.every(isValue)) throw new Error('no entry')
    return [nameOf(texts as string[]), count as number]
  })
  return { total, error, entries: new Map(entries) }
}

const areCounts = (numbers: readonly unknown[]): boolean =>
  numbers.every((number) => Number.isSafeInteger(number) && (number as number) >= 0)

const isValue = (value: unknown): value is string => typeof value === 'string' && value.length <= LONGEST_VALUE
