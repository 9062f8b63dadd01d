import { SluiceError } from '@sluice/core'
import type { Registry } from 'prom-client'

export interface SluiceMetricsOptions {
  /** Where the metrics are registered. @default `register` of prom-client, its global registry */
  readonly register?: Registry
}

/**
 * The registry that is meant.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function registryOf(options: SluiceMetricsOptions, byDefault: Registry): Registry {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) throw invalid('options', 'an object')
  // An application that passes the registry itself would have its metrics in another one.
  const unknown = Object.keys(options).find((name) => name !== 'register')
  if (unknown !== undefined) throw invalid(unknown.slice(0, 40), 'none: the only option is register')
  const { register = byDefault } = options
  if (typeof register?.registerMetric !== 'function' || typeof register.getSingleMetric !== 'function') {
    throw invalid('register', 'a Registry of prom-client')
  }
  return register
}

function invalid(field: string, expected: string): SluiceError {
  return new SluiceError('INVALID_POLICY', `sluiceMetrics: ${field}: expected ${expected}`)
}
