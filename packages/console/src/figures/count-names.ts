import { labelsIn, responsesIn } from '@sluice/core/internal'
import { durationBucket } from './quantiles.js'

/** The meaning of a count by its name: of decisions with these labels, of responses of other services, or of measured durations in a bucket. */
export interface CountMeaning {
  readonly labels: ReturnType<typeof labelsIn>
  readonly responses: ReturnType<typeof responsesIn>
  readonly bucket: number | undefined
  /** Whether this version does not know the name. */
  readonly isUnknown: boolean
}

export function meaningOf(name: string): CountMeaning {
  const labels = labelsIn(name)
  const responses = responsesIn(name)
  const bucket = labels ? undefined : durationBucket(name)
  // Others that begin so are times and numbers of processes, which are for the history alone.
  return {
    labels,
    responses,
    bucket,
    isUnknown: !labels && !responses && bucket === undefined && !name.startsWith('='),
  }
}
