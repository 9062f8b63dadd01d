/**
 * `@sluice/simulate`: plays access logs by a document of policies, and reports who would be refused.
 */

export type { LogSource } from './read/log-source.js'
export type { LogRecord } from './record.js'
export { PAGE_START, pageOf } from './report/html/page.js'
export { withPseudonyms } from './report/pseudonyms.js'
export { textOf } from './report/text.js'
export type {
  ClientCounts,
  Comparison,
  Counts,
  Interval,
  LimitReport,
  LogSummary,
  PolicyReport,
  RedisCost,
  RefusedClient,
  SimulationReport,
  Timeline,
  TradeOff,
} from './report.js'
export { type SimulateOptions, simulate } from './simulate.js'
export { SimulationError } from './simulation-error.js'
