import { type Counting, METRICS, type Snapshot, startCounting } from '@sluice/core/metrics'
import { register as globalRegister } from 'prom-client'
import { registryOf, type SluiceMetricsOptions } from './options.js'
import { RegisteredMetric } from './registered-metric.js'

export interface SluiceMetrics {
  /** Removes the metrics from the registry, and ends counting where nothing else reads the counts. A second call does nothing. */
  stop(): void
}

/** One snapshot for all metrics of a scrape, which prom-client reads in one go: they agree, and the snapshot is made once. */
class SnapshotOfScrape {
  readonly #counting: Counting
  #snapshot: Snapshot | undefined

  constructor(counting: Counting) {
    this.#counting = counting
  }

  /** Bound, as it is passed on. */
  readonly read = <Points>(read: (snapshot: Snapshot) => Points): Points => {
    if (!this.#snapshot) {
      this.#snapshot = this.#counting.read()
      queueMicrotask(() => {
        this.#snapshot = undefined
      })
    }
    return read(this.#snapshot)
  }
}

/**
 * Registers the metrics of every limiter and store of this process, also of those that are made later. They are counted from
 * the first call on, in plain numbers, and read when the registry is collected.
 *
 * A second call on the same registry replaces the first; on another registry both have all metrics.
 *
 * ```ts
 * sluiceMetrics()
 * app.get('/metrics', async (_req, res) => res.type(register.contentType).send(await register.metrics()))
 * ```
 *
 * @throws SluiceError `INVALID_POLICY` for a registry that is none; Error where it has other metrics of these names
 */
export function sluiceMetrics(options: SluiceMetricsOptions = {}): SluiceMetrics {
  const register = registryOf(options, globalRegister)
  const counting = startCounting()
  const scrape = new SnapshotOfScrape(counting)
  const registered: RegisteredMetric[] = []
  let isStopped = false
  const stop = () => {
    if (isStopped) return
    isStopped = true
    for (const metric of registered) metric.remove()
    counting.stop()
  }
  try {
    for (const description of METRICS) {
      const metric = new RegisteredMetric(description, register, scrape.read, stop)
      metric.add()
      registered.push(metric)
    }
  } catch (error) {
    stop()
    throw error
  }
  return { stop }
}
