import { isSmaller, type RangeTable } from './range-table.js'

/** Ranges of one family as they are read: `width` words for each end, one range after the other. */
export interface UnsortedRanges {
  readonly width: 1 | 4
  readonly first: readonly number[]
  readonly last: readonly number[]
  readonly ends: readonly number[]
  readonly reasons: readonly number[]
}

/** Sorts the ranges and finds the smallest one for every address, in one walk from the first address to the last. */
export function buildRangeTable(given: UnsortedRanges): RangeTable {
  const ranges = sorted(given)
  const { width, first, last } = ranges
  const count = first.length / width
  const starts: number[] = []
  const owners: number[] = []
  const active = new Heap((one, other) => isSmaller(ranges, one, other))

  const begin = (words: ArrayLike<number>, at: number) => {
    const owner = active.top ?? -1
    if (owner === (owners.at(-1) ?? -1)) return
    // A range that begins where another ended.
    if (starts.length > 0 && isSame(starts, starts.length - width, words, at, width)) owners[owners.length - 1] = owner
    else {
      for (let i = 0; i < width; i++) starts.push(words[at + i] as number)
      owners.push(owner)
    }
  }
  const next = new Uint32Array(width)
  /** Lets ranges end that end before the range `until`, or at all. */
  const advance = (until: number) => {
    for (;;) {
      const top = active.top
      if (top === undefined) return
      if (until >= 0 && !isBefore(last, top * width, first, until * width, width)) return
      if (!increment(last, top * width, next)) return
      while (active.top !== undefined && isBefore(last, active.top * width, next, 0, width)) active.pop()
      begin(next, 0)
    }
  }
  for (let range = 0; range < count; ) {
    advance(range)
    const at = range * width
    while (range < count && isSame(first, range * width, first, at, width)) active.push(range++)
    // What has ended unnoticed, below a smaller range, must not come up again.
    while (active.top !== undefined && isBefore(last, active.top * width, first, at, width)) active.pop()
    begin(first, at)
  }
  advance(-1)
  return { ...ranges, starts: Uint32Array.from(starts), owners: Int32Array.from(owners) }
}

function sorted({ width, first, last, ends, reasons }: UnsortedRanges): Omit<RangeTable, 'starts' | 'owners'> {
  const count = first.length / width
  const order = Uint32Array.from({ length: count }, (_, i) => i)
  order.sort((one, other) => {
    for (let i = 0; i < width; i++) {
      const difference = (first[one * width + i] as number) - (first[other * width + i] as number)
      if (difference !== 0) return difference
    }
    return one - other
  })
  const inOrder = (words: readonly number[]) => {
    const moved = new Uint32Array(count * width)
    for (let n = 0; n < count; n++) {
      const from = (order[n] as number) * width
      for (let i = 0; i < width; i++) moved[n * width + i] = words[from + i] as number
    }
    return moved
  }
  const doEnd = ends.some((end) => end !== Number.POSITIVE_INFINITY)
  const haveReasons = reasons.some((reason) => reason >= 0)
  return {
    width,
    first: inOrder(first),
    last: inOrder(last),
    ends: doEnd ? Float64Array.from(order, (i) => ends[i] as number) : undefined,
    reasons: haveReasons ? Int32Array.from(order, (i) => reasons[i] as number) : undefined,
  }
}

function isSame(one: ArrayLike<number>, at: number, other: ArrayLike<number>, otherAt: number, width: number): boolean {
  for (let i = 0; i < width; i++) if (one[at + i] !== other[otherAt + i]) return false
  return true
}

function isBefore(
  one: ArrayLike<number>,
  at: number,
  other: ArrayLike<number>,
  otherAt: number,
  width: number,
): boolean {
  for (let i = 0; i < width; i++) {
    const difference = (one[at + i] as number) - (other[otherAt + i] as number)
    if (difference !== 0) return difference < 0
  }
  return false
}

/** The address behind another; false behind the last. */
function increment(words: ArrayLike<number>, at: number, into: Uint32Array): boolean {
  for (let i = 0; i < into.length; i++) into[i] = words[at + i] as number
  for (let i = into.length - 1; i >= 0; i--) {
    into[i] = (into[i] as number) + 1
    if (into[i] !== 0) return true
  }
  return false
}

/** A binary heap of numbers, least first. */
class Heap {
  readonly #items: number[] = []
  readonly #isBefore: (one: number, other: number) => boolean

  constructor(isBefore: (one: number, other: number) => boolean) {
    this.#isBefore = isBefore
  }

  get top(): number | undefined {
    return this.#items[0]
  }

  push(item: number): void {
    const items = this.#items
    let at = items.push(item) - 1
    while (at > 0) {
      const parent = (at - 1) >>> 1
      if (!this.#isBefore(item, items[parent] as number)) break
      items[at] = items[parent] as number
      at = parent
    }
    items[at] = item
  }

  pop(): void {
    const items = this.#items
    const item = items.pop()
    if (item === undefined || items.length === 0) return
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= items.length) break
      if (child + 1 < items.length && this.#isBefore(items[child + 1] as number, items[child] as number)) child++
      if (!this.#isBefore(items[child] as number, item)) break
      items[at] = items[child] as number
      at = child
    }
    items[at] = item
  }
}
