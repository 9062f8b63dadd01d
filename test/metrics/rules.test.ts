// Release: runs Prometheus. Runs alone: it reads the figures of all stores of its process.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { METRICS } from '@sluice/core/metrics'
import { sluiceMetrics } from '@sluice/prometheus'
import { Registry } from 'prom-client'
import { afterAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { promtool } from '../support/prometheus.js'

const PACKAGE = new URL('../../packages/prometheus/', import.meta.url)
const ALERTS = fileURLToPath(new URL('alerts.yaml', PACKAGE))
const alerts: readonly { alert: string; expr: string; annotations: Record<string, string> }[] = parse(
  readFileSync(ALERTS, 'utf8'),
).groups.flatMap(({ rules }: { rules: unknown[] }) => rules)

interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly description?: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: readonly { readonly expr: string; readonly refId: string }[]
  readonly fieldConfig?: { readonly defaults: { readonly links?: readonly { readonly url: string }[] } }
}
const dashboard = JSON.parse(readFileSync(new URL('dashboard.json', PACKAGE), 'utf8'))
const panels: readonly Panel[] = dashboard.panels

/** The queries as Grafana sends them, with everything selected. */
const queries = panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({
    title,
    expr: expr.replaceAll('$__rate_interval', '1m').replace(/\$(job|policy)\b/g, '.*'),
  })),
)

const PAGE = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8')

const dir = mkdtempSync(join(tmpdir(), 'sluice-rules-'))
afterAll(() => rmSync(dir, { recursive: true }))

/** The names and labels of all exported series; a histogram has three names. */
const exported = new Map<string, ReadonlySet<string>>()
{
  const register = new Registry()
  const metrics = sluiceMetrics({ register })
  for (const metric of register.getMetricsAsArray() as unknown as {
    name: string
    type: string
    labelNames: string[]
  }[]) {
    if (metric.type !== 'histogram') exported.set(metric.name, new Set(metric.labelNames))
    else {
      exported.set(`${metric.name}_bucket`, new Set([...metric.labelNames, 'le']))
      for (const part of ['sum', 'count']) exported.set(`${metric.name}_${part}`, new Set(metric.labelNames))
    }
  }
  metrics.stop()
}
/** Labels that Prometheus adds to each series. */
const OF_SCRAPES = ['job', 'instance']

test('panels of single policies link to the policy in the console, whose URL is a variable', () => {
  const { list } = dashboard.templating
  expect(list.find(({ name }: { name: string }) => name === 'console')).toMatchObject({ type: 'textbox' })
  const linked = panels.filter(({ fieldConfig }) => fieldConfig?.defaults.links)
  expect(linked.map(({ title }) => title)).toContain('Refused, by policy and limit')
  for (const { title, targets = [], fieldConfig } of linked) {
    for (const { expr } of targets) expect(expr, title).toMatch(/by \(policy\b/)
    expect(fieldConfig?.defaults.links, title).toMatchObject([
      { url: expect.stringMatching(/^\$\{console\}\/#\/policies\?/) },
    ])
  }
})

test('METRICS has every metric once', () => {
  expect(new Set(METRICS.map(({ name }) => name)).size).toBe(METRICS.length)
  expect(exported.size).toBeGreaterThanOrEqual(METRICS.length)
})

describe.each([...alerts.map(({ alert, expr }) => ({ title: alert, expr })), ...queries])('$title', ({ expr }) => {
  test('the query uses exported names and labels only', () => {
    const names = [...expr.matchAll(/\bsluice_\w+/g)].map(([name]) => name)
    expect(names.length).toBeGreaterThan(0)
    for (const name of names) expect([...exported.keys()]).toContain(name)
    const known = new Set([...names.flatMap((name) => [...(exported.get(name) ?? [])]), ...OF_SCRAPES])
    const inBraces = [...expr.matchAll(/\{([^}]*)\}/g)].flatMap(([, inside = '']) => [
      ...inside.matchAll(/(\w+)\s*[=!]/g),
    ])
    const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, inside = '']) => [...inside.matchAll(/(\w+)/g)])
    for (const [, label] of [...inBraces, ...grouped]) expect([...known]).toContain(label)
  })
})

