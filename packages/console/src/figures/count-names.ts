import { labelsIn } from '@sluice/core/internal'
import { durationBucket } from './quantiles.js'

/** The meaning of a count by its name: of decisions with these labels, or of measured durations in a bucket. */
export interface CountMeaning {
  readonly labels?: NonNullable<ReturnType<typeof labelsIn>>
  readonly bucket?: number
  /** Whether this version does not know the name. */
  readonly isUnknown?: boolean
}

export function meaningOf(name: string): CountMeaning {
  const labels = labelsIn(name)
  if (labels) return { labels }
  const bucket = durationBucket(name)
  if (bucket !== undefined) return { bucket }
  // Others that begin so are times and numbers of processes, which are for the history alone.
  return { isUnknown: !name.startsWith('=') }
}
