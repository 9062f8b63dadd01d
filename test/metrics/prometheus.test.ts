// Release: runs Prometheus. Runs alone: it reads the figures of all stores of its process.
import { concurrency, createLimiter, gcra, memoryStore, slidingLog } from '@sluice/core'
import { type SluiceMetrics, sluiceMetrics } from '@sluice/prometheus'
import { AggregatorRegistry, Counter, Registry } from 'prom-client'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { promtool } from '../support/prometheus.js'
import { seriesIn, seriesOf, sumOf } from './exposition.js'

let register: Registry
let metrics: SluiceMetrics
beforeEach(() => {
  register = new Registry()
  metrics = sluiceMetrics({ register })
})
afterEach(() => metrics.stop())

let made = 0
/** A name that no other test has used. */
const newName = () => `policy-${++made}`

async function ask(name: string, times: number, limit: number): Promise<void> {
  const limiter = createLimiter({ name, limit, window: '1h' })
  for (let n = 0; n < times; n++) await limiter.consume('ann')
}

test('Prometheus counts requests by policy, outcome, refusing limit and source', async () => {
  const name = newName()
  await ask(name, 10, 4)
  const series = await seriesOf(register)
  const of = (outcome: string, limit: string) =>
    series.get(
      `sluice_requests_total{limit="${limit}",outcome="${outcome}",policy="${name}",reported="false",source="store",tier=""}`,
    )
  expect({ admitted: of('admitted', ''), limited: of('limited', name) }).toEqual({ admitted: 4, limited: 6 })
})

test('units of your own are counted as charged and refunded', async () => {
  const name = newName()
  const limits = [gcra({ unit: 'tokens', limit: 100, window: '1h' }), slidingLog({ limit: 9, window: '1h' })]
  const limiter = createLimiter({ name, limits })
  const verdict = await limiter.consume('ann', { cost: { tokens: 30 } })
  await limiter.consume('ann', { cost: { tokens: 20 } })
  await limiter.consume('ann', { cost: { tokens: 90 } })
  await limiter.refund('ann', verdict)
  const series = await seriesOf(register)
  const of = (outcome: string) => sumOf(series, 'sluice_units_total', { policy: name, unit: 'tokens', outcome })
  expect([of('charged'), of('refunded')]).toEqual([50, 30])
})

test('counts grow from scrape to scrape, and a peek does not count', async () => {
  const name = newName()
  const limiter = createLimiter({ name, limit: 100, window: '1h' })
  await limiter.consume('ann')
  expect(sumOf(await seriesOf(register), 'sluice_requests_total', { policy: name })).toBe(1)
  await limiter.peek('ann')
  await limiter.consume('bob')
  expect(sumOf(await seriesOf(register), 'sluice_requests_total', { policy: name })).toBe(2)
})

test('a histogram shows how much of a limit requests needed', async () => {
  const name = newName()
  await ask(name, 12, 10)
  const series = await seriesOf(register)
  const below = (le: string) => sumOf(series, 'sluice_limit_needed_ratio_bucket', { policy: name, le })
  // The first request needs a tenth of the limit, the tenth all of it, and two more exceed it.
  expect([below('0.1'), below('0.5'), below('0.9'), below('1'), below('+Inf')]).toEqual([1, 5, 9, 10, 12])
  expect(sumOf(series, 'sluice_limit_needed_ratio_count', { policy: name })).toBe(12)
})

test('active permits are shown, and taken and released ones counted', async () => {
  const name = newName()
  const limiter = createLimiter({ name, limits: [concurrency({ limit: 3 })] })
  const held = await Promise.all([limiter.consume('ann'), limiter.consume('ann'), limiter.consume('ann')])
  await limiter.release(held[0])
  const series = await seriesOf(register)
  expect(sumOf(series, 'sluice_active_permits', { policy: name })).toBe(2)
  expect(sumOf(series, 'sluice_permits_total', { policy: name, outcome: 'taken' })).toBe(3)
  expect(sumOf(series, 'sluice_permits_total', { policy: name, outcome: 'released' })).toBe(1)
})

