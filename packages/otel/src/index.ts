export type { SluiceMetricsOptions } from './options.js'
export { type SluiceMetrics, sluiceMetrics } from './sluice-metrics.js'
