import { readReport } from '../kernels/log.js'
import { LogTable } from '../memory/log-table.js'
import { exactProduct } from '../util/validate.js'
import type { CellKind, LimitInId } from './kind.js'
import { NO_LEASE_RULES, NO_MORE_RULES, windowBefore } from './usual.js'

/** Parameters: the largest limit, the longest window, then limit and window of each limit that shares the log. */
export const LOG: CellKind = {
  ...NO_MORE_RULES,
  kernel: 'log',
  algorithms: ['slidingLog'],
  table: LogTable,
  isUnits: (param) => param % 2 === 0,
  ids: { log: { numbers: 2, params: paramsIn, limits: limitsIn } },
  canBeJoint: false,
  readReport,
  chargedAt: windowBefore,
  lease: {
    ...NO_LEASE_RULES,
    tighten(where, params, ttlMs) {
      const [limit = 0, windowMs = 0] = params
      exactProduct(where, 'lease', limit, windowMs + ttlMs)
      return { params: params.map((param, i) => (i % 2 === 0 ? param : param + ttlMs)), capacity: limit }
    },
  },
}

/** The largest limit and the longest window, then limit and window of each limit of the log. */
function paramsIn(numbers: readonly number[]): readonly number[] {
  const limits = limitsIn(numbers)
  return [Math.max(...limits.map(([limit]) => limit)), Math.max(...limits.map(([, windowMs]) => windowMs)), ...numbers]
}

function limitsIn(numbers: readonly number[]): readonly LimitInId[] {
  return Array.from({ length: Math.floor(numbers.length / 2) }, (_, i) => {
    const [limit = 0, windowMs = 0] = numbers.slice(2 * i)
    return [limit, windowMs, limit]
  })
}
