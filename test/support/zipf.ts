export interface Zipf {
  readonly identities: number
  readonly draws: number
  readonly seed: number
}

/** Draws identities, the n-th with 1/n of the first's share, and returns how often each was drawn. */
export function zipf(
  { identities, draws, seed }: Zipf,
  drawn: (identity: string) => void,
): { readonly counts: ReadonlyMap<string, number>; readonly refusals: number } {
  const sums = new Float64Array(identities)
  for (let n = 0, sum = 0; n < identities; n++) {
    sum += 1 / (n + 1)
    sums[n] = sum
  }
  const random = randomOf(seed)
  const counts = new Map<string, number>()
  for (let n = 0; n < draws; n++) {
    const wanted = random() * (sums[identities - 1] as number)
    let low = 0
    for (let high = identities - 1; low < high; ) {
      const middle = (low + high) >>> 1
      if ((sums[middle] as number) < wanted) low = middle + 1
      else high = middle
    }
    const identity = `key=client ${low}`
    counts.set(identity, (counts.get(identity) ?? 0) + 1)
    drawn(identity)
  }
  return { counts, refusals: draws }
}

/** Mulberry32. */
export function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}
