/**
 * `@sluice/core/metrics`: what limiters and stores of this process do, counted in plain numbers. Exporters such as
 * `@sluice/prometheus` read them when they are asked.
 */

export { BATCH_BOUNDS, type Histogram, type StoreStats } from '../store/health.js'
export { METRICS } from './catalogue.js'
export { type Counting, startCounting } from './counting.js'
export { MEASURED_EVERY } from './counts.js'
export type {
  HistogramMetric,
  HistogramPoint,
  Labels,
  Metric,
  MetricDescription,
  NumberMetric,
  NumberPoint,
} from './described.js'
export { warnOfNoMeterProvider } from './exporter-warning.js'
export { DURATION_BOUNDS, WAIT_BOUNDS } from './policy-counts.js'
export type {
  AbuseCounts,
  DecisionCount,
  DurationCounts,
  PermitCounts,
  QueueCounts,
  ReportedCounts,
  Snapshot,
  StoreCounts,
  UseCounts,
  WarningCount,
} from './snapshot.js'