test('every metric is on the dashboard', () => {
  const shown = queries.map(({ expr }) => expr).join('\n')
  const missing = METRICS.map(({ name }) => name.replaceAll('.', '_')).filter((name) => !shown.includes(name))
  expect(missing).toEqual([])
})

test('docs/metrics.md lists each metric with its type and labels, and each alert', () => {
  const rows = [...PAGE.matchAll(/^\| `(\w+)` \| (\w+) \|([^|]*)\|/gm)].map(([, name, type, labels = '']) => [
    name,
    type,
    [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label),
  ])
  const register = new Registry()
  const metrics = sluiceMetrics({ register })
  const registered = register.getMetricsAsArray() as unknown as { name: string; type: string; labelNames: string[] }[]
  expect(rows).toEqual(registered.map(({ name, type, labelNames }) => [name, type, labelNames]))
  metrics.stop()
  const explained = [...PAGE.matchAll(/^\| `(Sluice\w+)` \|/gm)].map(([, name]) => name)
  expect(explained).toEqual(alerts.map(({ alert }) => alert))
})

test('promtool accepts the alerts, and the queries of the dashboard', async () => {
  await promtool(['check', 'rules', ALERTS])
  const rules = queries.map(({ expr }, i) => ({ record: `query:${i}`, expr }))
  const file = join(dir, 'queries.yaml')
  // JSON is YAML.
  writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }))
  expect(await promtool(['check', 'rules', file])).toContain(`${rules.length} rules found`)
})

test('panels of the dashboard have unique numbers and descriptions, and do not overlap', () => {
  expect(dashboard).toMatchObject({ title: 'Sluice', schemaVersion: expect.any(Number), templating: expect.anything() })
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
  const taken = new Map<string, string>()
  for (const {
    title,
    type,
    description,
    gridPos: { x, y, w, h },
  } of panels) {
    if (type !== 'row') expect(description, title).toBeTruthy()
    expect(x + w, title).toBeLessThanOrEqual(24)
    for (let column = x; column < x + w; column++) {
      for (let row = y; row < y + h; row++) {
        expect(taken.get(`${column},${row}`), title).toBeUndefined()
        taken.set(`${column},${row}`, title)
      }
    }
  }
  for (const { title, targets = [] } of panels) {
    expect(new Set(targets.map(({ refId }) => refId)).size, title).toBe(targets.length)
  }
})

