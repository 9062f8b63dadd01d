/**
 * `@sluice/simulate`: plays access logs by a document of policies, and reports who would be refused.
 */

export type {
  ClientAtLimit,
  LimitStep,
  Proposal,
  ProposedGroup,
  ProposedLimit,
  ProposedWindow,
  WindowOfGroup,
} from './proposal/proposal.js'
export { type ProposalReport, type ProposeOptions, propose } from './propose.js'
export type { LogSource } from './read/log-source.js'
export type { LogRecord } from './record.js'
export { PAGE_START, pageOf } from './report/html/page.js'
export { documentText } from './report/proposal-text.js'
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
  Split,
  SplitReport,
  Timeline,
  TradeOff,
} from './report.js'
export { type SimulateOptions, simulate } from './simulate.js'
export { SimulationError } from './simulation-error.js'
