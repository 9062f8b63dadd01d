import type { IpAddress } from '../util/ip-address.js'

/**
 * Ranges of addresses of one family, which may overlap: flat, sorted intervals, each with the smallest range that covers it.
 * All of it can be handed from one thread to another.
 */
export interface RangeTable {
  /** Words per address: 1 for IPv4, 4 for IPv6. */
  readonly width: 1 | 4
  /** The first address of each interval; it reaches to the next one. Sorted. */
  readonly starts: Uint32Array
  /** The first address of each `SAMPLED`-th interval: most of a search stays within these, which fit the processor's cache. */
  readonly samples: Uint32Array
  /** Which range each interval belongs to, -1 for none. */
  readonly owners: Int32Array
  /** The first and the last address of each range, sorted by the first. */
  readonly first: Uint32Array
  readonly last: Uint32Array
  /** When each range ends, in ms since 1970; infinite for those that do not. Undefined where none does. */
  readonly ends: Float64Array | undefined
  /** Which reason each range has, -1 for none. Undefined where none has one. */
  readonly reasons: Int32Array | undefined
}

/** Intervals per sample. */
export const SAMPLED = 64

/** Where in the table the smallest range is that holds an address now; -1 where there is none. */
export function findRange(table: RangeTable, address: IpAddress, now: () => number): number {
  const { owners, width, ends } = table
  if (owners.length === 0) return -1
  const at = width === 1 ? lastUpTo(table, address.a) : lastUpToWords(table, address)
  if (at < 0) return -1
  const owner = owners[at] as number
  if (owner < 0 || ends === undefined) return owner
  const time = now()
  if ((ends[owner] as number) > time) return owner
  // All addresses of an interval are in the same ranges, so what is found for one holds for the others.
  const next = smallestNow(table, address, ends, time)
  owners[at] = next
  return next
}

/** How many addresses a range holds. Numbers where they are exact. */
export function sizeOf({ width, first, last }: RangeTable, range: number): number | bigint {
  if (width === 1) return (last[range] as number) - (first[range] as number) + 1
  let size = 0n
  for (let i = 4 * range; i < 4 * range + 4; i++)
    size = (size << 32n) + BigInt((last[i] as number) - (first[i] as number))
  return size + 1n
}

/** The last interval that begins at or before a word; -1 where there is none. */
function lastUpTo({ starts, samples }: RangeTable, word: number): number {
  const sample = lastIn(samples, 0, samples.length, word)
  return sample < 0 ? -1 : lastIn(starts, sample * SAMPLED, Math.min(starts.length, (sample + 1) * SAMPLED), word)
}

function lastIn(words: Uint32Array, from: number, to: number, word: number): number {
  let low = from
  let high = to
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((words[middle] as number) <= word) low = middle + 1
    else high = middle
  }
  return low - 1
}

function lastUpToWords({ starts, samples }: RangeTable, address: IpAddress): number {
  const sample = lastWordsIn(samples, 0, samples.length >>> 2, address)
  if (sample < 0) return -1
  return lastWordsIn(starts, sample * SAMPLED, Math.min(starts.length >>> 2, (sample + 1) * SAMPLED), address)
}

function lastWordsIn(words: Uint32Array, from: number, to: number, { a, b, c, d }: IpAddress): number {
  let low = from
  let high = to
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isUpTo(words, 4 * middle, a, b, c, d)) low = middle + 1
    else high = middle
  }
  return low - 1
}

function isUpTo(words: Uint32Array, at: number, a: number, b: number, c: number, d: number): boolean {
  const w = words[at] as number
  if (w !== a) return w < a
  const x = words[at + 1] as number
  if (x !== b) return x < b
  const y = words[at + 2] as number
  if (y !== c) return y < c
  return (words[at + 3] as number) <= d
}

/** Looks through all ranges that begin early enough: once for each interval whose smallest range has ended. */
function smallestNow(table: RangeTable, { a, b, c, d }: IpAddress, ends: Float64Array, now: number): number {
  const { first, last, width } = table
  let found = -1
  for (let range = 0; range < ends.length; range++) {
    const at = range * width
    if (width === 1) {
      if ((first[at] as number) > a) break
      if ((last[at] as number) < a) continue
    } else {
      if (!isUpTo(first, at, a, b, c, d)) break
      if (!isFrom(last, at, a, b, c, d)) continue
    }
    if ((ends[range] as number) <= now) continue
    if (found < 0 || isSmaller(table, range, found)) found = range
  }
  return found
}

function isFrom(words: Uint32Array, at: number, a: number, b: number, c: number, d: number): boolean {
  const w = words[at] as number
  if (w !== a) return w > a
  const x = words[at + 1] as number
  if (x !== b) return x > b
  const y = words[at + 2] as number
  if (y !== c) return y > c
  return (words[at + 3] as number) >= d
}

/** Whether one range holds fewer addresses than another; of equal ones the one that holds for longer comes first. */
export function isSmaller(
  { width, first, last, ends }: Pick<RangeTable, 'width' | 'first' | 'last' | 'ends'>,
  one: number,
  other: number,
): boolean {
  const compared =
    width === 1 ? spread(first, last, one) - spread(first, last, other) : compareSpreads(first, last, one, other)
  if (compared !== 0) return compared < 0
  const endsAt = ends ? (ends[one] as number) : 0
  const otherEndsAt = ends ? (ends[other] as number) : 0
  return endsAt === otherEndsAt ? one < other : endsAt > otherEndsAt
}

function spread(first: Uint32Array, last: Uint32Array, at: number): number {
  return (last[at] as number) - (first[at] as number)
}

const spreadOne = new Uint32Array(4)
const spreadOther = new Uint32Array(4)

function compareSpreads(first: Uint32Array, last: Uint32Array, one: number, other: number): number {
  wordsBetween(first, last, 4 * one, spreadOne)
  wordsBetween(first, last, 4 * other, spreadOther)
  for (let i = 0; i < 4; i++) {
    const difference = (spreadOne[i] as number) - (spreadOther[i] as number)
    if (difference !== 0) return difference
  }
  return 0
}

function wordsBetween(first: Uint32Array, last: Uint32Array, at: number, into: Uint32Array): void {
  let borrow = 0
  for (let i = 3; i >= 0; i--) {
    const difference = (last[at + i] as number) - (first[at + i] as number) - borrow
    borrow = difference < 0 ? 1 : 0
    into[i] = difference
  }
}
