import { DURATION } from '@sluice/core/internal'
import { DURATION_BOUNDS } from '@sluice/core/metrics'
import type { RoundTrip } from './answers.js'

/** The smallest bound that this share of values is at most; `null` above all bounds, or without values. */
export function quantile(bounds: readonly number[], counts: readonly number[], share: number): number | null {
  const all = counts.reduce((sum, count) => sum + count, 0)
  if (all === 0) return null
  let left = all * share
  const bucket = counts.findIndex((count) => {
    left -= count
    return left <= 0
  })
  return bounds[bucket] ?? null
}

/** Counts of durations by their buckets. */
export function emptyDurations(): number[] {
  return new Array<number>(DURATION_BOUNDS.length + 1).fill(0)
}

/** The bucket of a count by its name; undefined for another name. */
export function durationBucket(name: string): number | undefined {
  if (!name.startsWith(DURATION)) return undefined
  const bucket = Number(name.slice(DURATION.length))
  return Number.isInteger(bucket) && bucket >= 0 && bucket <= DURATION_BOUNDS.length ? bucket : undefined
}

export function roundTripOf(counts: readonly number[]): RoundTrip {
  return {
    p50: quantile(DURATION_BOUNDS, counts, 0.5),
    p99: quantile(DURATION_BOUNDS, counts, 0.99),
    measured: counts.reduce((sum, count) => sum + count, 0),
  }
}
