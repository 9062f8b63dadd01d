import { isSmaller, type RangeTable, SAMPLED } from './range-table.js'

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
  const { width, first, last, ends } = ranges
  const count = first.length / width
  const byLast = orderOf(count, last, width)
  const starts: number[] = []
  const owners: number[] = []
  const active = new Heap((one, other) => isSmaller(ranges, one, other))

  const begin = (words: ArrayLike<number>, at: number) => {
    while (active.top !== undefined && isBefore(last, active.top * width, words, at, width)) active.pop()
    const owner = active.top ?? -1
    // Where another range begins at which one has ended, it is one interval that begins there.
    if (starts.length > 0 && isSame(starts, starts.length - width, words, at, width)) {
      owners[owners.length - 1] = owner
      return
    }
    // Where ranges end by time, all addresses of an interval have to be in the same ranges, not just in the same smallest one.
    if (ends === undefined && owner === (owners.at(-1) ?? -1)) return
    for (let i = 0; i < width; i++) starts.push(words[at + i] as number)
    owners.push(owner)
  }

  const behind = new Uint32Array(width)
  let begun = 0
  let over = 0
  while (begun < count || over < count) {
    const ended = over < count ? (byLast[over] as number) * width : -1
    if (ended >= 0 && (begun === count || isBefore(last, ended, first, begun * width, width))) {
      // The last of all addresses has none behind it.
      if (!increment(last, ended, behind)) break
      while (over < count && isSame(last, (byLast[over] as number) * width, last, ended, width)) over++
      begin(behind, 0)
    } else {
      const at = begun * width
      while (begun < count && isSame(first, begun * width, first, at, width)) active.push(begun++)
      begin(first, at)
    }
  }
  return {
    ...ranges,
    starts: Uint32Array.from(starts),
    samples: Uint32Array.from(starts.filter((_, i) => Math.floor(i / width) % SAMPLED === 0)),
    owners: Int32Array.from(owners),
  }
}

function sorted({
  width,
  first,
  last,
  ends,
  reasons,
}: UnsortedRanges): Omit<RangeTable, 'starts' | 'samples' | 'owners'> {
  const count = first.length / width
  const order = orderOf(count, first, width)
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

/** The numbers of addresses, in their order. */
function orderOf(count: number, words: ArrayLike<number>, width: number): Uint32Array {
  const order = Uint32Array.from({ length: count }, (_, i) => i)
  return order.sort((one, other) => {
    for (let i = 0; i < width; i++) {
      const difference = (words[one * width + i] as number) - (words[other * width + i] as number)
      if (difference !== 0) return difference
    }
    return one - other
  })
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
