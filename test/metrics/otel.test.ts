// Runs alone: it reads the figures of all stores of its process.
import {
  AggregationTemporality,
  DataPointType,
  type Histogram,
  InMemoryMetricExporter,
  MeterProvider,
  type MetricData,
  MetricReader,
  PeriodicExportingMetricReader,
  type PushMetricExporter,
} from '@opentelemetry/sdk-metrics'
import { createLimiter } from '@sluice/core'
import { METRICS } from '@sluice/core/metrics'
import { type SluiceMetrics, sluiceMetrics } from '@sluice/otel'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { warningsDuring } from '../support/process-events.js'
import { until } from '../support/until.js'

/** Collects on demand. */
class Reader extends MetricReader {
  protected override async onShutdown(): Promise<void> {}
  protected override async onForceFlush(): Promise<void> {}

  async metrics(): Promise<readonly MetricData[]> {
    const { resourceMetrics, errors } = await this.collect()
    expect(errors).toEqual([])
    return resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics)
  }
}

let reader: Reader
let meterProvider: MeterProvider
let metrics: SluiceMetrics
beforeEach(() => {
  reader = new Reader()
  meterProvider = new MeterProvider({ readers: [reader] })
  metrics = sluiceMetrics({ meterProvider })
})
afterEach(async () => {
  metrics.stop()
  await meterProvider.shutdown()
})

let made = 0
const newName = () => `policy-${++made}`

async function ask(name: string, times: number, limit: number): Promise<void> {
  const limiter = createLimiter({ name, limit, window: '1h' })
  for (let n = 0; n < times; n++) await limiter.consume('ann')
}

/** The values of a metric with these attributes. */
async function pointsOf(from: Reader, name: string, attributes: Record<string, string>) {
  const metric = (await from.metrics()).find(({ descriptor }) => descriptor.name === name)
  return (metric?.dataPoints ?? []).filter((point) =>
    Object.entries(attributes).every(([label, value]) => point.attributes[label] === value),
  )
}

test('OpenTelemetry counts requests by policy, outcome and source', async () => {
  const policy = newName()
  await ask(policy, 10, 4)
  const points = await pointsOf(reader, 'sluice.requests', { policy })
  expect(
    points.map(({ attributes, value }) => [attributes.outcome, attributes.limit, attributes.source, value]),
  ).toEqual(
    expect.arrayContaining([
      ['admitted', '', 'store', 4],
      ['limited', policy, 'store', 6],
    ]),
  )
  await ask(policy, 1, 4)
  const [admitted] = await pointsOf(reader, 'sluice.requests', { policy, outcome: 'admitted' })
  expect(admitted?.value).toBe(5)
})

test('OpenTelemetry metrics have the type, unit and description of the table', async () => {
  await ask(newName(), 100, 4)
  const exported = new Map((await reader.metrics()).map((metric) => [metric.descriptor.name, metric]))
  expect(exported.size).toBeGreaterThan(5)
  for (const [name, metric] of exported) {
    const described = METRICS.find((each) => each.name === name)
    expect(metric.descriptor).toMatchObject({ unit: described?.unit, description: described?.help })
    const type = { counter: DataPointType.SUM, updowncounter: DataPointType.SUM, gauge: DataPointType.GAUGE }
    expect(metric.dataPointType).toBe(
      described?.type === 'histogram' ? DataPointType.HISTOGRAM : type[described?.type as keyof typeof type],
    )
    if (metric.dataPointType === DataPointType.SUM) expect(metric.isMonotonic).toBe(described?.type === 'counter')
  }
})

test('an OpenTelemetry histogram has the bounds of the table, with each value in its bucket', async () => {
  const policy = newName()
  await ask(policy, 12, 10)
  const [point] = await pointsOf(reader, 'sluice.limit.needed', { policy })
  const { buckets, count } = (point as { value: Histogram }).value
  expect(count).toBe(12)
  const below = (bound: number) =>
    buckets.counts.slice(0, buckets.boundaries.indexOf(bound) + 1).reduce((sum, each) => sum + each, 0)
  expect([below(0.1), below(0.5), below(0.9), below(1)]).toEqual([1, 5, 9, 10])
})

