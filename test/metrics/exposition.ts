import type { Registry } from 'prom-client'

/**
 * Values by series in Prometheus's notation, `sluice_requests_total{policy="login",…}`, with labels in alphabetical
 * order.
 */
export async function seriesOf(register: Registry): Promise<ReadonlyMap<string, number>> {
  return seriesIn(await register.metrics())
}

export function seriesIn(text: string): ReadonlyMap<string, number> {
  const series = new Map<string, number>()
  for (const line of text.split('\n')) {
    const [, name, labels = '', value] = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
    if (name === undefined) continue
    const id = `${name}{${labels.split(',').sort().join(',')}}`
    if (series.has(id)) throw new Error(`shown twice: ${id}`)
    series.set(id, Number(value))
  }
  return series
}

/** The sum of all series of a metric whose labels have these values. */
export function sumOf(
  series: ReadonlyMap<string, number>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number {
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`)
  let sum = 0
  for (const [id, value] of series) {
    if (id.startsWith(`${name}{`) && wanted.every((label) => id.includes(label))) sum += value
  }
  return sum
}
