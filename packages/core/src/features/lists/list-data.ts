import { getOrInsert } from '../../util/get-or-insert.js'
import type { IpRange } from '../../util/ip-address.js'
import { RangeTree, type RangeTreeData } from '../../util/range-tree.js'
import { buildTextTable, poolOf, type TextPool, type TextTable } from './text-table.js'

/**
 * The contents of a list in typed arrays. The thread that reads a file hands them over without holding the event loop. A copy
 * of 100,000 entries would hold it for tens of ms.
 */
export interface ListData {
  readonly v4: Entries<RangeTreeData>
  readonly v6: Entries<RangeTreeData>
  readonly texts: readonly (readonly [kind: string, entries: Entries<TextTable>])[]
  /** The first is empty. */
  readonly reasons: TextPool
  /** How many entries were read. */
  readonly size: number
}

/** Entries by what numbers them. */
export interface Entries<Index> {
  readonly index: Index
  /** When each ends, in ms since 1970; infinite for those that do not. */
  readonly ends: Float64Array
  /** Which reason each has. */
  readonly reasons: Int32Array
}

/** The details of an entry, beside the value that it matches. */
export interface EntryDetails {
  /** As it is written: the first 200 characters of a text. Anything else is dropped. */
  readonly reason: unknown
  /** In ms since 1970. */
  readonly expiresAt: number | undefined
}

const NO_DETAILS: EntryDetails = { reason: undefined, expiresAt: undefined }
/** As long as a block's reason may be. */
const LONGEST_REASON = 200

class Rows<Index> {
  readonly index: Index
  readonly #ends: number[] = []
  readonly #reasons: number[] = []

  constructor(index: Index) {
    this.index = index
  }

  /** Among equal entries the one that holds for longest counts. */
  set(number: number, end: number, reason: number): void {
    if (end <= (this.#ends[number] ?? Number.NEGATIVE_INFINITY)) return
    this.#ends[number] = end
    this.#reasons[number] = reason
  }

  entries<Built>(index: Built): Entries<Built> {
    return { index, ends: Float64Array.from(this.#ends), reasons: Int32Array.from(this.#reasons) }
  }
}

/** Collects entries in any order, and makes the data of a list from them. */
export class ListBuilder {
  readonly #v4 = new Rows(new RangeTree(1))
  readonly #v6 = new Rows(new RangeTree(4))
  readonly #texts = new Map<string, Rows<Map<string, number>>>()
  readonly #reasons = new Map([['', 0]])
  #size = 0

  addRange(range: IpRange, details: EntryDetails = NO_DETAILS): void {
    const rows = range.isIPv4 ? this.#v4 : this.#v6
    this.#set(rows, rows.index.add(range), details)
  }

  addText(kind: string, text: string, details: EntryDetails = NO_DETAILS): void {
    const rows = getOrInsert(this.#texts, kind, () => new Rows(new Map<string, number>()))
    this.#set(rows, numberOf(rows.index, text), details)
  }

  build(): ListData {
    return {
      v4: this.#v4.entries(this.#v4.index.data()),
      v6: this.#v6.entries(this.#v6.index.data()),
      texts: [...this.#texts].map(
        ([kind, rows]) => [kind, rows.entries(buildTextTable([...rows.index.keys()]))] as const,
      ),
      reasons: poolOf([...this.#reasons.keys()]),
      size: this.#size,
    }
  }

  #set(rows: Rows<unknown>, number: number, { reason, expiresAt = Number.POSITIVE_INFINITY }: EntryDetails): void {
    this.#size++
    const text = typeof reason === 'string' ? reason.slice(0, LONGEST_REASON) : ''
    rows.set(number, expiresAt, numberOf(this.#reasons, text))
  }
}

/** The number of a text among others, from 0, in the order in which they came. */
function numberOf(numbers: Map<string, number>, text: string): number {
  const number = numbers.get(text) ?? numbers.size
  if (number === numbers.size) numbers.set(text, number)
  return number
}

/** The buffers in some data, which go to another thread with it. */
export function buffersIn(data: unknown): ArrayBuffer[] {
  if (ArrayBuffer.isView(data)) return [data.buffer as ArrayBuffer]
  return typeof data === 'object' && data !== null ? Object.values(data).flatMap(buffersIn) : []
}
