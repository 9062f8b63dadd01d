import type { HistogramPoint, Metric, MetricDescription, Snapshot } from '@sluice/core/metrics'
import type { Metric as PromMetric, Registry } from 'prom-client'

/** Marks our metrics in a registry, whichever copy of this package put them there. Its value removes them. */
const WITHDRAW = Symbol.for('@sluice/prometheus: withdraw')

/** Reads a part of the present counts. */
export type Read = <Points>(read: (snapshot: Snapshot) => Points) => Points

interface Value {
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
  readonly metricName?: string
}

/**
 * A metric that is read when its registry is. prom-client takes any object with a name and a `get()`. Its own metrics can only
 * be added to, and would have to follow the counts label by label.
 */
export class RegisteredMetric {
  readonly [WITHDRAW]: () => void
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  /** How prom-client makes one value of those that the workers of `node:cluster` have. */
  readonly aggregator: 'sum' | 'min' | 'max'
  readonly labelNames: readonly string[]
  readonly #name: string
  readonly #metric: Metric
  readonly #register: Registry
  readonly #read: Read

  /** @param withdraw takes all that were registered with it out of the registry */
  constructor(metric: Metric, register: Registry, read: Read, withdraw: () => void) {
    this[WITHDRAW] = withdraw
    this.help = metric.help
    this.type = metric.type === 'updowncounter' ? 'gauge' : metric.type
    this.aggregator = metric.acrossProcesses
    this.labelNames = metric.labels
    this.#name = prometheusName(metric)
    this.#metric = metric
    this.#register = register
    this.#read = read
  }

  get name(): string {
    return this.#name
  }

  // prom-client removes `_total` here for a scrape as OpenMetrics, and would omit it from all later scrapes.
  set name(_) {}

  /** The values that prom-client writes, or sends to the primary of `node:cluster`. */
  get(): object {
    const isOpenMetrics = this.#register.contentType.startsWith('application/openmetrics-text')
    // There it adds the ending itself.
    const name = isOpenMetrics && this.type === 'counter' ? this.#name.replace(/_total$/, '') : this.#name
    return { name, help: this.help, type: this.type, aggregator: this.aggregator, values: this.#values() }
  }

  /** For `register.resetMetrics()`. The counts do not belong to the registry: other exporters read them, too. */
  reset(): void {}

  /**
   * Registers it, in place of the metric of an earlier call.
   *
   * @throws Error where the name is taken by a metric of the application's
   */
  add(): void {
    withdrawEarlier(this.#register.getSingleMetric(this.#name))
    this.#register.registerMetric(this as unknown as PromMetric)
  }

  /** Removes it, unless the application has put another in its place. */
  remove(): void {
    const now: unknown = this.#register.getSingleMetric(this.#name)
    if (now === this) this.#register.removeSingleMetric(this.#name)
  }

  #values(): readonly Value[] {
    const metric = this.#metric
    if (metric.type !== 'histogram') return this.#read((snapshot) => metric.read(snapshot))
    return this.#read((snapshot) => metric.read(snapshot)).flatMap((point) =>
      histogramValues(this.#name, metric.bounds, point),
    )
  }
}

/** A metric of others stays: prom-client says then that the name is taken. */
function withdrawEarlier(metric: unknown): void {
  if (typeof metric !== 'object' || metric === null || !(WITHDRAW in metric)) return
  if (typeof metric[WITHDRAW] === 'function') metric[WITHDRAW]()
}

/** In Prometheus a bucket has the values of all smaller ones, too. */
function histogramValues(
  name: string,
  bounds: readonly number[],
  { labels, counts, sum, count }: HistogramPoint,
): Value[] {
  const metricName = `${name}_bucket`
  let below = 0
  const buckets = bounds.map((le, i) => {
    below += counts[i] as number
    return { metricName, labels: { ...labels, le }, value: below }
  })
  return [
    ...buckets,
    { metricName, labels: { ...labels, le: '+Inf' }, value: count },
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  ]
}

/** Units in the names of Prometheus. A name has none for things that are counted. */
const UNITS: Readonly<Record<string, string>> = { s: '_seconds', By: '_bytes', '1': '_ratio' }

/** The name of a metric in Prometheus: `sluice.decision.duration` in seconds is `sluice_decision_duration_seconds`. */
function prometheusName({ name, unit, type }: MetricDescription): string {
  return name.replaceAll('.', '_') + (UNITS[unit] ?? '') + (type === 'counter' ? '_total' : '')
}
