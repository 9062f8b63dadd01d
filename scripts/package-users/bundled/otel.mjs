// Metrics of a limiter, as OpenTelemetry reads them.
import assert from 'node:assert/strict'
import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics'
import { createLimiter } from '@sluice/core'
import { sluiceMetrics } from '@sluice/otel'
import { main } from './support.mjs'

/** Collects on demand. */
class Reader extends MetricReader {
  async onShutdown() {}
  async onForceFlush() {}
}

main(async () => {
  const reader = new Reader()
  sluiceMetrics({ meterProvider: new MeterProvider({ readers: [reader] }) })
  const limiter = createLimiter({ name: 'mail', limit: 1, window: '1h' })
  for (let n = 0; n < 2; n++) await limiter.consume('ann')
  const { resourceMetrics } = await reader.collect()
  const points = resourceMetrics.scopeMetrics.flatMap(({ metrics }) => metrics).flatMap(({ dataPoints }) => dataPoints)
  assert(points.some(({ attributes }) => Object.values(attributes).includes('mail')))
})
