import type { Snapshot } from './snapshot.js'

/** A metric's name, unit, meaning and labels. */
export interface MetricDescription {
  /** With dots, as OpenTelemetry writes names: `sluice.decision.duration`. */
  readonly name: string
  /** `updowncounter`: a present number of things, which may be added up. `gauge`: one that may not. */
  readonly type: 'counter' | 'updowncounter' | 'gauge' | 'histogram'
  /** As UCUM writes it: `s`, `By`, `1` for a share, `{request}` for counted things, '' for none. */
  readonly unit: string
  /** One sentence. */
  readonly help: string
  /** The labels that distinguish its values. Never a key. Each label has a bounded number of values. */
  readonly labels: readonly string[]
  /** Upper bounds of a histogram's buckets, in the metric's unit. */
  readonly bounds?: readonly number[]
  /** How the numbers of several processes become one. */
  readonly acrossProcesses: 'sum' | 'min' | 'max'
}

export type Labels = Readonly<Record<string, string>>

export interface NumberPoint {
  readonly labels: Labels
  readonly value: number
}

export interface HistogramPoint {
  readonly labels: Labels
  /** The number of values in each bucket, without those of smaller ones. The last element has those above all bounds. */
  readonly counts: readonly number[]
  /** The sum of all values, in the metric's unit. */
  readonly sum: number
  readonly count: number
}

/** A metric whose values are numbers, and how they are read from the counts. */
export interface NumberMetric extends MetricDescription {
  readonly type: 'counter' | 'updowncounter' | 'gauge'
  read(snapshot: Snapshot): readonly NumberPoint[]
}

export interface HistogramMetric extends MetricDescription {
  readonly type: 'histogram'
  readonly bounds: readonly number[]
  read(snapshot: Snapshot): readonly HistogramPoint[]
}

/** A metric, and how its values are read from a snapshot. */
export type Metric = NumberMetric | HistogramMetric

export interface Shape {
  readonly unit: string
  readonly help: string
  readonly labels?: readonly string[]
  readonly acrossProcesses?: MetricDescription['acrossProcesses']
}

export function numberMetric(
  name: string,
  type: NumberMetric['type'],
  { unit, help, labels = [], acrossProcesses = 'sum' }: Shape,
  read: NumberMetric['read'],
): NumberMetric {
  return { name, type, unit, help, labels, acrossProcesses, read }
}

export function histogramMetric(
  name: string,
  bounds: readonly number[],
  { unit, help, labels = [] }: Shape,
  read: HistogramMetric['read'],
): HistogramMetric {
  return { name, type: 'histogram', unit, help, labels, bounds, acrossProcesses: 'sum', read }
}
