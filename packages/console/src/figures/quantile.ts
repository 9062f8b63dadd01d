import type { RoundTrip } from './answers.js'

/** The smallest bound that this share of values is at most; `null` above all bounds, or without values. */
export function quantile(bounds: readonly number[], counts: readonly number[], share: number): number | null {
  const all = sumOf(counts)
  if (all === 0) return null
  let left = all * share
  const bucket = counts.findIndex((count) => {
    left -= count
    return left <= 0
  })
  return bounds[bucket] ?? null
}

export function roundTripIn(bounds: readonly number[], counts: readonly number[]): RoundTrip {
  return { p50: quantile(bounds, counts, 0.5), p99: quantile(bounds, counts, 0.99), measured: sumOf(counts) }
}

const sumOf = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count, 0)
