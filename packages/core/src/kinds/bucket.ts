import { readReport } from '../kernels/bucket.js'
import { BucketTable } from '../memory/bucket-table.js'
import { SluiceError } from '../util/errors.js'
import type { CellKind } from './kind.js'
import { asTheyAre, NO_MORE_RULES } from './usual.js'

type Params = [limit: number, windowMs: number, capacity: number, stepMs: number]

/** Parameters: limit, windowMs, capacity, stepMs. */
export const BUCKET: CellKind = {
  ...NO_MORE_RULES,
  kernel: 'bucket',
  algorithms: ['gcra', 'tokenBucket', 'leakyBucket'],
  table: BucketTable,
  isUnits: (param) => param === 0 || param === 2,
  ids: {
    bucket: {
      numbers: 4,
      params: asTheyAre,
      limits: ([limit = 0, windowMs = 0, capacity = 0]) => [[limit, windowMs, capacity]],
    },
  },
  canBeJoint: true,
  readReport,
  // The wait grows evenly up to that for the capacity. After the limit was lowered, that is faster than by the limit.
  waitForMore(params, { units: refused, waitMs, resetMs }, units) {
    const [, , capacity, stepMs] = params as Params
    const growsMs = ((resetMs - waitMs) * (units - refused)) / (capacity - refused)
    return Math.min(resetMs, waitMs + Math.ceil(growsMs / stepMs) * stepMs)
  },
  usedUntil(params, resetMs) {
    const [limit, windowMs, , stepMs] = params as Params
    return Math.floor(((Math.ceil(resetMs / stepMs) - 1) * stepMs * limit) / windowMs) + 1
  },
  chargedAt(params, { used, at, resetMs }) {
    const [limit, windowMs, , stepMs] = params as Params
    return stepMs === 1 ? Math.min(at, at + resetMs - Math.floor((used * windowMs) / limit)) : at
  },
  lease: {
    tighten(where, params, ttlMs) {
      const [limit, windowMs, capacity, stepMs] = params as Params
      // Leases of buckets that refill at intervals end with the interval, so nothing refills during a lease.
      if (stepMs !== 1 || capacity === 0) return undefined
      const left = capacity - Math.ceil((ttlMs * limit) / windowMs)
      if (left >= 1) return { params: [limit, windowMs, left, stepMs], capacity: left }
      throw new SluiceError(
        'INVALID_POLICY',
        `${where}: lease: ttl: expected one in which less than the capacity of ${capacity} comes back, got ${ttlMs} ms`,
      )
    },
    windowLength: intervalLength,
    // Infinite without intervals.
    windowEnd: (params, _, now) => (Math.floor(now / intervalLength(params)) + 1) * intervalLength(params),
    receiptAlone: (params, receipt, units) => Math.min(receipt, units * (params as Params)[1]),
  },
}

/** The refill interval of a bucket in ms; infinite if it drains greedily. */
function intervalLength(params: readonly number[]): number {
  const [, , , stepMs] = params as Params
  return stepMs === 1 ? Number.POSITIVE_INFINITY : stepMs
}
