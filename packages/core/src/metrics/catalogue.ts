import type { Metric } from './described.js'
import { POLICY_METRICS } from './policy-metrics.js'
import { STORE_METRICS } from './store-metrics.js'

/** Every metric, for exporters: what it is called, and how it is read from a snapshot. */
export const METRICS: readonly Metric[] = [...POLICY_METRICS, ...STORE_METRICS]