test('a memory store shows how full it is', async () => {
  const store = memoryStore({ maxKeys: 5000 })
  const limiter = createLimiter({ name: newName(), store, limit: 10, window: '1h' })
  for (let n = 0; n < 50; n++) await limiter.consume(`client ${n}`)
  const series = await seriesOf(register)
  const [id = ''] =
    [...series].find(([name, value]) => name.startsWith('sluice_store_max_keys') && value === 5000) ?? []
  const store1 = /store="[^"]*"/.exec(id)?.[0]
  expect(series.get(`sluice_store_keys{${store1}}`)).toBe(50)
  expect(series.get(`sluice_store_available{${store1}}`)).toBe(1)
  expect(series.get(`sluice_store_size_bytes{${store1}}`)).toBeGreaterThan(50)
  await store.close?.()
})

test('promtool accepts the metrics', async () => {
  await ask(newName(), 10, 4)
  expect(await promtool(['check', 'metrics'], await register.metrics())).toBe('')
})

describe('registries', () => {
  test('a second sluiceMetrics on a registry replaces the first, whose stop() then has no effect', async () => {
    const name = newName()
    const again = sluiceMetrics({ register })
    metrics.stop()
    try {
      await ask(name, 3, 2)
      // `seriesOf` throws if a series is shown twice.
      expect(sumOf(await seriesOf(register), 'sluice_requests_total', { policy: name })).toBe(3)
    } finally {
      again.stop()
    }
  })

  test('two registries show the same metrics', async () => {
    const other = new Registry()
    const more = sluiceMetrics({ register: other })
    try {
      await ask(newName(), 5, 2)
      const requests = async (of: Registry) =>
        [...(await seriesOf(of))].filter(([name]) => name.startsWith('sluice_requests_total'))
      expect(await requests(other)).toEqual(await requests(register))
    } finally {
      more.stop()
    }
  })

  test("after stop() a registry shows nothing, and the application's metrics stay", async () => {
    const own = new Counter({ name: 'own_total', help: 'Of the application.', registers: [register] })
    own.inc()
    metrics.stop()
    metrics.stop()
    expect([...(await seriesOf(register)).keys()]).toEqual(['own_total{}'])
  })

  test('a metric of the application with the same name is an error, and stays the only one', () => {
    const taken = new Registry()
    new Counter({ name: 'sluice_strikes_total', help: 'Not ours.', registers: [taken] })
    expect(() => sluiceMetrics({ register: taken })).toThrow('sluice_strikes_total')
    expect(taken.getMetricsAsArray().map(({ name }) => name)).toEqual(['sluice_strikes_total'])
  })

  test.each([
    [{ registry: new Registry() }, 'registry: expected none: the only option is register'],
    [{ register: {} }, 'register: expected a Registry of prom-client'],
    [null, 'options: expected an object'],
  ])('sluiceMetrics of Prometheus rejects the options %j', (options, message) => {
    expect(() => sluiceMetrics(options as never)).toThrow(message)
  })

  test('resetMetrics leaves the counts, which other registries show, too', async () => {
    const name = newName()
    await ask(name, 3, 2)
    register.resetMetrics()
    expect(sumOf(await seriesOf(register), 'sluice_requests_total', { policy: name })).toBe(3)
  })

  test('OpenMetrics names counters without _total, and a later plain scrape with it', async () => {
    const plain = await register.metrics()
    register.setContentType(Registry.OPENMETRICS_CONTENT_TYPE as never)
    const open = await register.metrics()
    expect(open).toContain('# TYPE sluice_policies_reloads counter\nsluice_policies_reloads_total 0')
    expect(open).toContain('# EOF')
    register.setContentType(Registry.PROMETHEUS_CONTENT_TYPE)
    expect(await register.metrics()).toBe(plain)
  })

  test('the primary of node:cluster adds up its workers, and shows a store as unavailable if one lacks it', async () => {
    const name = newName()
    await ask(name, 5, 2)
    const one = await register.getMetricsAsJSON()
    const two = structuredClone(one)
    const available = two.find((metric) => metric.name === 'sluice_store_available') as unknown as {
      values: { value: number }[]
    }
    for (const value of available.values) value.value = 0
    const all = AggregatorRegistry.aggregate([one, two])
    const series = seriesIn(await all.metrics())
    expect(sumOf(series, 'sluice_requests_total', { policy: name })).toBe(10)
    expect(sumOf(series, 'sluice_limit_needed_ratio_count', { policy: name })).toBe(10)
    expect(sumOf(series, 'sluice_store_available')).toBe(0)
  })
})