test('an OpenTelemetry histogram of very many values keeps its shape', async () => {
  const policy = newName()
  await ask(policy, 20_000, 10_000)
  const [point] = await pointsOf(reader, 'sluice.limit.needed', { policy })
  const { buckets, count } = (point as { value: Histogram }).value
  expect(count).toBeGreaterThan(400)
  expect(count).toBeLessThan(600)
  // Half of the requests found no room.
  expect((buckets.counts.at(-1) as number) / count).toBeCloseTo(0.5, 1)
})

describe('providers of meters', () => {
  test('a second call with the same MeterProvider counts nothing twice', async () => {
    const again = sluiceMetrics({ meterProvider })
    metrics.stop()
    try {
      const policy = newName()
      await ask(policy, 3, 2)
      const [needed] = await pointsOf(reader, 'sluice.limit.needed', { policy })
      expect((needed?.value as Histogram | undefined)?.count).toBe(3)
      const points = await pointsOf(reader, 'sluice.requests', { policy })
      expect(points.map(({ value }) => value)).toEqual([2, 1])
    } finally {
      again.stop()
    }
  })

  test('two MeterProviders export the same, and each reader has everything', async () => {
    const [left, right] = [new Reader(), new Reader()]
    const other = new MeterProvider({ readers: [left, right] })
    const more = sluiceMetrics({ meterProvider: other })
    try {
      const policy = newName()
      await ask(policy, 3, 2)
      for (const each of [reader, left, right]) {
        const points = await pointsOf(each, 'sluice.requests', { policy })
        expect(points.map(({ value }) => value)).toEqual([2, 1])
        const [needed] = await pointsOf(each, 'sluice.limit.needed', { policy })
        expect((needed?.value as Histogram | undefined)?.count).toBe(3)
      }
    } finally {
      more.stop()
      await other.shutdown()
    }
  })

  test('after stop() nothing is exported', async () => {
    metrics.stop()
    metrics.stop()
    await ask(newName(), 3, 2)
    expect(await pointsOf(reader, 'sluice.requests', {})).toEqual([])
  })

  test('without a MeterProvider a warning is emitted, and limiters work', async () => {
    const warnings = await warningsDuring(async () => {
      const none = sluiceMetrics()
      await ask(newName(), 3, 2)
      none.stop()
    })
    expect(warnings).toEqual([expect.objectContaining({ name: 'SluiceWarning', code: 'SLUICE_NO_METER_PROVIDER' })])
  })

  test.each([
    [{ provider: 1 }, 'provider: expected none: the only option is meterProvider'],
    [{ meterProvider: {} }, 'meterProvider: expected a MeterProvider of OpenTelemetry'],
  ])('sluiceMetrics of OpenTelemetry rejects the options %j', (options, message) => {
    expect(() => sluiceMetrics(options as never)).toThrow(message)
  })
})

test('an exporter that hangs or fails delays no request', async () => {
  let exports = 0
  const hanging: PushMetricExporter = {
    export: () => {
      exports++
      if (exports > 1) throw new Error('exporters may throw, too')
    },
    forceFlush: async () => {},
    shutdown: async () => {},
  }
  const periodic = new PeriodicExportingMetricReader({
    exporter: hanging,
    exportIntervalMillis: 50,
    exportTimeoutMillis: 50,
  })
  const provider = new MeterProvider({ readers: [periodic] })
  const exporting = sluiceMetrics({ meterProvider: provider })
  try {
    await until('it was called to export', () => exports > 1)
    const policy = newName()
    await ask(policy, 3, 2)
    const points = await pointsOf(reader, 'sluice.requests', { policy })
    expect(points.map(({ value }) => value)).toEqual([2, 1])
  } finally {
    exporting.stop()
    await provider.shutdown().catch(() => {})
  }
})

test('an exporter of deltas receives each request once', async () => {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.DELTA)
  const periodic = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
  const provider = new MeterProvider({ readers: [periodic] })
  const exporting = sluiceMetrics({ meterProvider: provider })
  try {
    const policy = newName()
    for (const times of [3, 4]) {
      await ask(policy, times, 100)
      await provider.forceFlush()
    }
    const values = exporter
      .getMetrics()
      .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics))
      .filter(({ descriptor }) => descriptor.name === 'sluice.requests')
      .flatMap(({ dataPoints }) => dataPoints.filter(({ attributes }) => attributes.policy === policy))
      .map(({ value }) => value)
    expect(values).toEqual([3, 4])
  } finally {
    exporting.stop()
    await provider.shutdown()
  }
})
