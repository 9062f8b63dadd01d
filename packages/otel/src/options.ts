import type { MeterProvider } from '@opentelemetry/api'
import { SluiceError } from '@sluice/core'

export interface SluiceMetricsOptions {
  /** Makes the instruments. @default the global one, which an SDK registers when it starts */
  readonly meterProvider?: MeterProvider
}

/**
 * The provider that is meant.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function providerOf(options: SluiceMetricsOptions, byDefault: () => MeterProvider): MeterProvider {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) throw invalid('options', 'an object')
  const unknown = Object.keys(options).find((name) => name !== 'meterProvider')
  if (unknown !== undefined) throw invalid(unknown.slice(0, 40), 'none: the only option is meterProvider')
  const { meterProvider = byDefault() } = options
  if (typeof meterProvider?.getMeter !== 'function') throw invalid('meterProvider', 'a MeterProvider of OpenTelemetry')
  return meterProvider
}

function invalid(field: string, expected: string): SluiceError {
  return new SluiceError('INVALID_POLICY', `sluiceMetrics: ${field}: expected ${expected}`)
}
