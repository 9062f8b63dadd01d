import { type BatchObservableResult, createNoopMeter, type MeterProvider, metrics } from '@opentelemetry/api'
import { emitWarning } from '@sluice/core/internal'
import { startCounting } from '@sluice/core/metrics'
import { instrumentsOf } from './instruments.js'
import { providerOf, type SluiceMetricsOptions } from './options.js'

export interface SluiceMetrics {
  /** Ends the observation, and counting where nothing else reads the counts. A second call does nothing. */
  stop(): void
}

/**
 * Functions that end the observation by an earlier call, by provider. One map serves every copy of this package in the process.
 */
const STARTED = Symbol.for('@sluice/otel: started')
const shared = globalThis as { [STARTED]?: WeakMap<MeterProvider, () => void> }

/**
 * Exports the metrics of every limiter and store of this process, also of those that are made later. They are counted from the
 * first call on, in plain numbers, and read when a reader of the provider collects.
 *
 * Call it once the SDK has started. A second call with the same provider replaces the first; another provider has all
 * metrics, too.
 *
 * ```ts
 * new NodeSDK({ metricReaders: [reader] }).start()
 * sluiceMetrics()
 * ```
 *
 * @throws SluiceError `INVALID_POLICY` for a provider that is none
 */
export function sluiceMetrics(options: SluiceMetricsOptions = {}): SluiceMetrics {
  const provider = providerOf(options, () => metrics.getMeterProvider())
  const meter = provider.getMeter('@sluice/otel')
  if (meter === createNoopMeter()) {
    emitWarning(
      'SLUICE_NO_METER_PROVIDER',
      'sluiceMetrics: no MeterProvider is registered: start the OpenTelemetry SDK before this call, or pass meterProvider',
    )
    return { stop() {} }
  }
  shared[STARTED] ??= new WeakMap()
  // A record by each of two calls would count every value of a histogram twice.
  shared[STARTED].get(provider)?.()

  const counting = startCounting()
  const { observables, observe } = instrumentsOf(meter, counting.read())
  const callback = (result: BatchObservableResult) => observe(counting.read(), result)
  meter.addBatchObservableCallback(callback, [...observables])
  let isStopped = false
  const stop = () => {
    if (isStopped) return
    isStopped = true
    meter.removeBatchObservableCallback(callback, [...observables])
    counting.stop()
    if (shared[STARTED]?.get(provider) === stop) shared[STARTED].delete(provider)
  }
  shared[STARTED].set(provider, stop)
  return { stop }
}
