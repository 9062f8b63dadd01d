/**
 * `@sluice/cli/simulate`: plays access logs by a document of policies, as `sluice simulate` does.
 */

export type { LogRecord } from './record.js'
export type {
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
