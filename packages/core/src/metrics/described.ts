import type { Snapshot } from './snapshot.js'

/** A metric's name, unit, meaning and labels. */
export interface MetricDescription {
  /** With dots, as OpenTelemetry writes names: `sluice.decision.duration`. */
  readonly name: string
  /** `updowncounter`: a number of things that there are now, which may be added up; `gauge`: one that may not. */
  readonly type: 'counter' | 'updowncounter' | 'gauge' | 'histogram'
  /** As UCUM writes it: `s`, `By`, `1` for a share, `{request}` for what is counted, '' for none. */
  readonly unit: string
  /** One sentence. */
  readonly help: string
  /** The labels that distinguish its values. Never a key. Each label has a bounded number of values. */
  readonly labels: readonly string[]
  /** Upper bounds of a histogram's buckets, in the metric's unit. */
  readonly bounds?: readonly number[]
  /** How one number comes of those of several processes. */
  readonly acrossProcesses: 'sum' | 'min' | 'max'
}

export type Labels = Readonly<Record<string, string>>

export interface NumberPoint {
  readonly labels: Labels
  readonly value: number
}

export interface HistogramPoint {
  readonly labels: Labels
  /** How many values each bucket has, without those of smaller ones, and in one more place those above all bounds. */
  readonly counts: readonly number[]
  /** The sum of all values, in the metric's unit. */
  readonly sum: number
  readonly count: number
}

/** A metric whose values are numbers: how they are found in what was counted. */
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
