import { TopCounts } from './top-counts.js'

/**
 * The fields of a decision by which traffic is counted. `policy`: the names of all policies that decided, joined, so that a decision is
 * counted once. `refused`: `1` for a refusal that was enforced, else empty. */
export type Field = 'policy' | 'reason' | 'path' | 'client' | 'network' | 'refused'
export type Fields = Readonly<Partial<Record<Field, string>>>

interface Table {
  readonly fields: readonly Field[]
  /** Entries that are written. */
  readonly written: number
}

/**
 * What is counted together. The first table that has all fields of a question answers it, so narrow ones stand first: an entry of
 * few fields is the sum of all others, and is not lost among rare combinations.
 */
export const TABLES: readonly Table[] = [
  { fields: ['policy', 'reason'], written: 64 },
  { fields: ['path', 'refused'], written: 64 },
  { fields: ['network', 'refused'], written: 64 },
  { fields: ['client', 'network', 'refused'], written: 64 },
  { fields: ['policy', 'reason', 'path'], written: 96 },
  { fields: ['network', 'policy', 'reason', 'path'], written: 96 },
  { fields: ['client', 'network', 'policy', 'reason', 'path'], written: 96 },
]

const FIELDS: readonly Field[] = ['policy', 'reason', 'path', 'refused', 'client', 'network']
const [CLIENT, NETWORK] = [FIELDS.indexOf('client'), FIELDS.indexOf('network')]
/** The places of each table's fields among them. */
const PLACES = TABLES.map(({ fields }) => fields.map((field) => FIELDS.indexOf(field)))
/** Tables to which a decision is added once, and those to which it is for each of its clients. */
const ONCE = [...TABLES.keys()].filter((i) => !PLACES[i]?.includes(NETWORK))
const OF_CLIENTS = [...TABLES.keys()].filter((i) => PLACES[i]?.includes(NETWORK))

/** Entries of a table in a process, at times twice as many. */
const KEPT = 256

/** The decisions of a span of time, by several fields at once, in bounded memory. */
export class TrafficCounts {
  decisions = 0
  refused = 0
  readonly tables: readonly TopCounts[]

  constructor(kept: number = KEPT) {
    this.tables = TABLES.map(() => new TopCounts(kept))
  }

  /** Adds decisions on equal requests. @param clients each with its network, if it has one */
  add(row: Omit<Fields, 'client' | 'network'>, clients: readonly Pick<Fields, 'client' | 'network'>[], count: number) {
    this.decisions += count
    if (row.refused === '1') this.refused += count
    const values = FIELDS.map((field) => named(row[field as keyof typeof row] ?? ''))
    this.#add(ONCE, values, count)
    for (const { client = '', network = '' } of clients) {
      values[CLIENT] = named(client)
      values[NETWORK] = named(network)
      this.#add(OF_CLIENTS, values, count)
    }
  }

  #add(numbers: readonly number[], values: readonly string[], count: number): void {
    for (const i of numbers) {
      const places = PLACES[i] as readonly number[]
      // Clients without a network are in no table of networks.
      if (places[0] === NETWORK && values[NETWORK] === '') continue
      let name = values[places[0] as number] as string
      for (let p = 1; p < places.length; p++) name += SEPARATOR + values[places[p] as number]
      ;(this.tables[i] as TopCounts).add(name, count)
    }
  }

  merge({ decisions, refused, tables }: MergedCounts): void {
    this.decisions += decisions
    this.refused += refused
    for (const [i, table] of this.tables.entries()) table.merge(tables[i] as TopCounts)
  }

  /** The part that is written. */
  largest(): TrafficCounts {
    const part = new TrafficCounts()
    part.decisions = this.decisions
    part.refused = this.refused
    const tables = this.tables.map((table, i) => table.largest((TABLES[i] as Table).written))
    return Object.assign(part, { tables })
  }

  /** Drops clients. */
  drop(isDropped: (client: string) => boolean): void {
    for (const [i, { fields }] of TABLES.entries()) {
      const at = fields.indexOf('client')
      if (at >= 0) this.tables[i]?.drop((name) => isDropped(valuesOf(name)[at] as string))
    }
  }
}

export interface MergedCounts extends Pick<TrafficCounts, 'decisions' | 'refused'> {
  readonly tables: readonly Pick<TopCounts, 'entries' | 'total' | 'error'>[]
}

/** Between the values of a name. Texts of clients may contain it, too. */
const SEPARATOR = '\u0000'

/** Characters of a value. */
export const LONGEST_VALUE = 4096

/** Names of policies, which have no line feeds, as one value. It has the first names if all would be too long. */
export const policyNames = {
  join(names: readonly string[]): string {
    const text = names.length === 1 ? (names[0] as string) : names.join('\n')
    if (text.length <= LONGEST_VALUE) return text
    return text.slice(0, Math.max(text.lastIndexOf('\n', LONGEST_VALUE), 0) || LONGEST_VALUE)
  },
  split: (value: string): readonly string[] => value.split('\n'),
}

const named = (value: string): string => (value.includes(SEPARATOR) ? value.replaceAll(SEPARATOR, '\ufffd') : value)

export const nameOf = (values: readonly string[]): string => values.map(named).join(SEPARATOR)
export const valuesOf = (name: string): readonly string[] => name.split(SEPARATOR)
