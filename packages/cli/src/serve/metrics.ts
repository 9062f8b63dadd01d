import cluster from 'node:cluster'

/** What reads counts as the text that Prometheus takes. */
export interface Metrics {
  read(): Promise<string>
  stop(): void
}

/** Counts what this process decides. Of a worker the process above it reads the counts. */
export async function countMetrics(): Promise<Metrics> {
  const { sluiceMetrics } = await import('@sluice/prometheus')
  const { AggregatorRegistry, Registry } = await import('prom-client')
  const register = new Registry()
  const { stop } = sluiceMetrics({ register })
  if (cluster.isWorker) {
    AggregatorRegistry.setRegistries(register)
    // To be made: it answers the process above.
    new AggregatorRegistry()
  }
  return { read: () => register.metrics(), stop }
}

/** Reads what all workers of this process have counted. */
export async function metricsOfWorkers(): Promise<Metrics> {
  const { AggregatorRegistry } = await import('prom-client')
  const all = new AggregatorRegistry()
  return { read: () => all.clusterMetrics(), stop: () => {} }
}
