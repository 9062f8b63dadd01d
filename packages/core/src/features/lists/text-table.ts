import { randomFillSync } from 'node:crypto'
import { hash32 } from '../../util/hash.js'

/** Many texts as one, which one thread hands to another at no cost. */
export interface TextPool {
  readonly text: string
  /** Where each begins, and where the last one ends. */
  readonly offsets: Uint32Array
}

export function poolOf(texts: readonly string[]): TextPool {
  const offsets = new Uint32Array(texts.length + 1)
  for (let i = 0; i < texts.length; i++) offsets[i + 1] = (offsets[i] as number) + (texts[i] as string).length
  return { text: texts.join(''), offsets }
}

export function textAt({ text, offsets }: TextPool, number: number): string {
  return text.slice(offsets[number], offsets[number + 1])
}

/**
 * The numbers of different texts, which are found by hash, with linear probing. A `Map` of 100,000 would be copied when another thread
 * hands it over, for some 20 ms; a binary search in sorted texts takes more than a µs.
 */
export interface TextTable {
  readonly pool: TextPool
  /** The number of a text by its hash, -1 where there is none. A power of two long, and at most half full. */
  readonly slots: Int32Array
  /** Random: a client that could choose texts of one hash would slow down every look-up. */
  readonly seed: number
}

/** Builds the table of texts that differ. */
export function buildTextTable(texts: readonly string[]): TextTable {
  const table = {
    pool: poolOf(texts),
    slots: new Int32Array(2 ** Math.ceil(Math.log2(2 * texts.length))).fill(-1),
    seed: randomFillSync(new Int32Array(1))[0] as number,
  }
  texts.forEach((text, i) => {
    table.slots[slotOf(table, text)] = i
  })
  return table
}

/** The number of a text; -1 where it is not there. */
export function findText(table: TextTable, text: string): number {
  return table.slots[slotOf(table, text)] as number
}

/** The slot that holds a text, or that it would be put into. */
function slotOf({ pool, slots, seed }: TextTable, text: string): number {
  let at = hash32(text, seed) & (slots.length - 1)
  for (;;) {
    const found = slots[at] as number
    if (found < 0 || isTextAt(pool, found, text)) return at
    at = (at + 1) & (slots.length - 1)
  }
}

function isTextAt({ text: all, offsets }: TextPool, number: number, text: string): boolean {
  const start = offsets[number] as number
  return (offsets[number + 1] as number) - start === text.length && all.startsWith(text, start)
}
