import cluster from 'node:cluster'

/** Reads counts as the text that Prometheus takes. */
export interface Metrics {
  read(): Promise<string>
  stop(): void
}

/** Counts what this process decides. The process above a worker reads its counts. */
export async function countMetrics(): Promise<Metrics> {
  const { sluiceMetrics } = await import('@sluice/prometheus')
  const { AggregatorRegistry, Registry } = await import('prom-client')
  const register = new Registry()
  const { stop } = sluiceMetrics({ register })
  if (cluster.isWorker) {
    AggregatorRegistry.setRegistries(register)
    // The constructor listens to the process above and replies to it.
    new AggregatorRegistry()
  }
  return { read: () => register.metrics(), stop }
}

/** Reads the counts of all workers of this process. */
export async function metricsOfWorkers(): Promise<Metrics> {
  const { AggregatorRegistry } = await import('prom-client')
  const all = new AggregatorRegistry()
  return { read: () => all.clusterMetrics(), stop: () => {} }
}
