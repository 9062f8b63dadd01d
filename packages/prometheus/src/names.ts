import type { MetricDescription } from '@sluice/core/metrics'

/** What Prometheus calls units; what is counted has none in its name. */
const UNITS: Readonly<Record<string, string>> = { s: '_seconds', By: '_bytes', '1': '_ratio' }

/** The name of a metric in Prometheus: `sluice.decision.duration` in seconds is `sluice_decision_duration_seconds`. */
export function prometheusName({ name, unit, type }: MetricDescription): string {
  return name.replaceAll('.', '_') + (UNITS[unit] ?? '') + (type === 'counter' ? '_total' : '')
}
