import { DURATION } from '@sluice/core/internal'
import { DURATION_BOUNDS } from '@sluice/core/metrics'
import type { RoundTrip } from './answers.js'
import { roundTripIn } from './quantile.js'

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

export const roundTripOf = (counts: readonly number[]): RoundTrip => roundTripIn(DURATION_BOUNDS, counts)
