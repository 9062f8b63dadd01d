import { type Attributes, type BatchObservableResult, type Meter, type Observable, ValueType } from '@opentelemetry/api'
import { type HistogramMetric, METRICS, type NumberMetric, type Snapshot } from '@sluice/core/metrics'
import { HistogramRecords } from './histogram-records.js'

/** Instruments that are collected together. */
export interface Instruments {
  readonly observables: readonly Observable[]
  /** Passes on a snapshot. Histograms are recorded: their records reach the exporter with this collection, too. */
  observe(snapshot: Snapshot, result: BatchObservableResult): void
}

/** An instrument for each metric. Histograms leave out the counts of `first`. */
export function instrumentsOf(meter: Meter, first: Snapshot): Instruments {
  const numbers = METRICS.filter((metric) => metric.type !== 'histogram').map((metric) => ({
    metric,
    instrument: observableOf(meter, metric),
  }))
  const histograms = METRICS.filter((metric) => metric.type === 'histogram').map((metric) => {
    const records = recordsOf(meter, metric)
    records.skip(metric.read(first))
    return { metric, records }
  })
  return {
    observables: numbers.map(({ instrument }) => instrument),
    observe(snapshot, result) {
      for (const { metric, instrument } of numbers) {
        for (const { labels, value } of metric.read(snapshot)) result.observe(instrument, value, labels as Attributes)
      }
      for (const { metric, records } of histograms) records.record(metric.read(snapshot))
    },
  }
}

function observableOf(meter: Meter, { name, type, unit, help: description }: NumberMetric): Observable {
  const options = { description, unit, valueType: ValueType.INT }
  if (type === 'counter') return meter.createObservableCounter(name, options)
  if (type === 'updowncounter') return meter.createObservableUpDownCounter(name, options)
  return meter.createObservableGauge(name, options)
}

function recordsOf(meter: Meter, { name, unit, help: description, bounds }: HistogramMetric): HistogramRecords {
  const advice = { explicitBucketBoundaries: [...bounds] }
  return new HistogramRecords(meter.createHistogram(name, { description, unit, advice }), bounds)
}
