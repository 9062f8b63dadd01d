import { isTextAt, poolOf, type TextPool } from './text-pool.js'

/** Texts that are found by hash, with linear probing. All of it can be handed from one thread to another. */
export interface TextTable {
  readonly pool: TextPool
  /** The number of a text by its hash, -1 where there is none. A power of two long, and at most half full. */
  readonly slots: Int32Array
  /** Not to be guessed: a client that could choose texts of one hash would slow down every look-up. */
  readonly seed: number
  /** When each text ends, in ms since 1970; infinite for those that do not. Undefined where none does. */
  readonly ends: Float64Array | undefined
  /** Which reason each text has, -1 for none. Undefined where none has one. */
  readonly reasons: Int32Array | undefined
}

/** Texts as they are read. */
export interface UnsortedTexts {
  readonly texts: readonly string[]
  readonly ends: readonly number[]
  readonly reasons: readonly number[]
}

/** Of equal texts the one that holds for longest is kept. */
export function buildTextTable({ texts, ends, reasons }: UnsortedTexts): TextTable {
  const pool = poolOf(texts)
  const slots = new Int32Array(slotsFor(texts.length)).fill(-1)
  const seed = crypto.getRandomValues(new Int32Array(1))[0] as number
  for (let i = 0; i < texts.length; i++) {
    const at = slotOf(slots, pool, seed, texts[i] as string)
    const other = slots[at] as number
    if (other < 0 || (ends[i] as number) > (ends[other] as number)) slots[at] = i
  }
  const doEnd = ends.some((end) => end !== Number.POSITIVE_INFINITY)
  const haveReasons = reasons.some((reason) => reason >= 0)
  return {
    pool,
    slots,
    seed,
    ends: doEnd ? Float64Array.from(ends) : undefined,
    reasons: haveReasons ? Int32Array.from(reasons) : undefined,
  }
}

/** The number of a text that holds now, -1 where there is none. */
export function findText({ slots, pool, seed, ends }: TextTable, text: string, now: () => number): number {
  const found = slots[slotOf(slots, pool, seed, text)] as number
  return found >= 0 && ends !== undefined && (ends[found] as number) <= now() ? -1 : found
}

function slotsFor(count: number): number {
  let slots = 2
  while (slots < 2 * count) slots *= 2
  return slots
}

/** The slot that holds a text, or that it would be put into. */
function slotOf(slots: Int32Array, pool: TextPool, seed: number, text: string): number {
  const mask = slots.length - 1
  let at = hashWith(seed, text) & mask
  for (;;) {
    const found = slots[at] as number
    if (found < 0 || isTextAt(pool, found, text)) return at
    at = (at + 1) & mask
  }
}

/** FNV-1a over UTF-16 units, mixed as in MurmurHash3. */
function hashWith(seed: number, text: string): number {
  let hash = seed ^ 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
