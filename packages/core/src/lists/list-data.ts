import type { IpRange } from '../util/ip-range.js'
import { buildRangeTable } from './build-range-table.js'
import type { RangeTable } from './range-table.js'
import { poolOf, type TextPool } from './text-pool.js'
import { buildTextTable, type TextTable } from './text-table.js'

/** What a list holds, in typed arrays: look-ups make no garbage, and a worker hands it over at no cost. */
export interface ListData {
  readonly v4: RangeTable
  readonly v6: RangeTable
  readonly texts: readonly (readonly [kind: string, table: TextTable])[]
  readonly reasons: TextPool
  /** How many entries were read. */
  readonly size: number
}

/** What an entry says beside what it matches. */
export interface EntryDetails {
  readonly reason?: string | undefined
  /** In ms since 1970. */
  readonly expiresAt?: number | undefined
}

const NO_DETAILS: EntryDetails = {}

interface Rows {
  readonly ends: number[]
  readonly reasons: number[]
}

interface RangeRows extends Rows {
  readonly width: 1 | 4
  readonly first: number[]
  readonly last: number[]
}

interface TextRows extends Rows {
  readonly texts: string[]
}

/** Collects entries in any order, and makes the data of a list from them. */
export class ListBuilder {
  readonly #v4: RangeRows = { width: 1, first: [], last: [], ends: [], reasons: [] }
  readonly #v6: RangeRows = { width: 4, first: [], last: [], ends: [], reasons: [] }
  readonly #texts = new Map<string, TextRows>()
  readonly #reasons = new Map<string, number>()
  #size = 0

  get size(): number {
    return this.#size
  }

  addRange({ isIPv4, first, last }: IpRange, details: EntryDetails = NO_DETAILS): void {
    const rows = isIPv4 ? this.#v4 : this.#v6
    for (let i = 0; i < rows.width; i++) {
      rows.first.push(first[i] as number)
      rows.last.push(last[i] as number)
    }
    this.#addDetails(rows, details)
  }

  addText(kind: string, text: string, details: EntryDetails = NO_DETAILS): void {
    let rows = this.#texts.get(kind)
    if (!rows) {
      rows = { texts: [], ends: [], reasons: [] }
      this.#texts.set(kind, rows)
    }
    rows.texts.push(text)
    this.#addDetails(rows, details)
  }

  build(): ListData {
    return {
      v4: buildRangeTable(this.#v4),
      v6: buildRangeTable(this.#v6),
      texts: [...this.#texts].map(([kind, rows]) => [kind, buildTextTable(rows)] as const),
      reasons: poolOf([...this.#reasons.keys()]),
      size: this.#size,
    }
  }

  #addDetails(rows: Rows, { reason = '', expiresAt = Number.POSITIVE_INFINITY }: EntryDetails): void {
    this.#size++
    rows.ends.push(expiresAt)
    if (reason === '') {
      rows.reasons.push(-1)
      return
    }
    let number = this.#reasons.get(reason)
    if (number === undefined) {
      number = this.#reasons.size
      this.#reasons.set(reason, number)
    }
    rows.reasons.push(number)
  }
}

/** The buffers in it, which go to another thread with it. */
export function buffersOf({ v4, v6, texts, reasons }: ListData): ArrayBuffer[] {
  const arrays = [v4, v6].flatMap(({ starts, samples, owners, first, last, ends, reasons }) => [
    starts,
    samples,
    owners,
    first,
    last,
    ends,
    reasons,
  ])
  const pools = [reasons, ...texts.map(([, { pool }]) => pool)].flatMap(({ units, offsets }) => [units, offsets])
  const tables = texts.flatMap(([, { slots, ends, reasons }]) => [slots, ends, reasons])
  return [...arrays, ...pools, ...tables].flatMap((array) => (array ? [array.buffer as ArrayBuffer] : []))
}
