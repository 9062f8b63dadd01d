import { readReport } from '../kernels/concurrency.js'
import { ConcurrencyTable } from '../memory/concurrency-table.js'
import type { CellKind } from './kind.js'
import { asTheyAre, isFirst, NO_LEASE_RULES, NO_MORE_RULES, oneLimit, windowBefore } from './usual.js'

/** Parameters: limit, ttlMs. */
export const CONCURRENCY: CellKind = {
  ...NO_MORE_RULES,
  kernel: 'concurrency',
  algorithms: ['concurrency'],
  table: ConcurrencyTable,
  isUnits: isFirst,
  hasPermits: true,
  ids: { concurrency: { numbers: 2, params: asTheyAre, limits: oneLimit } },
  canBeJoint: false,
  readReport,
  chargedAt: windowBefore,
  lease: NO_LEASE_RULES,
}
