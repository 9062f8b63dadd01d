/**
 * `@sluice/core/metrics`: counts of the limiters and stores of this process, in plain numbers. Exporters such as
 * `@sluice/prometheus` read them on collection.
 */

export { type Counting, METRICS, startCounting } from '../metrics/counting.js'
export { MEASURED_EVERY } from '../metrics/counts.js'
export type {
  HistogramMetric,
  HistogramPoint,
  Labels,
  Metric,
  MetricDescription,
  NumberMetric,
  NumberPoint,
} from '../metrics/described.js'
export { DURATION_BOUNDS, WAIT_BOUNDS } from '../metrics/policy-counts.js'
export type {
  AbuseCounts,
  DecisionCount,
  DurationCounts,
  OutboundCounts,
  PermitCounts,
  QueueCounts,
  ReportedCounts,
  Snapshot,
  StoreCounts,
  UnitCounts,
  UseCounts,
  WarningCount,
} from '../metrics/snapshot.js'
export { BATCH_BOUNDS, type Histogram, type StoreStats } from '../store/health.js'
