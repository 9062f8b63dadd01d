import { readReport, WIDE, WITH_REFUSALS } from '../kernels/segments.js'
import { SegmentsTable } from '../memory/segments-table.js'
import type { CellKind } from './kind.js'
import { asTheyAre, isFirst, NO_LEASE_RULES, NO_MORE_RULES, oneLimit, windowBefore } from './usual.js'

/** Parameters: limit, windowMs, segments, edge mode (plus `WITH_REFUSALS` if refusals count). */
export const SEGMENTS: CellKind = {
  ...NO_MORE_RULES,
  kernel: 'segments',
  algorithms: ['slidingWindow'],
  table: SegmentsTable,
  isUnits: isFirst,
  ids: { sliding: { numbers: 4, params: asTheyAre, limits: oneLimit } },
  canBeJoint: true,
  readReport,
  countRefusals: countAll,
  countInFull: countAll,
  widen: (params) => params.with(3, (params[3] as number) + WIDE),
  chargedAt: windowBefore,
  lease: {
    ...NO_LEASE_RULES,
    windowLength: segmentLength,
    // The receipt is the number of the segment.
    windowEnd: (params, receipt) => (receipt + 1) * segmentLength(params),
  },
}

function countAll(params: readonly number[]): readonly number[] {
  return params.with(3, (params[3] as number) + WITH_REFUSALS)
}

function segmentLength([, windowMs, segments]: readonly number[]): number {
  return (windowMs as number) / (segments as number)
}