/** Staged series, minute by minute in promtool's notation, with the alerts that fire. */
const STAGED: readonly {
  readonly what: string
  readonly series: Readonly<Record<string, string>>
  readonly fires: Readonly<Record<string, readonly string[]>>
}[] = [
  {
    what: 'an outage: Redis is away from the fifth minute to the fifteenth',
    series: {
      'sluice_store_available{job="shop", instance="a", store="redis"}': '1x4 0x9 1x30',
      'sluice_store_available{job="shop", instance="b", store="redis"}': '1x44',
      'sluice_requests_total{job="shop", policy="api", source="store", outcome="admitted", reported="false"}':
        '0+600x4 2400x9 2400+600x30',
      'sluice_requests_total{job="shop", policy="api", source="local", outcome="admitted", reported="false"}':
        '0x4 0+600x10 6000x30',
    },
    fires: {
      '4m': [],
      '7m': ['SluiceStoreUnavailable'],
      '14m': ['SluiceDecidingAlone', 'SluiceStoreUnavailable'],
      '30m': [],
    },
  },
  {
    what: 'an outage in which one policy refuses everything, and another only reports it',
    series: {
      'sluice_requests_total{job="shop", policy="login", source="local", outcome="unavailable", reported="false"}':
        '0x4 0+60x10 600x20',
      'sluice_requests_total{job="shop", policy="login", source="store", outcome="admitted", reported="false"}':
        '0+60x4 240x30',
      'sluice_requests_total{job="shop", policy="trial", source="local", outcome="unavailable", reported="true"}':
        '0+60x30',
    },
    // The reporting policy continues locally.
    fires: {
      '4m': [],
      '8m': ['SluiceDecidingAlone', 'SluiceRefusingWithoutStore'],
      '25m': ['SluiceDecidingAlone'],
    },
  },
  {
    what: 'a flood: one policy refuses nine of ten requests, and another in report mode would refuse all',
    series: {
      'sluice_requests_total{job="shop", policy="api", source="store", outcome="admitted", reported="false"}':
        '0+60x40',
      'sluice_requests_total{job="shop", policy="api", source="deny-cache", outcome="limited", reported="false"}':
        '0+540x40',
      'sluice_requests_total{job="shop", policy="trial", source="store", outcome="limited", reported="true"}':
        '0+600x40',
      'sluice_requests_total{job="shop", policy="quiet", source="store", outcome="limited", reported="false"}':
        '0+6x40',
    },
    fires: { '5m': [], '35m': ['SluiceRefusingMuch'] },
  },
  {
    what: 'a twentieth of the decisions takes 100 ms',
    series: {
      'sluice_decision_duration_seconds_bucket{job="shop", source="store", le="0.01"}': '0+95x40',
      'sluice_decision_duration_seconds_bucket{job="shop", source="store", le="0.1"}': '0+100x40',
      'sluice_decision_duration_seconds_bucket{job="shop", source="store", le="+Inf"}': '0+100x40',
    },
    fires: { '5m': [], '30m': ['SluiceDecisionsSlow'] },
  },
  {
    what: 'a queue from which no request is admitted, beside one that moves',
    series: {
      'sluice_queued_requests{job="shop", policy="stuck"}': '3x40',
      'sluice_turns_total{job="shop", policy="stuck", outcome="admitted"}': '5x40',
      'sluice_queued_requests{job="shop", policy="busy"}': '3x40',
      'sluice_turns_total{job="shop", policy="busy", outcome="admitted"}': '0+5x40',
    },
    fires: { '5m': [], '30m': ['SluiceQueueStuck'] },
  },
  {
    what: 'permits that lapse, a full memory store, and more policies than metrics separate',
    series: {
      'sluice_permits_total{job="shop", policy="busy", outcome="lapsed"}': '0+1x60',
      'sluice_permits_total{job="shop", policy="fine", outcome="released"}': '0+1x60',
      'sluice_store_keys{job="shop", instance="a", store="memory"}': '99000x60',
      'sluice_store_max_keys{job="shop", instance="a", store="memory"}': '100000x60',
      'sluice_store_size_bytes{job="shop", instance="b", store="memory"}': '10x60',
      'sluice_store_max_size_bytes{job="shop", instance="b", store="memory"}': '100x60',
      'sluice_requests_total{job="shop", policy="other", source="store", outcome="admitted", reported="false"}':
        '0+1x60',
    },
    fires: { '5m': [], '50m': ['SluiceMemoryStoreFull', 'SluiceMetricsCapped', 'SluicePermitsLapsing'] },
  },
]

test.each(STAGED)('alerts fire as expected: $what', async ({ series, fires }) => {
  // Each alert is checked at each time, also those that must be silent.
  const alertTests = Object.entries(fires).flatMap(([at, firing]) =>
    alerts.map(({ alert }) => ({ eval_time: at, alertname: alert, isFiring: firing.includes(alert) })),
  )
  const file = join(dir, 'staged.yaml')
  const silent = alertTests.filter(({ isFiring }) => !isFiring)
  const write = (alert_rule_test: unknown[]) =>
    writeFileSync(
      file,
      JSON.stringify({
        rule_files: [ALERTS],
        evaluation_interval: '1m',
        tests: [
          {
            interval: '1m',
            input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
            alert_rule_test,
          },
        ],
      }),
    )
  write(silent.map(({ eval_time, alertname }) => ({ eval_time, alertname, exp_alerts: [] })))
  expect(await promtool(['test', 'rules', file])).toContain('SUCCESS')
  // promtool compares labels and annotations word by word, so firing alerts are tested by expecting silence to fail.
  for (const { eval_time, alertname, isFiring } of alertTests) {
    if (!isFiring) continue
    write([{ eval_time, alertname, exp_alerts: [] }])
    await expect(promtool(['test', 'rules', file]), `${alertname} at ${eval_time}`).rejects.toThrow(alertname)
  }
})
